/* Figures that a client reports about itself. */
#ifndef BENCH_FIGURES_H
#define BENCH_FIGURES_H

#include <stdint.h>

/* Sorts the latencies in ns, and prints them as a member "latency_us" of a JSON object. */
void print_latencies(uint64_t *latencies, long count);

/* The processor time of this process. */
double cpu_seconds(void);

#endif
