#include "sockets.h"

#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPARE_FILES = 64 };

struct addrinfo *resolved(const char *peer) {
  char host[256];
  struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(peer, ':');
  if (!colon || (size_t)(colon - peer) >= sizeof host) return NULL;
  memcpy(host, peer, (size_t)(colon - peer));
  host[colon - peer] = 0;
  return getaddrinfo(host, colon + 1, &hints, &found) ? NULL : found;
}

void raise_file_limit(long count) {
  struct rlimit limit;
  rlim_t wanted = (rlim_t)count + SPARE_FILES;
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return;
  if (limit.rlim_max < wanted) limit.rlim_max = wanted; /* a privileged user may; others keep what they have */
  limit.rlim_cur = wanted;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

bool input_closed_within(int milliseconds) {
  struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
  char byte;
  return poll(&input, 1, milliseconds) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}
