'use strict';
// A program of docs/operations/websocket.md: `node websocket.js URL` sends a message and receives it. In Node.js before
// version 22, WebSocket needs the option --experimental-websocket.

// --8<-- [start:websocket]
const rhea = require('rhea');

const url = process.argv[2] || 'ws://127.0.0.1:5673';
const connect = rhea.websocket_connect(WebSocket);

rhea.on('message', ({ message, connection }) => {
  console.log('received', message.body.length);
  connection.close();
});

rhea.once('sendable', ({ sender }) => sender.send({ body: 'x'.repeat(100000) }));

const connection = rhea.connect({
  connection_details: connect(url, ['amqp']),
  username: process.env.JMS_BROKER_USER, // without a user: anonymous
  password: process.env.JMS_BROKER_PASSWORD,
  reconnect: false,
});
connection.open_receiver('web');
connection.open_sender('web');
// --8<-- [end:websocket]
