/* Each connection begins when it is due, however slow the peer is with those before it, as strangers do: at most PLACES
 * are open at a time, and one that finds no place is counted as crowded out and never begins. They come from addresses
 * 127.1.x.y in turn, since brokers limit what one address may do.
 *
 * A handshake is one whole handshake, then close_notify and the end of output; the peer answers with its own end, so it
 * must have completed the handshake before. A login sends everything at once, PLAIN with a name and password that are
 * wrong and differ from the last ones, and reads the outcome; a guesser does not wait long for one. */
#include "knocking.h"

#include "clock.h"
#include "figures.h"
#include "sockets.h"
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PLACES = 2048, EVENTS = 64, SWEEP_MS = 100, HANDSHAKE_MAX_MS = 10000, LOGIN_MAX_MS = 1000, ADDRESSES_MAX = 60000, ANSWER_BYTES = 1024, LOGIN_BYTES = 256 };
enum { SASL_OUTCOME = 0x44, CODES = 5 };

struct place {
  int socket; /* -1 where it is free */
  SSL *tls;
  long number;
  int64_t begun_ns;
  bool is_up; /* the handshake is done, or the login is sent */
  size_t size;
  char answer[ANSWER_BYTES];
};

struct knocker {
  enum knock kind;
  struct addrinfo *to;
  SSL_CTX *tls;
  struct place places[PLACES];
  int poll, sources, open, next_place;
  int64_t sweep_ns;
  long begun, done, failed, unanswered, crowded;
  long codes[CODES]; /* of the outcomes of logins */
  uint64_t *latency_ns;
};

static bool bind_source(int descriptor, long number) {
  struct sockaddr_in source = {.sin_family = AF_INET};
  int yes = 1;
  setsockopt(descriptor, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof yes);
  source.sin_addr.s_addr = htonl(0x7f010000u + 1 + (uint32_t)number);
  return !bind(descriptor, (struct sockaddr *)&source, sizeof source);
}

/* Everything that a client says until its login is refused. */
static size_t encode_login(char *into, long number) {
  const char header[] = {'A', 'M', 'Q', 'P', 3, 1, 0, 0};
  char response[64] = {0};
  int user = snprintf(response + 1, 24, "stranger-%ld", number);
  int password = snprintf(response + 2 + user, 24, "guess-%ld", number);
  size_t size = (size_t)(user + password + 2);
  memcpy(into, header, sizeof header);
  char *frame = into + sizeof header;
  /* a list of two: the symbol PLAIN, a binary */
  const char head[] = {0, 0, 0, 0, 2, 1, 0, 0, 0, 0x53, 0x41, (char)0xc0, 0, 2,
                       (char)0xa3, 5, 'P', 'L', 'A', 'I', 'N', (char)0xa0, (char)size};
  memcpy(frame, head, sizeof head);
  memcpy(frame + sizeof head, response, size);
  frame[3] = (char)(sizeof head + size); /* all of the frame */
  frame[12] = (char)(sizeof head + size - 13); /* what follows in the list */
  return sizeof header + sizeof head + size;
}

static void free_place(struct knocker *all, struct place *place) {
  SSL_free(place->tls);
  if (place->socket >= 0) close(place->socket);
  *place = (struct place){.socket = -1};
  all->open--;
}

static void leave(struct knocker *all, struct place *place, bool is_done) {
  if (is_done) all->latency_ns[all->done++] = (uint64_t)(now_ns() - place->begun_ns);
  else all->failed++;
  free_place(all, place);
}

/* Begins a connection in a free place. */
static void begin(struct knocker *all, struct place *place) {
  long number = place->number = all->begun++;
  place->begun_ns = now_ns();
  place->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  all->open++;
  bool is_under_way = place->socket >= 0 && bind_source(place->socket, number % all->sources) &&
                      (!connect(place->socket, all->to->ai_addr, all->to->ai_addrlen) || errno == EINPROGRESS);
  if (is_under_way && all->kind == HANDSHAKE) {
    place->tls = SSL_new(all->tls);
    is_under_way = place->tls && SSL_set_fd(place->tls, place->socket);
    if (is_under_way) SSL_set_connect_state(place->tls);
  }
  struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = place};
  is_under_way = is_under_way && !epoll_ctl(all->poll, EPOLL_CTL_ADD, place->socket, &wanted);
  if (!is_under_way) leave(all, place, false);
}

/* Reads what is there. False at the end of the connection. */
static bool read_on(struct place *place) {
  char bytes[ANSWER_BYTES];
  for (;;) {
    ssize_t got = recv(place->socket, bytes, sizeof bytes, 0);
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    size_t kept = sizeof place->answer - place->size;
    if ((size_t)got < kept) kept = (size_t)got;
    memcpy(place->answer + place->size, bytes, kept);
    place->size += kept;
  }
}

static void go_on_with_handshake(struct knocker *all, struct place *place) {
  if (!place->is_up) {
    int result = SSL_do_handshake(place->tls);
    int wanted = result == 1 ? SSL_ERROR_NONE : SSL_get_error(place->tls, result);
    if (wanted == SSL_ERROR_WANT_READ || wanted == SSL_ERROR_WANT_WRITE) return;
    if (wanted != SSL_ERROR_NONE) return leave(all, place, false);
    place->is_up = true;
    SSL_shutdown(place->tls);
    shutdown(place->socket, SHUT_WR);
  }
  if (!read_on(place)) leave(all, place, true);
}

/* The code of the outcome in the answer, which is its last byte but for what follows the frame; -1 where there is none. */
static int outcome_of(const struct place *place) {
  for (size_t at = 8; at + 8 <= place->size;) {
    const unsigned char *frame = (const unsigned char *)place->answer + at;
    size_t size = (size_t)frame[2] << 8 | frame[3];
    if (size < 8 || at + size > place->size) return -1;
    /* descriptor, then a list with the code as its first element */
    if (size > 15 && frame[10] == SASL_OUTCOME) {
      size_t list = frame[11] == 0xd0 ? 20 : 14;
      return list + 1 < size && frame[list] == 0x50 ? frame[list + 1] : -1;
    }
    at += size;
  }
  return -1;
}

static void go_on_with_login(struct knocker *all, struct place *place) {
  if (!place->is_up) {
    char said[LOGIN_BYTES];
    size_t size = encode_login(said, place->number);
    if (send(place->socket, said, size, MSG_NOSIGNAL) != (ssize_t)size) return leave(all, place, false);
    place->is_up = true;
  }
  bool is_open = read_on(place);
  int code = outcome_of(place);
  if (code >= 0 && code < CODES) all->codes[code]++;
  if (code >= 0 || !is_open) leave(all, place, code > 0);
}

/* Gives up those that have had no answer for too long. */
static void sweep(struct knocker *all, int64_t now) {
  int64_t patience_ns = (all->kind == HANDSHAKE ? HANDSHAKE_MAX_MS : LOGIN_MAX_MS) * 1000000LL;
  if (now < all->sweep_ns) return;
  all->sweep_ns = now + SWEEP_MS * 1000000LL;
  for (int i = 0; i < PLACES; i++) {
    struct place *place = &all->places[i];
    if (place->socket < 0 || now - place->begun_ns < patience_ns) continue;
    all->unanswered++;
    free_place(all, place);
  }
}

/* Waits at most so long, and goes on with each connection that can. */
static void attend(struct knocker *all, int milliseconds) {
  struct epoll_event events[EVENTS];
  int count = epoll_wait(all->poll, events, EVENTS, milliseconds);
  for (int i = 0; i < count; i++) {
    struct place *place = events[i].data.ptr;
    if (all->kind == HANDSHAKE) go_on_with_handshake(all, place);
    else go_on_with_login(all, place);
  }
  sweep(all, now_ns());
}

static struct place *free_one(struct knocker *all) {
  for (int i = 0; i < PLACES; i++) {
    struct place *place = &all->places[(all->next_place + i) % PLACES];
    if (place->socket >= 0) continue;
    all->next_place = (all->next_place + i + 1) % PLACES;
    return place;
  }
  return NULL;
}

static void begin_due(struct knocker *all, long due) {
  while (all->begun + all->crowded < due) {
    struct place *place = all->open < PLACES ? free_one(all) : NULL;
    if (place) begin(all, place);
    else all->crowded++;
  }
}

static void report(struct knocker *all, double seconds) {
  const char *operation = all->kind == HANDSHAKE ? "handshakes" : "logins";
  printf("{\"operation\": \"%s\", \"count\": %ld, \"seconds\": %.4f, \"per_second\": %.1f, \"failed\": %ld, \"unanswered\": %ld, \"crowded\": %ld",
         operation, all->done, seconds, (double)all->begun / seconds, all->failed, all->unanswered, all->crowded);
  if (all->kind == LOGIN) printf(", \"checked\": %ld, \"put_off\": %ld", all->codes[1], all->codes[4]);
  if (all->done) print_latencies(all->latency_ns, all->done);
  printf(", \"cpu_seconds\": %.3f}\n", cpu_seconds());
}

int knock(enum knock kind, const char *peer, long count, double rate, int sources) {
  static struct knocker all;
  all = (struct knocker){.kind = kind, .to = resolved(peer), .tls = tls_client(), .sources = sources};
  if (!all.to || count < 1 || rate <= 0 || sources < 1 || sources > ADDRESSES_MAX) {
    fprintf(stderr, "usage: load handshakes|logins HOST:PORT COUNT RATE SOURCES\n");
    return 2;
  }
  all.latency_ns = calloc((size_t)count, sizeof *all.latency_ns);
  raise_file_limit(PLACES);
  all.poll = epoll_create1(0);
  for (int i = 0; i < PLACES; i++) all.places[i].socket = -1;
  fprintf(stderr, "attached\n");
  int64_t start = now_ns();
  int64_t last = start;
  for (bool going = true; going || all.open;) {
    long due = (long)((double)(now_ns() - start) / 1e9 * rate) + 1;
    if (going) begin_due(&all, due < count ? due : count);
    attend(&all, 1);
    if (going) last = now_ns();
    going = going && due < count && !input_closed_within(0);
  }
  report(&all, (double)(last - start) / 1e9);
  freeaddrinfo(all.to);
  return all.done == 0;
}
