'use strict';
// A program of docs/start/javascript.md: `node hello.js ADDRESS` sends a message and receives it.

// --8<-- [start:hello]
const rhea = require('rhea');

const url = new URL(process.env.JMS_BROKER_URL || 'amqp://127.0.0.1:5672');
const address = process.argv[2] || 'hello';

rhea.once('sendable', ({ sender }) => sender.send({ body: 'world', durable: true }));

rhea.on('accepted', ({ sender, connection }) => {
  console.log('the broker has the message');
  sender.close();
  connection.open_receiver({ source: address, autoaccept: false });
});

rhea.on('message', ({ message, delivery, connection }) => {
  console.log('received', message.body);
  delivery.accept();
  connection.close();
});

rhea.connect({
  host: url.hostname,
  port: Number(url.port || 5672),
  username: url.username || undefined,
  password: url.password || undefined,
}).open_sender(address);
// --8<-- [end:hello]
