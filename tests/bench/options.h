/* What the load client is told on its command line; load.c explains it. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>

enum { STAMP_BYTES = 16, NAME_BYTES = 96 };

struct options {
  const char *operation, *peer, *address, *capability, *name, *container, *user, *password;
  bool sending, durable, settled, hold, shared, tls, websocket;
  int size, credit, links, relay, spread, durability, timeout_s, delay_ms;
  long count, commit;
  double rate;
};

/* Reads the command line of an operation that load.c knows; exits with 2 where it makes no sense. */
void read_options(struct options *options, int argc, char **argv);

/* How many messages go through all links. */
long total(const struct options *options);

#endif
