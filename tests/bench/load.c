/* load: a neutral AMQP 1.0 load client on Qpid Proton's proactor. It knows no broker and measures from outside.
 *
 *   load send    HOST:PORT ADDRESS COUNT [key=value ...]   one link sends COUNT messages; with links=N so does each of N
 *   load receive HOST:PORT ADDRESS COUNT [key=value ...]   one link receives and accepts COUNT messages
 *   load fanout  HOST:PORT ADDRESS COUNT [key=value ...]   ten links (links=10), each on a connection of its own, receive
 *                                                          COUNT messages each: ten subscribers in one process and one
 *                                                          thread, where ten processes would fight for the cores
 *   load idle    HOST:PORT COUNT                           COUNT connections with a session each, held (see idle.c)
 *   load idle-tls HOST:PORT COUNT                          the same over TLS 1.3
 *   load handshakes HOST:PORT COUNT RATE SOURCES           COUNT TLS handshakes, RATE a second (see knocking.c)
 *   load logins  HOST:PORT COUNT RATE SOURCES              COUNT logins with a wrong password
 *   load websocket COUNT SIZE                              COUNT messages into and out of WebSocket frames, without a peer
 *
 *     size=100         bytes of body, at least 16: they start with the time of sending and a running number
 *     durable=0        1: header.durable
 *     settled=0        1: the sender sends settled
 *     delay=0          ms: each message is due so long after its sending (x-opt-delivery-time); its body
 *                      then starts with the moment when it is due, so latency is lateness
 *     rate=0           messages a second, 0 = as fast as credit allows; for a receiver how fast it takes them
 *     credit=1000      a receiver's window
 *     commit=0         above 0 all is transacted, and committed every so many messages
 *     shared=0         1: the links of a fanout receive COUNT messages together, not each
 *     relay=0          above 0 a sender's link has no address: its messages name so many in turn in their property `to`,
 *                      ADDRESS.000000 and so on
 *     spread=1         how many addresses the links are spread over in turn, above 1 numbered: ADDRESS.0 to ADDRESS.N-1
 *     capability=      queue | topic on the terminus, or several, as topic,shared,global
 *     name= container= link name and container-id (numbered where there are several links; a name behind a "|" alike)
 *     durability=0     0 | 2: the source's terminus-durability; 2 goes with expiry-policy never
 *     user= password=  SASL PLAIN; without them ANONYMOUS
 *     tls=0            1: TLS, with whatever certificate the peer has
 *     websocket=0      1: WebSocket, for one link (see websocket.c)
 *     hold=0           1: a receiver ends in order when standard input closes, however far it is
 *     timeout=60       seconds without progress after which it gives up; with hold=1 seconds in all
 *
 * Says "attached" on standard error once every link is answered (a receiver's credit is out by then), and at the end
 * one JSON object on standard output. Exit status 1 where fewer than COUNT messages went through or the peer complained.
 * Build: client.py (Debian: libqpid-proton11-dev, libssl-dev). */
#include "clock.h"
#include "figures.h"
#include "idle.h"
#include "knocking.h"
#include "options.h"
#include "sockets.h"
#include "transaction.h"
#include "websocket.h"

#include <proton/codec.h>
#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/delivery.h>
#include <proton/event.h>
#include <proton/link.h>
#include <proton/proactor.h>
#include <proton/sasl.h>
#include <proton/session.h>
#include <proton/ssl.h>
#include <proton/terminus.h>
#include <proton/transport.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STAMPS_SHARED_BY = 16, RELAY_DIGITS = 6, SESSION_BYTES = 1 << 22, ADDRESS_BYTES = 256 };

/* One connection with one session and one link: what a client application would have. */
struct lane {
  pn_connection_t *connection;
  pn_link_t *link;
  char name[NAME_BYTES], container[NAME_BYTES], address[ADDRESS_BYTES];
  long sent;
  long done;     /* settled by the peer (sender), taken (receiver) */
  int64_t last_number; /* the running number last taken: they must rise */
  bool open, attached;
  struct transaction transaction;
};

struct load {
  struct options options;
  pn_proactor_t *proactor;
  struct lane *lanes;
  int lanes_open, lanes_attached;
  pn_ssl_domain_t *tls; /* NULL without TLS */
  long done, not_accepted, disordered, early;
  char *message, *scratch, *due, *turn; /* where a message says when it is due, and the digits of its address */
  size_t message_bytes, scratch_bytes;
  uint64_t *latency_ns;
  int64_t started_ns, first_ns, last_ns, progress_ns;
  bool failed, stopping;
};

static void *allocated(void *memory) {
  if (!memory) {
    fprintf(stderr, "out of memory\n");
    exit(1);
  }
  return memory;
}

static bool finished(const struct load *load, const struct lane *lane) {
  return lane->done >= load->options.count && transaction_over(&lane->transaction);
}

/* How many messages the rate allows by now, the first one at `first_ns`. */
static long allowed_by(const struct load *load, int64_t now) {
  if (load->options.rate <= 0) return load->options.count;
  if (!load->first_ns) return 0;
  long allowed = (long)((now - load->first_ns) / 1e9 * load->options.rate) + 1;
  return allowed < load->options.count ? allowed : load->options.count;
}

/* ---- sending ---- */

/* The properties of a message to the relay: message-id and user-id null, then the address. Returns their size. */
static size_t encode_to(const struct load *load, char *properties) {
  if (!load->options.relay) return 0;
  size_t address = (size_t)snprintf(properties + 10, ADDRESS_BYTES, "%s.%06d", load->options.address, 0);
  if (address > 200) {
    fprintf(stderr, "an address of at most 193 bytes, please\n");
    exit(2);
  }
  const char begin[] = {0x00, 0x53, 0x73, (char)0xc0, (char)(address + 5), 3, 0x40, 0x40, (char)0xa1, (char)address};
  memcpy(properties, begin, sizeof begin);
  return sizeof begin + address;
}

/* One message is encoded once, header, delivery time and address if any, and one data section; only these change. */
static void encode_message(struct load *load) {
  uint32_t size = (uint32_t)load->options.size;
  const char header[] = {0x00, 0x53, 0x70, (char)0xc0, 2, 1, load->options.durable ? 0x41 : 0x42};
  const char data[] = {0x00, 0x53, 0x75, (char)0xb0, (char)(size >> 24), (char)(size >> 16), (char)(size >> 8), (char)size};
  /* a map of one pair: a symbol of 19 characters, a long */
  const char annotations[] = "\x00\x53\x72\xc1\x1f\x02\xa3\x13x-opt-delivery-time\x81........";
  size_t annotated = load->options.delay_ms ? sizeof annotations - 1 : 0;
  char properties[10 + ADDRESS_BYTES];
  size_t addressed = encode_to(load, properties);
  load->message_bytes = sizeof header + annotated + addressed + sizeof data + size;
  load->message = allocated(malloc(load->message_bytes));
  memcpy(load->message, header, sizeof header);
  memcpy(load->message + sizeof header, annotations, annotated);
  char *body = load->message + load->message_bytes - size;
  memcpy(body - sizeof data - addressed, properties, addressed);
  memcpy(body - sizeof data, data, sizeof data);
  memset(body, 'x', size);
  load->turn = body - sizeof data - RELAY_DIGITS;
  load->due = load->message + sizeof header + annotated - sizeof(int64_t);
}

/* Puts the message off, and says when it is due. */
static int64_t put_off(struct load *load, int64_t stamp) {
  int64_t due_ms = stamp / 1000000 + load->options.delay_ms;
  for (int i = 0; i < 8; i++) load->due[i] = (char)(due_ms >> (56 - 8 * i));
  return due_ms * 1000000;
}

/* Writes the number of the address whose turn it is. */
static void take_turn(struct load *load, long number) {
  for (int i = RELAY_DIGITS - 1; i >= 0; i--, number /= 10) load->turn[i] = (char)('0' + number % 10);
}

static void send_one(struct load *load, struct lane *lane, int64_t stamp) {
  int64_t number = lane->sent++;
  if (load->options.delay_ms) stamp = put_off(load, stamp);
  if (load->options.relay) take_turn(load, (long)(number % load->options.relay));
  char *body = load->message + load->message_bytes - load->options.size;
  memcpy(body, &stamp, sizeof stamp);
  memcpy(body + sizeof stamp, &number, sizeof number);
  pn_delivery_t *delivery = pn_delivery(lane->link, pn_dtag((const char *)&number, sizeof number));
  if (lane->transaction.every) transaction_add(&lane->transaction, delivery, false);
  pn_link_send(lane->link, load->message, load->message_bytes);
  if (load->options.settled) {
    pn_delivery_settle(delivery);
    lane->done++;
    load->done++;
  } else {
    pn_link_advance(lane->link);
  }
  transaction_count(&lane->transaction, lane->sent == load->options.count);
}

static void send_some(struct load *load, struct lane *lane) {
  struct transaction *transaction = &lane->transaction;
  if (!lane->link || pn_link_credit(lane->link) <= 0 || !transaction_ready(transaction)) return;
  int64_t now = now_ns();
  if (!load->first_ns) load->first_ns = now;
  long allowed = allowed_by(load, now);
  for (int burst = 0; lane->sent < allowed && pn_link_credit(lane->link) > 0 && transaction_ready(transaction); burst++) {
    if (load->options.rate > 0 || burst % STAMPS_SHARED_BY == 0) now = now_ns();
    send_one(load, lane, now);
    load->progress_ns = now;
  }
  if (load->options.settled && finished(load, lane) && lane->open) {
    lane->open = false;
    load->last_ns = now_ns();
    pn_connection_close(lane->connection);
  }
}

static void note_outcome(struct load *load, struct lane *lane, pn_delivery_t *delivery) {
  if (!pn_delivery_updated(delivery)) return;
  bool transacted = lane->transaction.every > 0;
  if (transacted ? !transaction_accepted(delivery) : pn_delivery_remote_state(delivery) != PN_ACCEPTED) load->not_accepted++;
  pn_delivery_settle(delivery);
  lane->done++;
  load->done++;
  load->progress_ns = load->last_ns = now_ns();
  if (finished(load, lane)) pn_connection_close(lane->connection);
}

/* An answer of the coordinator; the last commit ends the work of a link. */
static void note_command(struct load *load, struct lane *lane, pn_delivery_t *command) {
  transaction_answer(&lane->transaction, command);
  if (lane->transaction.failed && !load->failed) {
    fprintf(stderr, "the coordinator refused a command\n");
    load->failed = true;
  }
  load->progress_ns = load->last_ns = now_ns();
  if (load->failed || finished(load, lane)) pn_connection_close(lane->connection);
}

/* ---- receiving ---- */

static void read_stamp(struct load *load, struct lane *lane, const char *message, size_t bytes, int64_t now) {
  int64_t stamp = now, number = lane->last_number;
  if (bytes >= (size_t)load->options.size) {
    const char *body = message + bytes - load->options.size;
    memcpy(&stamp, body, sizeof stamp);
    memcpy(&number, body + sizeof stamp, sizeof number);
  }
  if (number <= lane->last_number) load->disordered++;
  lane->last_number = number;
  if (now < stamp) load->early++;
  load->latency_ns[load->done] = now > stamp ? (uint64_t)(now - stamp) : 0;
}

static void take(struct load *load, struct lane *lane, pn_delivery_t *delivery) {
  size_t waiting = pn_delivery_pending(delivery);
  if (waiting > load->scratch_bytes) {
    load->scratch_bytes = waiting * 2;
    load->scratch = allocated(realloc(load->scratch, load->scratch_bytes));
  }
  ssize_t got = pn_link_recv(lane->link, load->scratch, waiting);
  int64_t now = now_ns();
  read_stamp(load, lane, load->scratch, got > 0 ? (size_t)got : 0, now);
  pn_link_advance(lane->link);
  if (lane->transaction.every) transaction_add(&lane->transaction, delivery, true);
  else if (!pn_delivery_settled(delivery)) pn_delivery_update(delivery, PN_ACCEPTED);
  pn_delivery_settle(delivery);
  if (!load->first_ns) load->first_ns = now;
  load->last_ns = load->progress_ns = now;
  load->done++;
  int missing = load->options.credit - pn_link_credit(lane->link);
  if (missing > load->options.credit / 2) pn_link_flow(lane->link, missing);
  lane->done++;
  transaction_count(&lane->transaction, lane->done >= load->options.count);
  if (finished(load, lane)) pn_connection_close(lane->connection);
}

/* Where the links share COUNT messages: closes all of them after the last one. */
static void end_together(struct load *load) {
  load->stopping = true;
  for (int i = 0; i < load->options.links; i++)
    if (load->lanes[i].open) pn_connection_wake(load->lanes[i].connection);
}

/* Takes what has arrived whole and, on a receiver with a rate, is due. */
static void take_some(struct load *load, struct lane *lane) {
  if (!lane->link) return;
  pn_delivery_t *delivery;
  while (load->done < total(&load->options) && lane->done < load->options.count && transaction_ready(&lane->transaction) &&
         (delivery = pn_link_current(lane->link)) != NULL) {
    if (!pn_delivery_readable(delivery) || pn_delivery_partial(delivery)) return;
    if (!load->first_ns) load->first_ns = now_ns();
    if (load->options.rate > 0 && load->done >= allowed_by(load, now_ns())) return;
    take(load, lane, delivery);
  }
  if (load->options.shared && load->done >= total(&load->options)) end_together(load);
}

/* ---- connections ---- */

static void set_terminus(const struct options *options, const char *address, pn_terminus_t *terminus) {
  pn_terminus_set_address(terminus, address);
  if (options->durability) {
    pn_terminus_set_durability(terminus, (pn_durability_t)options->durability);
    pn_terminus_set_expiry_policy(terminus, PN_EXPIRE_NEVER);
  }
  if (*options->capability) {
    pn_data_t *capabilities = pn_terminus_capabilities(terminus);
    pn_data_put_array(capabilities, false, PN_SYMBOL);
    pn_data_enter(capabilities);
    for (const char *each = options->capability; *each;) {
      size_t length = strcspn(each, ",");
      pn_data_put_symbol(capabilities, pn_bytes(length, each));
      each += length + (each[length] == ',');
    }
    pn_data_exit(capabilities);
  }
}

/* Opens everything at once; the frames are pipelined, as AMQP allows. */
static void open_lane(const struct options *options, struct lane *lane) {
  pn_connection_set_container(lane->connection, lane->container);
  pn_connection_set_hostname(lane->connection, "localhost");
  if (options->user) {
    pn_connection_set_user(lane->connection, options->user);
    pn_connection_set_password(lane->connection, options->password ? options->password : "");
  }
  pn_connection_open(lane->connection);
  pn_session_t *session = pn_session(lane->connection);
  pn_session_set_incoming_capacity(session, SESSION_BYTES);
  pn_session_open(session);
  lane->link = options->sending ? pn_sender(session, lane->name) : pn_receiver(session, lane->name);
  if (options->relay) pn_terminus_set_type(pn_link_target(lane->link), PN_TARGET);
  else set_terminus(options, lane->address, options->sending ? pn_link_target(lane->link) : pn_link_source(lane->link));
  pn_link_set_snd_settle_mode(lane->link, options->settled ? PN_SND_SETTLED : PN_SND_UNSETTLED);
  pn_link_open(lane->link);
  if (!options->sending) pn_link_flow(lane->link, options->credit);
  lane->transaction.every = options->commit;
  transaction_attach(&lane->transaction, session);
}

static void note_attached(struct load *load, struct lane *lane) {
  pn_terminus_t *answer = load->options.sending ? pn_link_remote_target(lane->link) : pn_link_remote_source(lane->link);
  if (lane->attached || pn_terminus_get_type(answer) == PN_UNSPECIFIED) return; /* null: refused, a detach follows */
  lane->attached = true;
  if (++load->lanes_attached == load->options.links) fprintf(stderr, "attached\n");
}

static void complain(struct load *load, const char *where, pn_condition_t *condition) {
  if (!pn_condition_is_set(condition)) return;
  const char *description = pn_condition_get_description(condition);
  fprintf(stderr, "%s: %s: %s\n", where, pn_condition_get_name(condition), description ? description : "");
  load->failed = true;
}

static struct lane *lane_of(pn_event_t *event) {
  pn_connection_t *connection = pn_event_connection(event);
  return connection ? pn_connection_get_context(connection) : NULL;
}

/* ---- time ---- */

static pn_millis_t tick_ms(const struct options *options) {
  if (options->rate >= 1000) return 1;
  if (options->rate >= 10) return (pn_millis_t)(1000 / options->rate);
  return options->hold ? 100 : 1000;
}

/* Every tick: gives up where nothing moves. False to end. */
static bool is_patient(struct load *load) {
  int64_t since = load->options.hold ? load->started_ns : load->progress_ns;
  if (now_ns() - since > load->options.timeout_s * 1000000000LL) {
    fprintf(stderr, "no %s for %d s\n", load->options.hold ? "end" : "progress", load->options.timeout_s);
    load->failed = true;
    return false;
  }
  if (load->options.hold && input_closed_within(0)) load->stopping = true;
  return true;
}

/* Wakes the links, which may have something to do. */
static bool tick(struct load *load) {
  if (!is_patient(load)) return false;
  pn_proactor_set_timeout(load->proactor, tick_ms(&load->options));
  for (int i = 0; i < load->options.links; i++)
    if (load->lanes[i].open) pn_connection_wake(load->lanes[i].connection);
  return true;
}

static void work(struct load *load, struct lane *lane) {
  if (load->stopping) pn_connection_close(lane->connection);
  else if (load->options.sending) send_some(load, lane);
  else take_some(load, lane);
}

/* ---- events ---- */

static void handle_close(struct load *load, pn_event_t *event) {
  switch (pn_event_type(event)) {
  case PN_LINK_REMOTE_CLOSE:
  case PN_LINK_REMOTE_DETACH: complain(load, "link", pn_link_remote_condition(pn_event_link(event))); break;
  case PN_SESSION_REMOTE_CLOSE: complain(load, "session", pn_session_remote_condition(pn_event_session(event))); break;
  default: complain(load, "connection", pn_connection_remote_condition(pn_event_connection(event))); break;
  }
  pn_connection_close(pn_event_connection(event));
}

/* False when all is over. */
static bool handle(struct load *load, pn_event_t *event) {
  struct lane *lane = lane_of(event);
  switch (pn_event_type(event)) {
  case PN_CONNECTION_INIT: open_lane(&load->options, lane); break;
  case PN_CONNECTION_BOUND:
    pn_transport_require_auth(pn_event_transport(event), false);
    pn_sasl_set_allow_insecure_mechs(pn_sasl(pn_event_transport(event)), true);
    break;
  case PN_LINK_REMOTE_OPEN:
    if (pn_event_link(event) == lane->link) note_attached(load, lane);
    break;
  case PN_LINK_FLOW:
    if (pn_event_link(event) == lane->transaction.coordinator) transaction_credit(&lane->transaction);
    if (load->options.sending) send_some(load, lane);
    break;
  case PN_DELIVERY:
    if (pn_event_link(event) == lane->transaction.coordinator) note_command(load, lane, pn_event_delivery(event));
    else if (load->options.sending) note_outcome(load, lane, pn_event_delivery(event));
    work(load, lane);
    break;
  case PN_CONNECTION_WAKE: work(load, lane); break;
  case PN_PROACTOR_TIMEOUT: return tick(load);
  case PN_LINK_REMOTE_CLOSE:
  case PN_LINK_REMOTE_DETACH:
  case PN_SESSION_REMOTE_CLOSE:
  case PN_CONNECTION_REMOTE_CLOSE: handle_close(load, event); break;
  case PN_TRANSPORT_CLOSED:
    complain(load, "transport", pn_transport_condition(pn_event_transport(event)));
    lane->open = false;
    lane->link = NULL;
    return --load->lanes_open > 0 && !load->failed;
  default: break;
  }
  return true;
}

/* What all connections know of TLS. The certificate is not checked: speed is measured here, between two programs. */
static pn_ssl_domain_t *tls_domain(void) {
  pn_ssl_domain_t *domain = pn_ssl_domain(PN_SSL_MODE_CLIENT);
  if (!domain || pn_ssl_domain_set_peer_authentication(domain, PN_SSL_ANONYMOUS_PEER, NULL)) {
    fprintf(stderr, "this proton has no TLS\n");
    exit(1);
  }
  return domain;
}

static void connect_lane(struct load *load, struct lane *lane) {
  pn_transport_t *transport = NULL;
  if (load->tls) {
    transport = pn_transport();
    pn_ssl_init(pn_ssl(transport), load->tls, NULL);
  }
  pn_proactor_connect2(load->proactor, lane->connection, transport, load->options.peer);
}

static bool handle_alone(void *load, pn_event_t *event) { return handle(load, event); }

static bool tick_alone(void *context) {
  struct load *load = context;
  if (!is_patient(load)) return false;
  work(load, &load->lanes[0]);
  return true;
}

static void run_on_websocket(struct load *load) {
  struct websocket_client client = {
    .context = load, .handle = handle_alone, .tick = tick_alone, .tick_ms = (int)tick_ms(&load->options)};
  if (!run_websocket(load->lanes[0].connection, load->options.peer, &client)) load->failed = true;
}

static void set_up_lane(struct load *load, int i) {
  struct lane *lane = &load->lanes[i];
  lane->connection = pn_connection();
  lane->open = true;
  lane->last_number = -1;
  snprintf(lane->name, NAME_BYTES, i ? "%s-%d" : "%s", load->options.name, i);
  snprintf(lane->container, NAME_BYTES, i ? "%s-%d" : "%s", load->options.container, i);
  snprintf(lane->address, ADDRESS_BYTES, load->options.spread > 1 ? "%s.%d" : "%s", load->options.address,
           i % load->options.spread);
  pn_connection_set_context(lane->connection, lane);
}

static void run_on_proactor(struct load *load) {
  load->proactor = pn_proactor();
  if (load->options.tls) load->tls = tls_domain();
  for (int i = 0; i < load->options.links; i++) connect_lane(load, &load->lanes[i]);
  pn_proactor_set_timeout(load->proactor, tick_ms(&load->options));
  for (bool going = true; going;) {
    pn_event_batch_t *batch = pn_proactor_wait(load->proactor);
    pn_event_t *event;
    while (going && (event = pn_event_batch_next(batch)) != NULL) going = handle(load, event);
    pn_proactor_done(load->proactor, batch);
  }
}

static void run(struct load *load) {
  for (int i = 0; i < load->options.links; i++) set_up_lane(load, i);
  load->lanes_open = load->options.links;
  if (load->options.websocket) run_on_websocket(load);
  else run_on_proactor(load);
}

/* ---- report ---- */

static void report(struct load *load) {
  double seconds = load->last_ns > load->first_ns ? (load->last_ns - load->first_ns) / 1e9 : 0;
  double cpu = cpu_seconds(); /* before sorting */
  printf("{\"operation\": \"%s\", \"count\": %ld, \"seconds\": %.4f, \"per_second\": %.0f", load->options.operation,
         load->done, seconds, seconds > 0 ? load->done / seconds : 0);
  if (load->options.sending) printf(", \"not_accepted\": %ld", load->not_accepted);
  else printf(", \"disordered\": %ld, \"early\": %ld", load->disordered, load->early);
  if (!load->options.sending && load->done) print_latencies(load->latency_ns, load->done);
  printf(", \"cpu_seconds\": %.3f, \"first_ns\": %lld, \"last_ns\": %lld}\n", cpu, (long long)load->first_ns,
         (long long)load->last_ns);
}

static bool known(const char *operation) {
  return !strcmp(operation, "send") || !strcmp(operation, "receive") || !strcmp(operation, "fanout");
}

int main(int argc, char **argv) {
  if (argc == 4 && !strcmp(argv[1], "idle")) return hold_idle(argv[2], atol(argv[3]), false);
  if (argc == 4 && !strcmp(argv[1], "idle-tls")) return hold_idle(argv[2], atol(argv[3]), true);
  if (argc == 6 && !strcmp(argv[1], "handshakes")) return knock(HANDSHAKE, argv[2], atol(argv[3]), atof(argv[4]), atoi(argv[5]));
  if (argc == 6 && !strcmp(argv[1], "logins")) return knock(LOGIN, argv[2], atol(argv[3]), atof(argv[4]), atoi(argv[5]));
  if (argc == 4 && !strcmp(argv[1], "websocket")) return measure_websocket(atol(argv[2]), atol(argv[3]));
  if (argc < 5 || !known(argv[1])) {
    fprintf(stderr, "usage: load send|receive|fanout HOST:PORT ADDRESS COUNT [key=value ...]\n"
                    "       load idle|idle-tls HOST:PORT COUNT\n"
                    "       load handshakes|logins HOST:PORT COUNT RATE SOURCES\n"
                    "       load websocket COUNT SIZE\n");
    return 2;
  }
  static struct load load;
  read_options(&load.options, argc, argv);
  load.lanes = allocated(calloc((size_t)load.options.links, sizeof *load.lanes));
  load.latency_ns = allocated(calloc((size_t)load.options.links * (size_t)load.options.count, sizeof *load.latency_ns));
  load.started_ns = load.progress_ns = now_ns();
  encode_message(&load);
  run(&load);
  report(&load);
  return load.failed || (!load.options.hold && load.done < total(&load.options));
}
