/* options: key=value, each with a default. */
#include "options.h"

#include "clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool set_option(struct options *options, const char *key, const char *value) {
  if (!strcmp(key, "size")) options->size = atoi(value);
  else if (!strcmp(key, "durable")) options->durable = atoi(value);
  else if (!strcmp(key, "settled")) options->settled = atoi(value);
  else if (!strcmp(key, "delay")) options->delay_ms = atoi(value);
  else if (!strcmp(key, "rate")) options->rate = atof(value);
  else if (!strcmp(key, "credit")) options->credit = atoi(value);
  else if (!strcmp(key, "links")) options->links = atoi(value);
  else if (!strcmp(key, "relay")) options->relay = atoi(value);
  else if (!strcmp(key, "spread")) options->spread = atoi(value);
  else if (!strcmp(key, "capability")) options->capability = value;
  else if (!strcmp(key, "name")) options->name = value;
  else if (!strcmp(key, "container")) options->container = value;
  else if (!strcmp(key, "durability")) options->durability = atoi(value);
  else if (!strcmp(key, "user")) options->user = value;
  else if (!strcmp(key, "password")) options->password = value;
  else if (!strcmp(key, "hold")) options->hold = atoi(value);
  else if (!strcmp(key, "commit")) options->commit = atol(value);
  else if (!strcmp(key, "shared")) options->shared = atoi(value);
  else if (!strcmp(key, "tls")) options->tls = atoi(value);
  else if (!strcmp(key, "websocket")) options->websocket = atoi(value);
  else if (!strcmp(key, "timeout")) options->timeout_s = atoi(value);
  else return false;
  return true;
}

void read_options(struct options *options, int argc, char **argv) {
  static char identity[NAME_BYTES];
  snprintf(identity, sizeof identity, "load-%s-%d-%lld", argv[1], (int)getpid(), (long long)now_ns());
  *options = (struct options){.operation = argv[1], .peer = argv[2], .address = argv[3], .count = atol(argv[4]),
                              .capability = "", .name = identity, .container = identity, .size = 100, .credit = 1000, .spread = 1,
                              .links = strcmp(argv[1], "fanout") ? 1 : 10, .timeout_s = 60,
                              .sending = !strcmp(argv[1], "send")};
  for (int i = 5; i < argc; i++) {
    char *value = strchr(argv[i], '=');
    if (value) *value++ = 0;
    if (!value || !set_option(options, argv[i], value)) {
      fprintf(stderr, "no such option: %s\n", argv[i]);
      exit(2);
    }
  }
  if (options->size < STAMP_BYTES) options->size = STAMP_BYTES;
  if (options->relay < 0 || options->relay > 1000000 || (options->relay && !options->sending)) {
    fprintf(stderr, "relay is for a sender, to at most a million addresses\n");
    exit(2);
  }
  if (options->websocket && (options->links > 1 || options->tls)) {
    fprintf(stderr, "websocket is for one link, without TLS\n");
    exit(2);
  }
  if (options->count < 1 || options->links < 1 || options->spread < 1 || (options->sending && options->hold)) {
    fprintf(stderr, "COUNT, links and spread start at 1; a sender has nothing to hold\n");
    exit(2);
  }
}

long total(const struct options *options) {
  return options->shared ? options->count : options->count * options->links;
}
