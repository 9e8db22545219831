/* The idle mode of the load client. */
#ifndef BENCH_IDLE_H
#define BENCH_IDLE_H

#include <stdbool.h>

/* Opens `count` connections with a session each, over TLS if wanted, says "attached" on standard error, holds them until
 * standard input closes, then prints one JSON object. Returns the exit status: 1 where one could not be opened or was
 * lost. */
int hold_idle(const char *peer, long count, bool with_tls);

#endif
