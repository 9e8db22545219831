'use strict';
// What a Node.js program does to a broker with TLS, client certificates and rules.

const fs = require('node:fs');
const path = require('node:path');
const { assert, next, shows } = require('./harness.js');

function file(name) {
  return fs.readFileSync(path.join(process.env.BROKER_SECURED_FOLDER, name));
}

/** Options of rhea's connect() for the broker with TLS. */
function encrypted(more, url = process.env.BROKER_SECURED_URL) {
  const { hostname, port } = new URL(url);
  const place = { host: hostname, servername: hostname, port: Number(port) };
  return { ...place, transport: 'tls', ca: file('ca.pem'), reconnect: false, ...more };
}

const SHOP = { username: 'shop', password: 'tulip' };

/** Options that show a certificate and log in with it. */
function shown(name) {
  return { cert: file(`${name}.pem`), key: file(`${name}.key`), enable_sasl_external: true };
}

/** The error of a connection that must not be made. */
async function refused(scene, options) {
  const connection = scene.connecting(options);
  const error = next(connection, 'connection_error').then((context) => context.error);
  const end = next(connection, 'disconnected').then((context) => context.error);
  return String(await Promise.race([error, end]));
}

shows("a password opens a connection with TLS", "SEC-01 SEC-02", async (scene) => {
  const connection = await scene.connect(encrypted(SHOP));
  await scene.fill(connection, 'encrypted');
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(1);
  assert.deepEqual(await inbox.bodies(1), ['encrypted']);
});

shows("a certificate logs in by EXTERNAL, with the rights of its user", "SEC-01 SEC-02 SEC-03", async (scene) => {
  const options = encrypted(shown('shop'), process.env.BROKER_SECURED_DEMANDING);
  const connection = await scene.connect(options);
  await scene.fill(connection, 'by certificate');
  const sender = connection.open_sender('closed.orders');
  const { sender: ended } = await next(sender, 'sender_error');
  assert.equal(ended.error.condition, 'amqp:unauthorized-access');
});

shows("a certificate that no user has is refused", "SEC-02", async (scene) => {
  assert.match(await refused(scene, encrypted(shown('stranger'))), /No suitable mechanism/i);
});

shows("a wrong password is refused over TLS, too", "SEC-02", async (scene) => {
  const error = await refused(scene, encrypted({ username: 'mistyped', password: 'wrong' }));
  assert.match(error, /authenticate/i);
});

shows("a broker with a certificate of another authority is not spoken to", "SEC-01", async (scene) => {
  const error = await refused(scene, encrypted({ ...SHOP, ca: file('other.pem') }));
  assert.match(error, /certificate/i);
});
