'use strict';
// What a Node.js program does to the broker with rhea. `node main.js "a name"` runs that case.

const childProcess = require('node:child_process');
const path = require('node:path');
const { promisify } = require('node:util');
const { Inbox, accepted, assert, next, rhea, run, shows } = require('./harness.js');
require('./secured.js');

const { message: section, types } = rhea;
const execFile = promisify(childProcess.execFile);

// ---- connections

shows("a user's name and password are taken", "", async (scene) => {
  await scene.connect(scene.where(true));
});

shows("a wrong password is refused", "", async (scene) => {
  const options = { ...scene.where(true), password: 'wrong' };
  const { error } = await next(scene.connecting(options), 'connection_error');
  assert.match(String(error), /authenticate/i);
});

shows("what the broker offers is seen", "", async (scene) => {
  const connection = await scene.connect();
  const offered = connection.offered_capabilities.map(String);
  assert.ok(offered.includes('ANONYMOUS-RELAY'), String(offered));
});

shows("an idle connection is kept by empty frames", "", async (scene) => {
  const connection = await scene.connect({ ...scene.where(true), idle_time_out: 2000 });
  assert.ok(connection.idle_time_out <= 2000);
  await new Promise((resolve) => setTimeout(resolve, 2 * connection.idle_time_out + 500));
  await scene.fill(connection, 'still here');
});

// ---- messages

const BODIES = {
  text: 'grün ✓ 🐇',
  number: 42,
  fraction: 1.5,
  yes: true,
  nothing: null,
  list: [1, 'two', [3]],
  map: { one: 1, deep: { two: '2' } },
};

shows("bodies of every kind arrive as they were sent", "PRD-05", async (scene) => {
  const connection = await scene.connect();
  await scene.fill(connection, ...Object.values(BODIES));
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(100);
  assert.deepEqual(await inbox.bodies(Object.keys(BODIES).length), Object.values(BODIES));
});

shows("data and sequences may come in several sections", "PRD-05", async (scene) => {
  const connection = await scene.connect();
  const data = [Buffer.from('one'), Buffer.from([0, 255])];
  const lists = [[1, 2], ['three']];
  await scene.fill(connection, section.data_sections(data), section.sequence_sections(lists));
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(2);
  const bodies = await inbox.bodies(2);
  assert.deepEqual(bodies.map((body) => [body.typecode, body.content]), [[0x75, data], [0x76, lists]]);
});

shows("every property and annotation arrives", "PRD-05", async (scene) => {
  const connection = await scene.connect();
  const sent = {
    message_id: 'id-1', user_id: Buffer.from('me'), to: scene.address, subject: 'a subject',
    reply_to: 'answers', correlation_id: 7, content_type: 'text/plain', content_encoding: 'gzip',
    absolute_expiry_time: 4102444800000, creation_time: 1700000000000, group_id: 'g',
    group_sequence: 3, reply_to_group_id: 'h', durable: true, priority: 7,
    application_properties: { text: 'x', number: 1, yes: true },
    message_annotations: { 'x-opt-own': 'kept' }, body: 'b',
  };
  await accepted(await scene.sender(connection), sent);
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(1);
  const { message } = await inbox.take();
  for (const [name, value] of Object.entries(sent)) {
    const found = message[name] instanceof Date ? message[name].getTime() : message[name];
    assert.deepEqual(found, value, name);
  }
});

// rhea writes a footer before the body, where the specification has it last (core 3.2).
shows("sections in another order are rejected, and the link goes on", "", async (scene) => {
  const sender = await scene.sender(await scene.connect());
  sender.send({ footer: { 'x-sum': 12 }, body: 'b' });
  const { delivery } = await next(sender, 'rejected', 'accepted', 'sender_error');
  assert.equal(delivery.remote_state.error.value[0].value, 'amqp:decode-error');
  await accepted(sender, { body: 'c' });
});

shows("a large message goes both ways in many frames", "PRD-05", async (scene) => {
  const connection = await scene.connect({ max_frame_size: 4096 });
  const body = Buffer.alloc(5 * 1024 * 1024, 'abcdefg');
  await scene.fill(connection, section.data_section(body), 'behind');
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(2);
  assert.ok((await inbox.take()).message.body.content.equals(body));
  assert.deepEqual(await inbox.bodies(1), ['behind']);
});

shows("a message beyond the limit ends its link", "", async (scene) => {
  const connection = await scene.connect(scene.where(true));
  const sender = await scene.sender(connection);
  assert.equal(Number(sender.max_message_size), 1000000);
  sender.send({ body: section.data_section(Buffer.alloc(1500000)) });
  await next(sender, 'sender_error');
  assert.equal(sender.error.condition, 'amqp:link:message-size-exceeded');
  await scene.fill(connection, 'goes on');
});

shows("three thousand messages in flight keep their order", "", async (scene) => {
  const connection = await scene.connect();
  const sender = await scene.sender(connection);
  const count = 3000;
  let sent = 0;
  let told = 0;
  const all = new Promise((resolve) => {
    const send = () => {
      while (sent < count && sender.sendable()) sender.send({ body: sent++ });
    };
    sender.on('sendable', send);
    sender.on('accepted', () => { if (++told === count) resolve(); else send(); });
    send();
  });
  const [, inbox] = await scene.receiver(connection, { credit_window: 50, autoaccept: true });
  assert.deepEqual(await inbox.bodies(count), Array.from({ length: count }, (_, index) => index));
  await all;
});

shows("messages that are sent settled arrive", "", async (scene) => {
  const connection = await scene.connect();
  const sender = await scene.sender(connection, { target: scene.address, snd_settle_mode: 1 });
  for (const body of ['a', 'b', 'c']) assert.equal(sender.send({ body }).settled, true);
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(3);
  assert.deepEqual(await inbox.bodies(3), ['a', 'b', 'c']);
});

// ---- outcomes

/** The first two messages of three, received and not settled. */
async function two(scene) {
  const connection = await scene.connect();
  await scene.fill(connection, 'a', 'b', 'c');
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(2);
  return { connection, receiver, inbox, first: await inbox.take(), second: await inbox.take() };
}

/** The bodies that are left once the receiver of `two` has gone. */
async function after(scene, { connection, receiver }) {
  receiver.close();
  await next(receiver, 'receiver_close');
  return (await scene.left(connection)).map((message) => message.body);
}

shows("accepted: the message is gone", "RCV-02", async (scene) => {
  const state = await two(scene);
  state.second.delivery.accept();
  assert.deepEqual(await after(scene, state), ['a', 'c']);
});

shows("released: it comes again, in its place, uncounted", "RCV-01 RCV-02", async (scene) => {
  const state = await two(scene);
  state.first.delivery.release();
  state.receiver.add_credit(2);
  const { message } = await state.inbox.take();
  assert.deepEqual([message.body, message.delivery_count || 0], ['a', 0]);
  assert.deepEqual(await state.inbox.bodies(1), ['c']);
});

shows("modified as failed: it comes again, counted", "RCV-01 RCV-02", async (scene) => {
  const state = await two(scene);
  state.first.delivery.modified({ delivery_failed: true });
  state.receiver.add_credit(1);
  const { message } = await state.inbox.take();
  assert.deepEqual([message.body, message.delivery_count], ['a', 1]);
});

shows("modified as undeliverable here: another receiver gets it", "RCV-02", async (scene) => {
  const state = await two(scene);
  state.first.delivery.modified({ undeliverable_here: true });
  state.receiver.add_credit(1);
  assert.deepEqual(await state.inbox.bodies(1), ['c']);
  const [other, elsewhere] = await scene.receiver(state.connection);
  other.add_credit(1);
  assert.deepEqual(await elsewhere.bodies(1), ['a']);
});

shows("rejected: it is found among the dead letters", "RCV-02", async (scene) => {
  const state = await two(scene);
  const body = `rejected of ${scene.address}`;
  await scene.fill(state.connection, body);
  state.receiver.add_credit(2);
  await state.inbox.take();
  const { delivery } = await state.inbox.take();
  delivery.reject({ condition: 'app:no', description: 'not wanted' });
  assert.deepEqual(await after(scene, state), ['a', 'b', 'c']);
  const dead = await scene.left(state.connection, 'DLQ');
  assert.ok(dead.some((message) => message.body === body));
});

shows("deliveries are settled in any order", "RCV-02", async (scene) => {
  const state = await two(scene);
  state.receiver.add_credit(1);
  (await state.inbox.take()).delivery.accept();
  state.first.delivery.accept();
  assert.deepEqual(await after(scene, state), ['b']);
});

shows("a receiver that settles second is answered", "", async (scene) => {
  const connection = await scene.connect();
  await scene.fill(connection, 'a');
  const [receiver, inbox] = await scene.receiver(connection, { rcv_settle_mode: 1 });
  receiver.add_credit(1);
  const { delivery } = await inbox.take();
  delivery.accept();
  await next(receiver, 'settled');
  assert.equal(delivery.remote_settled, true);
  assert.deepEqual(await scene.left(connection), []);
});

shows("what a receiver leaves unsettled comes again", "RCV-08", async (scene) => {
  const state = await two(scene);
  assert.deepEqual(await after(scene, state), ['a', 'b', 'c']);
});

// ---- credit

shows("no more comes than there is credit", "", async (scene) => {
  const connection = await scene.connect();
  await scene.fill(connection, 'a', 'b', 'c');
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(1);
  assert.deepEqual(await inbox.bodies(1), ['a']);
  receiver.add_credit(1);
  assert.deepEqual(await inbox.bodies(1), ['b']);
  assert.equal(inbox.arrived.length, 0);
});

shows("a drain gives what there is, and takes the credit back", "", async (scene) => {
  const connection = await scene.connect();
  await scene.fill(connection, 'a', 'b');
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(10);
  receiver.drain_credit();
  await next(receiver, 'receiver_drained');
  assert.deepEqual(inbox.arrived.map(({ message }) => message.body), ['a', 'b']);
  assert.equal(receiver.credit, 0);
});

shows("a drain of an empty queue is answered, and the link goes on", "", async (scene) => {
  const connection = await scene.connect();
  const [receiver, inbox] = await scene.receiver(connection);
  receiver.add_credit(10);
  receiver.drain_credit();
  await next(receiver, 'receiver_drained');
  receiver.drain = false;
  receiver.add_credit(1);
  await scene.fill(connection, 'later');
  assert.deepEqual(await inbox.bodies(1), ['later']);
});

// ---- addresses

shows("a missing address is refused, and the connection goes on", "DST-02", async (scene) => {
  const connection = await scene.connect(scene.where(true));
  const address = `closed.${scene.address}`;
  const receiver = connection.open_receiver(address);
  await next(receiver, 'receiver_error');
  assert.equal(receiver.error.condition, 'amqp:not-found');
  const sender = connection.open_sender(address);
  await next(sender, 'sender_error');
  assert.equal(sender.error.condition, 'amqp:not-found');
  await scene.fill(connection, 'goes on');
});

shows("every subscriber of a topic gets a message", "DST-01", async (scene) => {
  const connection = await scene.connect();
  const topic = { address: scene.address, capabilities: ['topic'] };
  const [one, first] = await scene.receiver(connection, { source: topic });
  const [other, second] = await scene.receiver(connection, { source: topic });
  one.add_credit(1);
  other.add_credit(1);
  await accepted(await scene.sender(connection, { target: topic }), { body: 'news' });
  assert.deepEqual([await first.bodies(1), await second.bodies(1)], [['news'], ['news']]);
});

shows("a browser takes nothing", "RCV-04", async (scene) => {
  const connection = await scene.connect();
  await scene.fill(connection, 'a', 'b');
  const seen = () => scene.left(connection).then((left) => left.map(({ body }) => body));
  assert.deepEqual([await seen(), await seen()], [['a', 'b'], ['a', 'b']]);
});

shows("the anonymous relay sends each message where it says", "PRD-01", async (scene) => {
  const connection = await scene.connect();
  const sender = await scene.sender(connection, { target: {} });
  await accepted(sender, { to: `${scene.address}-1`, body: 'one' });
  await accepted(sender, { to: `${scene.address}-2`, body: 'two' });
  for (const [number, body] of [[1, 'one'], [2, 'two']]) {
    const left = await scene.left(connection, `${scene.address}-${number}`);
    assert.deepEqual(left.map((message) => message.body), [body]);
  }
});

shows("the anonymous relay rejects what it cannot send on", "PRD-02", async (scene) => {
  const connection = await scene.connect(scene.where(true));
  const sender = await scene.sender(connection, { target: {} });
  sender.send({ to: `closed.${scene.address}`, body: 'nowhere' });
  const { delivery } = await next(sender, 'rejected', 'accepted', 'sender_error');
  assert.equal(delivery.remote_state.error.condition, 'amqp:not-found');
  await accepted(sender, { to: scene.address, body: 'somewhere' });
});

shows("a request is answered at a temporary address", "TMP-01", async (scene) => {
  const server = await scene.connect();
  const [requests, served] = await scene.receiver(server);
  requests.add_credit(1);
  const client = await scene.connect();
  const made = await scene.sender(client, {
    target: {
      dynamic: true,
      expiry_policy: 'link-detach',
      dynamic_node_properties: { 'lifetime-policy': types.wrap_described(types.wrap_list([]), 0x2b) },
      capabilities: ['temporary-queue'],
    },
  });
  const reply_to = made.target.address;
  const [answers, inbox] = await scene.receiver(client, { source: reply_to });
  answers.add_credit(1);
  await accepted(await scene.sender(client), { reply_to, body: 'ping' });
  const { message } = await served.take();
  await accepted(await scene.sender(server, message.reply_to), { body: `${message.body} pong` });
  assert.deepEqual(await inbox.bodies(1), ['ping pong']);
});

// ---- lost connections

shows("after a lost connection rhea goes on by itself", "RCV-08", async (scene) => {
  const relay = await scene.relay();
  const connection = await scene.connect({ port: relay.port, reconnect: 10 });
  await scene.fill(connection, 'a', 'b');
  const [receiver, inbox] = await scene.receiver(connection, { credit_window: 10 });
  assert.deepEqual(await inbox.bodies(2), ['a', 'b']);
  const again = next(receiver, 'receiver_open');
  relay.cut();
  await again;
  const bodies = [];
  while (bodies.length < 2) {
    const { message, delivery } = await inbox.take();
    bodies.push(message.body);
    delivery.accept();
  }
  assert.deepEqual(bodies, ['a', 'b']);
  await scene.fill(connection, 'c');
  assert.deepEqual(await inbox.bodies(1), ['c']);
});

shows("a sender whose connection is lost sends again", "", async (scene) => {
  const relay = await scene.relay();
  const connection = await scene.connect({ port: relay.port, reconnect: 10 });
  const sender = await scene.sender(connection);
  await accepted(sender, { body: 'before' });
  const sendable = next(sender, 'sendable');
  relay.cut();
  await sendable;
  await accepted(sender, { body: 'after' });
  const left = await scene.left(connection);
  assert.deepEqual(left.map((message) => message.body), ['before', 'after']);
});

shows("a link that is stolen is told so", "SUB-37", async (scene) => {
  const name = `link of ${scene.address}`;
  const mine = await scene.connect({ container_id: scene.address });
  const thief = await scene.connect({ container_id: scene.address });
  const source = { address: scene.address };
  const stolen = mine.open_receiver({ name, source, credit_window: 0 });
  await next(stolen, 'receiver_open');
  const receiver = thief.open_receiver({ name, source, credit_window: 0 });
  const inbox = new Inbox(receiver);
  await Promise.all([next(stolen, 'receiver_error'), next(receiver, 'receiver_open')]);
  assert.equal(stolen.error.condition, 'amqp:link:stolen');
  await scene.fill(thief, 'a');
  receiver.add_credit(1);
  assert.deepEqual(await inbox.bodies(1), ['a']);
});

// ---- the programs of docs/start/javascript.md

/** What the program `file` prints; it ends with status 0. */
async function printed(scene, file) {
  const env = { ...process.env, JMS_BROKER_URL: process.env.BROKER_URL };
  const { stdout } = await execFile('node', [path.join(__dirname, file), scene.address], { env });
  return stdout.trim().split('\n');
}

shows("the program that sends and receives", "", async (scene) => {
  assert.deepEqual(await printed(scene, 'hello.js'), ['the broker has the message', 'received world']);
});

shows("the program with a durable subscription", "SUB-02", async (scene) => {
  const topic = { address: scene.address, capabilities: ['topic'] };
  const subscriber = await scene.connect({ container_id: 'newspaper' });
  const source = { ...topic, durable: 2, expiry_policy: 'never' };
  const [receiver] = await scene.receiver(subscriber, { name: 'archive', source });
  receiver.detach();
  await next(receiver, 'receiver_close');
  const sender = await scene.sender(await scene.connect(), { target: topic });
  await accepted(sender, { body: 'it rains' });
  await accepted(sender, { body: 'the end' });
  const expected = ['subscribed', 'received it rains', 'received the end'];
  assert.deepEqual(await printed(scene, 'subscribe.js'), expected);
});

run(process.argv.slice(2));
