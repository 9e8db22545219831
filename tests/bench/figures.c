#include "figures.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int by_size(const void *a, const void *b) {
  uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return left < right ? -1 : left > right;
}

void print_latencies(uint64_t *latencies, long count) {
  qsort(latencies, (size_t)count, sizeof *latencies, by_size);
  printf(", \"latency_us\": {\"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f}", latencies[count / 2] / 1e3,
         latencies[count * 99 / 100] / 1e3, latencies[count * 999 / 1000] / 1e3, latencies[count - 1] / 1e3);
}

double cpu_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}
