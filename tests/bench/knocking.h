/* Many short connections: TLS handshakes, or logins with a wrong password. */
#ifndef BENCH_KNOCKING_H
#define BENCH_KNOCKING_H

#include <stdbool.h>

enum knock { HANDSHAKE, LOGIN };

/* Begins `rate` connections a second, `count` at most, from `sources` addresses in turn, until standard input closes;
 * then prints one JSON object: how many came to their end, and the rate at which they began. Returns the exit status: 1 where none came to its end. */
int knock(enum knock kind, const char *peer, long count, double rate, int sources);

#endif
