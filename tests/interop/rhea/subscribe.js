'use strict';
// A program of docs/start/javascript.md: `node subscribe.js TOPIC` receives what a durable subscription has.

// --8<-- [start:subscribe]
const rhea = require('rhea');

const url = new URL(process.env.JMS_BROKER_URL || 'amqp://127.0.0.1:5672');
const topic = process.argv[2] || 'news';

rhea.on('receiver_open', () => console.log('subscribed'));

rhea.on('message', ({ message, receiver, connection }) => {
  console.log('received', message.body);
  if (message.body === 'the end') {
    receiver.detach();
    connection.close();
  }
});

rhea.connect({
  container_id: 'newspaper',
  host: url.hostname,
  port: Number(url.port || 5672),
}).open_receiver({
  name: 'archive',
  source: { address: topic, capabilities: ['topic'], durable: 2, expiry_policy: 'never' },
});
// --8<-- [end:subscribe]
