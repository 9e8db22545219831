/* The client's end of a WebSocket (RFC 6455) around proton's engine: a loop of poll, recv and send on one socket, in
 * place of the proactor. Every AMQP write is one binary message in one frame, masked, as clients must. There is no
 * second thread and no second socket, so a message costs the client its mask and a copy more than over plain TCP.
 * Frames of the peer may be fragments: AMQP does not mind where a message ends. */
#define _GNU_SOURCE /* strcasestr */
#include "websocket.h"

#include "clock.h"
#include "figures.h"
#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <proton/connection_driver.h>
#include <proton/transport.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, HEAD_MAX = 14, MASK_BYTES = 4, PAYLOAD_MAX = 65535, SMALL_MAX = 125, MEDIUM = 126, LARGE = 127 };
enum { CONTINUATION = 0, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10, LAST = 0x80, MASKED = 0x80 };

static const char HANDSHAKE[] = "GET / HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
                                "Sec-WebSocket-Protocol: amqp\r\n\r\n";

struct websocket {
  int socket;
  char in[READ_BYTES], out[HEAD_MAX + PAYLOAD_MAX];
  size_t in_at, in_end;   /* what has been read and not yet handed on */
  size_t out_at, out_end; /* the frame that is being sent */
  uint64_t left;          /* of the payload of the frame that is being read */
  bool control;           /* that payload is of a control frame, which is short */
  int control_opcode;
  char control_bytes[SMALL_MAX];
  size_t control_size;
  uint32_t key; /* of the last mask; any key will do that changes */
  bool closed, broken;
};

/* ---- frames ---- */

/* As fast as the mask can be made: libraries of clients use such instructions, too. */
__attribute__((optimize("O3"))) static void mask(char *bytes, size_t size, uint32_t key) {
  uint64_t wide = (uint64_t)key << 32 | key, word;
  size_t at = 0;
  for (; at + sizeof word <= size; at += sizeof word) {
    memcpy(&word, bytes + at, sizeof word);
    word ^= wide;
    memcpy(bytes + at, &word, sizeof word);
  }
  const char *keys = (const char *)&key;
  for (size_t i = at; i < size; i++) bytes[i] ^= keys[i % MASK_BYTES];
}

/* Makes the frame that is sent next. */
static void put_frame(struct websocket *ws, int opcode, const char *payload, size_t size) {
  char *out = ws->out;
  size_t head = 2;
  out[0] = (char)(LAST | opcode);
  if (size <= SMALL_MAX) {
    out[1] = (char)(MASKED | (int)size);
  } else {
    out[1] = (char)(MASKED | MEDIUM);
    out[2] = (char)(size >> 8);
    out[3] = (char)size;
    head = 4;
  }
  ws->key = ws->key * 1664525u + 1013904223u;
  memcpy(out + head, &ws->key, MASK_BYTES);
  memcpy(out + head + MASK_BYTES, payload, size);
  mask(out + head + MASK_BYTES, size, ws->key);
  ws->out_at = 0;
  ws->out_end = head + MASK_BYTES + size;
}

/* Reads the head of a frame, if it is there as a whole. */
static bool get_head(struct websocket *ws) {
  const unsigned char *head = (const unsigned char *)ws->in + ws->in_at;
  size_t there = ws->in_end - ws->in_at, size = 2;
  if (there < size) return false;
  uint64_t payload = head[1] & 0x7f;
  if (payload == MEDIUM || payload == LARGE) {
    size_t more = payload == MEDIUM ? 2 : 8;
    if (there < size + more) return false;
    payload = 0;
    for (size_t i = 0; i < more; i++) payload = payload << 8 | head[2 + i];
    size += more;
  }
  int opcode = head[0] & 0x0f;
  ws->control = opcode >= CLOSE;
  ws->control_opcode = opcode;
  ws->control_size = 0;
  if (head[1] & MASKED || head[0] & 0x70 || (ws->control ? payload > SMALL_MAX : opcode != BINARY && opcode != CONTINUATION))
    ws->broken = true;
  ws->in_at += size;
  ws->left = payload;
  return !ws->broken;
}

/* A ping is answered where nothing else is being sent: a pong is a courtesy here, as AMQP has its own heartbeat. */
static void end_control(struct websocket *ws) {
  if (ws->control_opcode == CLOSE) ws->closed = true;
  if (ws->control_opcode == PING && ws->out_at == ws->out_end) put_frame(ws, PONG, ws->control_bytes, ws->control_size);
  ws->control = false;
}

/* Copies payload to `into`, at most `room` bytes; control frames are dealt with on the way. Returns how many. */
static size_t take_payload(struct websocket *ws, char *into, size_t room) {
  size_t taken = 0;
  while (!ws->broken && !ws->closed) {
    if (!ws->left && !ws->control && !get_head(ws)) break;
    size_t there = ws->in_end - ws->in_at, size = ws->left < there ? (size_t)ws->left : there;
    if (!ws->control && size > room - taken) size = room - taken;
    memcpy(ws->control ? ws->control_bytes + ws->control_size : into + taken, ws->in + ws->in_at, size);
    *(ws->control ? &ws->control_size : &taken) += size;
    ws->in_at += size;
    ws->left -= size;
    if (ws->control && !ws->left) end_control(ws);
    else if (!size && ws->left) break;
  }
  return taken;
}

/* ---- socket ---- */

static bool put_all(int socket, const char *bytes, size_t size) { return send(socket, bytes, size, MSG_NOSIGNAL) == (ssize_t)size; }

/* Sends the handshake and reads its answer, of which the status and the subprotocol are looked at. */
static bool shake_hands(struct websocket *ws, const char *peer) {
  char request[1024];
  int size = snprintf(request, sizeof request, HANDSHAKE, peer);
  if (!put_all(ws->socket, request, (size_t)size)) return false;
  char *end = NULL;
  while (!end && ws->in_end < sizeof ws->in - 1) {
    ssize_t got = recv(ws->socket, ws->in + ws->in_end, sizeof ws->in - 1 - ws->in_end, 0);
    if (got <= 0) return false;
    ws->in_end += (size_t)got;
    ws->in[ws->in_end] = 0;
    end = strstr(ws->in, "\r\n\r\n");
  }
  if (!end) return false;
  ws->in_at = (size_t)(end - ws->in) + 4;
  *end = 0;
  const char *subprotocol = strcasestr(ws->in, "\r\nsec-websocket-protocol: amqp");
  if (strncmp(ws->in, "HTTP/1.1 101", 12) || !subprotocol) fprintf(stderr, "WebSocket: %.60s\n", ws->in);
  return !strncmp(ws->in, "HTTP/1.1 101", 12) && subprotocol;
}

static bool connect_socket(struct websocket *ws, const char *peer) {
  struct addrinfo *to = resolved(peer);
  int yes = 1;
  bool up = to && (ws->socket = socket(to->ai_family, SOCK_STREAM, 0)) >= 0 && !connect(ws->socket, to->ai_addr, to->ai_addrlen);
  if (to) freeaddrinfo(to);
  if (!up || !shake_hands(ws, peer)) return false;
  setsockopt(ws->socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fcntl(ws->socket, F_SETFL, O_NONBLOCK) == 0;
}

/* ---- the engine ---- */

/* Sends as much as the socket takes. False where that is not all. */
static bool flush(struct websocket *ws, pn_connection_driver_t *driver) {
  for (;;) {
    while (ws->out_at < ws->out_end) {
      ssize_t sent = send(ws->socket, ws->out + ws->out_at, ws->out_end - ws->out_at, MSG_NOSIGNAL);
      if (sent < 0 && errno == EAGAIN) return false;
      if (sent < 0) pn_connection_driver_close(driver);
      ws->out_at += sent < 0 ? ws->out_end - ws->out_at : (size_t)sent;
    }
    pn_bytes_t output = pn_connection_driver_write_buffer(driver);
    if (!output.size) return true;
    size_t size = output.size < PAYLOAD_MAX ? output.size : PAYLOAD_MAX;
    put_frame(ws, BINARY, output.start, size);
    pn_connection_driver_write_done(driver, size);
  }
}

/* Reads once from the socket. */
static void fill(struct websocket *ws, pn_connection_driver_t *driver) {
  memmove(ws->in, ws->in + ws->in_at, ws->in_end - ws->in_at); /* part of a head at most, or what the engine has no room for */
  ws->in_end -= ws->in_at;
  ws->in_at = 0;
  if (ws->in_end == sizeof ws->in) return;
  ssize_t got = recv(ws->socket, ws->in + ws->in_end, sizeof ws->in - ws->in_end, 0);
  if (got > 0) ws->in_end += (size_t)got;
  else if (got == 0 || errno != EAGAIN) pn_connection_driver_close(driver);
}

static bool dispatch(pn_connection_driver_t *driver, const struct websocket_client *client) {
  pn_event_t *event;
  while ((event = pn_connection_driver_next_event(driver)) != NULL)
    if (!client->handle(client->context, event)) return false;
  return true;
}

/* Hands everything that was read to the engine, and its events to the client. */
static bool hand_on(struct websocket *ws, pn_connection_driver_t *driver, const struct websocket_client *client) {
  for (;;) {
    pn_rwbytes_t room = pn_connection_driver_read_buffer(driver);
    size_t taken = room.size ? take_payload(ws, room.start, room.size) : 0;
    if (taken) pn_connection_driver_read_done(driver, taken);
    if (ws->closed || ws->broken) pn_connection_driver_close(driver);
    if (!dispatch(driver, client)) return false;
    if (!taken) return true;
  }
}

static bool turn(struct websocket *ws, pn_connection_driver_t *driver, const struct websocket_client *client, int64_t *next_tick) {
  bool all_sent = flush(ws, driver);
  int64_t wait = (*next_tick - now_ns()) / 1000000;
  struct pollfd wanted = {.fd = ws->socket, .events = (short)(POLLIN | (all_sent ? 0 : POLLOUT))};
  if (poll(&wanted, 1, wait > 0 ? (int)wait : 0) < 0 && errno != EINTR) return false;
  if (wanted.revents & (POLLIN | POLLHUP | POLLERR)) fill(ws, driver);
  if (!hand_on(ws, driver, client)) return false;
  if (now_ns() < *next_tick) return true;
  *next_tick = now_ns() + client->tick_ms * 1000000LL;
  pn_transport_tick(driver->transport, now_ns() / 1000000);
  return client->tick(client->context) && dispatch(driver, client);
}

bool run_websocket(pn_connection_t *connection, const char *peer, const struct websocket_client *client) {
  static struct websocket ws = {.key = 0x5eed1e55};
  pn_connection_driver_t driver;
  if (!connect_socket(&ws, peer)) {
    fprintf(stderr, "no WebSocket at %s\n", peer);
    return false;
  }
  if (pn_connection_driver_init(&driver, connection, NULL)) return false;
  bool going = dispatch(&driver, client); /* the client says who it is before that is bound */
  pn_connection_driver_bind(&driver);
  int64_t next_tick = now_ns();
  going = going && dispatch(&driver, client);
  while (going && !pn_connection_driver_finished(&driver)) going = turn(&ws, &driver, client, &next_tick);
  if (ws.broken) fprintf(stderr, "a WebSocket frame that a server must not send\n");
  close(ws.socket);
  return !ws.broken;
}

/* ---- what it costs ---- */

int measure_websocket(long count, long size) {
  static struct websocket ws = {.key = 0x5eed1e55};
  static char message[PAYLOAD_MAX], into[PAYLOAD_MAX];
  if (count < 1 || size < 1 || size > PAYLOAD_MAX) {
    fprintf(stderr, "usage: load websocket COUNT SIZE   (1 to %d bytes)\n", PAYLOAD_MAX);
    return 2;
  }
  double start = cpu_seconds();
  for (long i = 0; i < count; i++) put_frame(&ws, BINARY, message, (size_t)size);
  double made = cpu_seconds();
  size_t frame = ws.out_end, taken = 0;
  ws.out[1] = (char)(ws.out[1] & ~MASKED); /* a server's frame: the same without the key */
  memmove(ws.out + frame - (size_t)size - MASK_BYTES, ws.out + frame - (size_t)size, (size_t)size);
  for (long i = 0; i < count; i++) {
    memcpy(ws.in, ws.out, frame - MASK_BYTES); /* stands for the copy out of the kernel, which every client has */
    ws.in_at = 0;
    ws.in_end = frame - MASK_BYTES;
    taken += take_payload(&ws, into, sizeof into);
  }
  double read = cpu_seconds();
  printf("{\"operation\": \"websocket\", \"count\": %ld, \"seconds\": %.4f, \"made_ns\": %.1f, \"read_ns\": %.1f}\n", count,
         read - start, (made - start) * 1e9 / (double)count, (read - made) * 1e9 / (double)count);
  return taken != (size_t)count * (size_t)size;
}
