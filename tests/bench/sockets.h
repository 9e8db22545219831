/* Plain sockets, for the clients that do without proton's proactor. */
#ifndef BENCH_SOCKETS_H
#define BENCH_SOCKETS_H

#include <netdb.h>
#include <stdbool.h>

/* The addresses of HOST:PORT, to be freed with freeaddrinfo; NULL where there are none. */
struct addrinfo *resolved(const char *peer);

/* Lets the process open `count` files and some more, as far as it may. */
void raise_file_limit(long count);

/* Whether standard input closes within so many milliseconds: the sign to end. */
bool input_closed_within(int milliseconds);

#endif
