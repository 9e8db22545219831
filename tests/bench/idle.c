/* Many idle connections, light enough that ten thousand cost the client almost nothing: plain sockets, or OpenSSL's
 * objects on them, and frames made by hand. Each goes the way that a client library goes, step by step: TLS if it is
 * wanted, SASL ANONYMOUS, open, begin. After that it is silent but for an empty frame every ten seconds, which keeps any
 * usual idle-time-out from striking. */
#include "idle.h"

#include "sockets.h"
#include "tls.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { FRAME_MAX = 65536, BATCH = 100, HEARTBEAT_MS = 10000, HOLD_MAX_S = 600, ANSWER_MAX_S = 20 };
enum { OPEN = 0x10, BEGIN = 0x11, SASL_MECHANISMS = 0x40, SASL_OUTCOME = 0x44, NO_PERFORMATIVE = 0, NOTHING = -1 };

static const char SASL_HEADER[] = {'A', 'M', 'Q', 'P', 3, 1, 0, 0};
static const char AMQP_HEADER[] = {'A', 'M', 'Q', 'P', 0, 1, 0, 0};
static const char EMPTY_FRAME[] = {0, 0, 0, 8, 2, 0, 0, 0};
static const char SASL_INIT[] = {0, 0, 0, 25, 2, 1, 0, 0, 0, 0x53, 0x41, (char)0xc0, 12, 1, (char)0xa3, 9,
                                 'A', 'N', 'O', 'N', 'Y', 'M', 'O', 'U', 'S'};
/* remote-channel null, next-outgoing-id 0, both windows 2048 */
static const char BEGIN_FRAME[] = {0, 0, 0, 26, 2, 0, 0, 0, 0, 0x53, 0x11, (char)0xc0, 13, 4, 0x40, 0x43,
                                   0x70, 0, 0, 8, 0, 0x70, 0, 0, 8, 0};

/* One connection; `tls` is NULL without TLS. */
struct line {
  int socket;
  SSL *tls;
};

static bool put(const struct line *line, const char *bytes, size_t size) {
  if (line->tls) return SSL_write(line->tls, bytes, (int)size) == (int)size;
  return send(line->socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

static bool get(const struct line *line, char *into, size_t size) {
  while (size) {
    ssize_t got = line->tls ? SSL_read(line->tls, into, (int)size) : recv(line->socket, into, size, 0);
    if (got <= 0) return false;
    into += got;
    size -= (size_t)got;
  }
  return true;
}

static bool get_header(const struct line *line, const char *expected) {
  char header[sizeof AMQP_HEADER];
  return get(line, header, sizeof header) && !memcmp(header, expected, sizeof header);
}

/* The descriptor of the next frame's performative, NO_PERFORMATIVE of an empty one, NOTHING where none came. For a
 * sasl-outcome that does not say ok: NOTHING. */
static int get_frame(const struct line *line) {
  static char frame[FRAME_MAX];
  if (!get(line, frame, 8)) return NOTHING;
  const unsigned char *head = (const unsigned char *)frame;
  uint32_t size = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
  uint32_t body = head[4] * 4u;
  if (size < 8 || size > FRAME_MAX || body < 8 || !get(line, frame + 8, size - 8)) return NOTHING;
  if (body + 3 > size) return NO_PERFORMATIVE;
  bool small = head[body + 1] == 0x53; /* else the 8 bytes of a full ulong */
  uint32_t last = body + (small ? 2 : 9);
  int descriptor = last < size ? head[last] : NOTHING;
  if (descriptor == SASL_OUTCOME && head[size - 1] != 0) return NOTHING; /* code 0, ok, comes last where it is alone */
  return descriptor;
}

static bool expect(const struct line *line, int descriptor) {
  int got;
  while ((got = get_frame(line)) == NO_PERFORMATIVE) continue;
  return got == descriptor;
}

static bool put_open(const struct line *line, long number) {
  char frame[64] = {0, 0, 0, 0, 2, 0, 0, 0, 0, 0x53, OPEN, (char)0xc0, 0, 1, (char)0xa1, 0};
  int name = snprintf(frame + 16, sizeof frame - 16, "idle-%d-%ld", (int)getpid(), number);
  frame[3] = (char)(16 + name);
  frame[12] = (char)(3 + name);
  frame[15] = (char)name;
  return put(line, frame, (size_t)(16 + name));
}

/* Connects, with TLS where there is a context for it. */
static bool connected(struct line *line, const struct addrinfo *to, SSL_CTX *tls) {
  struct timeval patience = {.tv_sec = ANSWER_MAX_S};
  line->socket = socket(to->ai_family, SOCK_STREAM, 0);
  if (line->socket < 0) return false;
  setsockopt(line->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(line->socket, to->ai_addr, to->ai_addrlen)) return false;
  if (!tls) return true;
  line->tls = SSL_new(tls);
  return line->tls && SSL_set_fd(line->tls, line->socket) && SSL_connect(line->tls) == 1;
}

/* What a client says and then waits for, one thing after the other. */
enum step { TO_SASL, TO_AUTHENTICATE, TO_AMQP, TO_OPEN, TO_BEGIN, STEPS };

static bool say(enum step step, const struct line *line, long number) {
  switch (step) {
  case TO_SASL: return put(line, SASL_HEADER, sizeof SASL_HEADER);
  case TO_AUTHENTICATE: return put(line, SASL_INIT, sizeof SASL_INIT);
  case TO_AMQP: return put(line, AMQP_HEADER, sizeof AMQP_HEADER);
  case TO_OPEN: return put_open(line, number);
  default: return put(line, BEGIN_FRAME, sizeof BEGIN_FRAME);
  }
}

static bool answered(enum step step, const struct line *line) {
  switch (step) {
  case TO_SASL: return get_header(line, SASL_HEADER) && expect(line, SASL_MECHANISMS);
  case TO_AUTHENTICATE: return expect(line, SASL_OUTCOME);
  case TO_AMQP: return get_header(line, AMQP_HEADER);
  case TO_OPEN: return expect(line, OPEN);
  default: return expect(line, BEGIN);
  }
}

/* Brings `count` connections up side by side, so that a peer's 40 ms of delayed acknowledgement are waited for once a
 * batch and not once a connection. Returns how many are up: all, or as far as every one got. */
static long open_batch(const struct addrinfo *to, SSL_CTX *tls, struct line *lines, long count, long first_number) {
  for (long i = 0; i < count; i++)
    if (!connected(&lines[i], to, tls)) return 0;
  for (enum step step = TO_SASL; step < STEPS; step++) {
    for (long i = 0; i < count; i++)
      if (!say(step, &lines[i], first_number + i)) return 0;
    for (long i = 0; i < count; i++)
      if (!answered(step, &lines[i])) return 0;
  }
  return count;
}

/* Whether the peer still holds the connection; what it sent meanwhile is thrown away. */
static bool alive(const struct line *line) {
  char bytes[4096];
  ssize_t got;
  while ((got = recv(line->socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) continue;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static long hold(const struct line *lines, long count) {
  long lost = 0;
  for (int waited_s = 0; waited_s < HOLD_MAX_S && !input_closed_within(HEARTBEAT_MS); waited_s += HEARTBEAT_MS / 1000)
    for (long i = 0; i < count; i++) put(&lines[i], EMPTY_FRAME, sizeof EMPTY_FRAME);
  for (long i = 0; i < count; i++) lost += !alive(&lines[i]);
  return lost;
}

int hold_idle(const char *peer, long count, bool with_tls) {
  struct addrinfo *to = resolved(peer);
  SSL_CTX *tls = with_tls ? tls_client() : NULL;
  struct line *lines = calloc(count > 0 ? (size_t)count : 1, sizeof *lines);
  struct timespec start, end;
  long up = 0;
  if (!to || !lines || count < 1) {
    fprintf(stderr, "usage: load idle|idle-tls HOST:PORT COUNT\n");
    return 2;
  }
  raise_file_limit(count);
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long batch = 1; batch > 0 && up < count; up += batch)
    batch = open_batch(to, tls, lines + up, count - up < BATCH ? count - up : BATCH, up);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (up < count) fprintf(stderr, "after %ld connections: %s\n", up, strerror(errno));
  else fprintf(stderr, "attached\n");
  long lost = up == count ? hold(lines, up) : 0;
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  printf("{\"operation\": \"idle\", \"count\": %ld, \"seconds\": %.3f, \"lost\": %ld}\n", up, seconds, lost);
  freeaddrinfo(to);
  return up < count || lost > 0;
}
