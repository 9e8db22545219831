/* Many idle connections, light enough that ten thousand cost the client almost nothing: plain sockets and frames made
 * by hand. Each goes the way that a client library goes, step by step: SASL ANONYMOUS, open, begin. After that it is
 * silent but for an empty frame every ten seconds, which keeps any usual idle-time-out from striking. */
#include "idle.h"

#include "sockets.h"

#include <errno.h>
#include <netdb.h>
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

static bool put(int socket, const char *bytes, size_t size) { return send(socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size; }

static bool get(int socket, char *into, size_t size) {
  while (size) {
    ssize_t got = recv(socket, into, size, 0);
    if (got <= 0) return false;
    into += got;
    size -= (size_t)got;
  }
  return true;
}

static bool get_header(int socket, const char *expected) {
  char header[sizeof AMQP_HEADER];
  return get(socket, header, sizeof header) && !memcmp(header, expected, sizeof header);
}

/* The descriptor of the next frame's performative, NO_PERFORMATIVE of an empty one, NOTHING where none came. For a
 * sasl-outcome that does not say ok: NOTHING. */
static int get_frame(int socket) {
  static char frame[FRAME_MAX];
  if (!get(socket, frame, 8)) return NOTHING;
  const unsigned char *head = (const unsigned char *)frame;
  uint32_t size = (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
  uint32_t body = head[4] * 4u;
  if (size < 8 || size > FRAME_MAX || body < 8 || !get(socket, frame + 8, size - 8)) return NOTHING;
  if (body + 3 > size) return NO_PERFORMATIVE;
  bool small = head[body + 1] == 0x53; /* else the 8 bytes of a full ulong */
  uint32_t last = body + (small ? 2 : 9);
  int descriptor = last < size ? head[last] : NOTHING;
  if (descriptor == SASL_OUTCOME && head[size - 1] != 0) return NOTHING; /* code 0, ok, comes last where it is alone */
  return descriptor;
}

static bool expect(int socket, int descriptor) {
  int got;
  while ((got = get_frame(socket)) == NO_PERFORMATIVE) continue;
  return got == descriptor;
}

static bool put_open(int socket, long number) {
  char frame[64] = {0, 0, 0, 0, 2, 0, 0, 0, 0, 0x53, OPEN, (char)0xc0, 0, 1, (char)0xa1, 0};
  int name = snprintf(frame + 16, sizeof frame - 16, "idle-%d-%ld", (int)getpid(), number);
  frame[3] = (char)(16 + name);
  frame[12] = (char)(3 + name);
  frame[15] = (char)name;
  return put(socket, frame, (size_t)(16 + name));
}

static int connected(const struct addrinfo *to) {
  int descriptor = socket(to->ai_family, SOCK_STREAM, 0);
  struct timeval patience = {.tv_sec = ANSWER_MAX_S};
  if (descriptor < 0) return -1;
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (connect(descriptor, to->ai_addr, to->ai_addrlen) == 0) return descriptor;
  close(descriptor);
  return -1;
}

/* What a client says and then waits for, one thing after the other. */
enum step { TO_SASL, TO_AUTHENTICATE, TO_AMQP, TO_OPEN, TO_BEGIN, STEPS };

static bool say(enum step step, int socket, long number) {
  switch (step) {
  case TO_SASL: return put(socket, SASL_HEADER, sizeof SASL_HEADER);
  case TO_AUTHENTICATE: return put(socket, SASL_INIT, sizeof SASL_INIT);
  case TO_AMQP: return put(socket, AMQP_HEADER, sizeof AMQP_HEADER);
  case TO_OPEN: return put_open(socket, number);
  default: return put(socket, BEGIN_FRAME, sizeof BEGIN_FRAME);
  }
}

static bool answered(enum step step, int socket) {
  switch (step) {
  case TO_SASL: return get_header(socket, SASL_HEADER) && expect(socket, SASL_MECHANISMS);
  case TO_AUTHENTICATE: return expect(socket, SASL_OUTCOME);
  case TO_AMQP: return get_header(socket, AMQP_HEADER);
  case TO_OPEN: return expect(socket, OPEN);
  default: return expect(socket, BEGIN);
  }
}

/* Brings `count` connections up side by side, so that a peer's 40 ms of delayed acknowledgement are waited for once a
 * batch and not once a connection. Returns how many are up: all, or as far as every one got. */
static long open_batch(const struct addrinfo *to, int *sockets, long count, long first_number) {
  for (long i = 0; i < count; i++)
    if ((sockets[i] = connected(to)) < 0) return 0;
  for (enum step step = TO_SASL; step < STEPS; step++) {
    for (long i = 0; i < count; i++)
      if (!say(step, sockets[i], first_number + i)) return 0;
    for (long i = 0; i < count; i++)
      if (!answered(step, sockets[i])) return 0;
  }
  return count;
}

/* Whether the peer still holds the connection; what it sent meanwhile is thrown away. */
static bool alive(int socket) {
  char bytes[4096];
  ssize_t got;
  while ((got = recv(socket, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) continue;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

static long hold(const int *sockets, long count) {
  long lost = 0;
  for (int waited_s = 0; waited_s < HOLD_MAX_S && !input_closed_within(HEARTBEAT_MS); waited_s += HEARTBEAT_MS / 1000)
    for (long i = 0; i < count; i++) put(sockets[i], EMPTY_FRAME, sizeof EMPTY_FRAME);
  for (long i = 0; i < count; i++) lost += !alive(sockets[i]);
  return lost;
}

int hold_idle(const char *peer, long count) {
  struct addrinfo *to = resolved(peer);
  int *sockets = calloc(count > 0 ? (size_t)count : 1, sizeof *sockets);
  struct timespec start, end;
  long up = 0;
  if (!to || !sockets || count < 1) {
    fprintf(stderr, "usage: load idle HOST:PORT COUNT\n");
    return 2;
  }
  raise_file_limit(count);
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (long batch = 1; batch > 0 && up < count; up += batch)
    batch = open_batch(to, sockets + up, count - up < BATCH ? count - up : BATCH, up);
  clock_gettime(CLOCK_MONOTONIC, &end);
  if (up < count) fprintf(stderr, "after %ld connections: %s\n", up, strerror(errno));
  else fprintf(stderr, "attached\n");
  long lost = up == count ? hold(sockets, up) : 0;
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
  printf("{\"operation\": \"idle\", \"count\": %ld, \"seconds\": %.3f, \"lost\": %ld}\n", up, seconds, lost);
  freeaddrinfo(to);
  return up < count || lost > 0;
}
