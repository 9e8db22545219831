/* AMQP over WebSocket, from a client's side: one connection of proton's engine, without its proactor. */
#ifndef BENCH_WEBSOCKET_H
#define BENCH_WEBSOCKET_H

#include <proton/connection.h>
#include <proton/event.h>
#include <stdbool.h>

/* What the client does with the events of its connection, and every `tick_ms`. Both return false to end. */
struct websocket_client {
  void *context;
  bool (*handle)(void *context, pn_event_t *event);
  bool (*tick)(void *context);
  int tick_ms;
};

/* Runs the connection to its end; false where it could not begin, or the peer broke the protocol. */
bool run_websocket(pn_connection_t *connection, const char *peer, const struct websocket_client *client);

/* Prints what the frames alone cost: CPU in ns for each of `count` messages of `size` bytes, made and read. */
int measure_websocket(long count, long size);

#endif
