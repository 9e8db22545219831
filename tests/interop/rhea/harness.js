'use strict';
// What the cases are written with: `shows`, connections that end with their case, events as
// promises, and a relay whose connections can be cut.

const assert = require('node:assert/strict');
const crypto = require('node:crypto');
const net = require('node:net');
const { inspect } = require('node:util');
const rhea = require('rhea');

const SOON_MS = 20000; // long enough for a loaded machine
const cases = [];

/** One case: its name, the requirements that it proves, and what is done. */
function shows(name, requirements, body) {
  cases.push({ name, body });
}

/** Why `context` is not what was hoped for. */
function reason({ delivery, receiver, sender, connection, error }) {
  const end = receiver || sender || connection || {};
  return (delivery && delivery.remote_state && delivery.remote_state.error) || end.error || error;
}

/** The next `event` of `emitter`; the `bad` ones end the wait as well, as errors. */
function next(emitter, event, ...bad) {
  return new Promise((resolve, reject) => {
    const listeners = {};
    const end = () => Object.keys(listeners).forEach((name) => {
      emitter.removeListener(name, listeners[name]);
    });
    listeners[event] = (context) => { end(); resolve(context); };
    for (const name of bad) {
      listeners[name] = (context) => {
        end();
        reject(new Error(`${name} instead of ${event}: ${inspect(reason(context))}`));
      };
    }
    Object.keys(listeners).forEach((name) => emitter.on(name, listeners[name]));
  });
}

/** Messages of a receiver, to be awaited one by one. */
class Inbox {
  constructor(receiver) {
    this.receiver = receiver;
    this.arrived = [];
    this.waiting = [];
    receiver.on('message', (context) => {
      const taker = this.waiting.shift();
      if (taker) taker(context);
      else this.arrived.push(context);
    });
  }

  take() {
    const context = this.arrived.shift();
    if (context) return Promise.resolve(context);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  async bodies(count) {
    const found = [];
    while (found.length < count) found.push((await this.take()).message.body);
    return found;
  }
}

/** What one case has: an address of its own, and connections that end when it does. */
class Scene {
  constructor(name) {
    this.address = `rhea-${name.replace(/[^a-z]+/g, '-')}-${crypto.randomBytes(4).toString('hex')}`;
    this.endings = [];
  }

  /** Options of rhea's connect() for the broker, or for the strict one. */
  where(strict = false) {
    const url = new URL(process.env[strict ? 'BROKER_STRICT_URL' : 'BROKER_URL']);
    const options = { host: url.hostname, port: Number(url.port), reconnect: false };
    if (strict) {
      options.username = process.env.BROKER_USER;
      options.password = process.env.BROKER_PASSWORD;
    }
    return options;
  }

  /** A connection that is being opened; errors that nobody waits for are printed. */
  connecting(options) {
    const connection = rhea.create_container().connect(options);
    connection.on('disconnected', () => {});
    connection.container.on('error', (error) => console.error(error));
    this.endings.push(() => {
      connection.set_reconnect(false);
      connection.close();
    });
    return connection;
  }

  async connect(options = {}) {
    const connection = this.connecting({ ...this.where(), ...options });
    await next(connection, 'connection_open', 'connection_error', 'disconnected');
    return connection;
  }

  async sender(connection, options = this.address) {
    const sender = connection.open_sender(options);
    await next(sender, 'sendable', 'sender_error');
    return sender;
  }

  async receiver(connection, options = {}) {
    const wanted = { source: this.address, credit_window: 0, autoaccept: false, ...options };
    const receiver = connection.open_receiver(wanted);
    const inbox = new Inbox(receiver);
    await next(receiver, 'receiver_open', 'receiver_error');
    return [receiver, inbox];
  }

  /** Send `bodies`, one after another; all are accepted. */
  async fill(connection, ...bodies) {
    const sender = await this.sender(connection);
    for (const body of bodies) await accepted(sender, { body });
    sender.close();
  }

  /** What is left at `address`, seen by a browser that then goes. */
  async left(connection, address = this.address) {
    const source = { address, distribution_mode: 'copy' };
    const [receiver, inbox] = await this.receiver(connection, { source });
    receiver.add_credit(1000);
    receiver.drain_credit();
    await next(receiver, 'receiver_drained');
    receiver.close();
    return inbox.arrived.map((context) => context.message);
  }

  /** A port that passes everything on to the broker; `cut()` breaks its connections. */
  async relay() {
    const where = this.where();
    const sockets = new Set();
    const server = net.createServer((client) => {
      const broker = net.connect(where.port, where.host);
      for (const [from, to] of [[client, broker], [broker, client]]) {
        sockets.add(from);
        from.pipe(to);
        from.on('error', () => {});
        from.on('close', () => { sockets.delete(from); to.destroy(); });
      }
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.endings.push(() => server.close());
    const cut = () => sockets.forEach((socket) => socket.destroy());
    return { port: server.address().port, cut };
  }

  end() {
    this.endings.reverse().forEach((ending) => ending());
  }
}

/** Send `message`, and wait until it is accepted. */
async function accepted(sender, message) {
  const delivery = sender.send(message);
  for (;;) {
    const context = await next(sender, 'accepted', 'rejected', 'released', 'modified', 'sender_error');
    if (context.delivery === delivery) return;
  }
}

async function outcome({ name, body }) {
  const scene = new Scene(name);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished after ${SOON_MS} ms`)), SOON_MS);
  });
  try {
    await Promise.race([body(scene), late]);
    return null;
  } catch (error) {
    return error.stack;
  } finally {
    clearTimeout(timer);
    scene.end();
  }
}

/** Run the cases with these names side by side, and print what became of each. */
async function run(names) {
  await Promise.all(cases.filter(({ name }) => names.includes(name)).map(async (one) => {
    console.log(JSON.stringify({ case: one.name, problem: await outcome(one) }));
  }));
  process.exit(0);
}

module.exports = { Inbox, accepted, assert, next, rhea, run, shows };
