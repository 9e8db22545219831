/* syncs: preloaded into a broker, counts how often it has data synced to a disk, and makes each time longer where it is told to.
 *
 * The file that BENCH_SYNCS names is shared by all processes of the broker, and with syncs.py, which has the same layout. Writes to
 * files opened with O_SYNC or O_DSYNC are not seen: none of the brokers here opens one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct tally {
  _Atomic uint64_t processes, syncs, delay_us;
};

static struct tally *tally;

__attribute__((constructor)) static void begin(void) {
  const char *name = getenv("BENCH_SYNCS");
  int file = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *shared = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (shared == MAP_FAILED) return;
  tally = shared;
  tally->processes++;
}

static void note_sync(void) {
  if (!tally) return;
  tally->syncs++;
  uint64_t delay_us = tally->delay_us;
  struct timespec delay = {.tv_sec = (time_t)(delay_us / 1000000), .tv_nsec = (long)(delay_us % 1000000) * 1000};
  if (delay_us) nanosleep(&delay, NULL);
}

int fsync(int file) {
  note_sync();
  return (int)syscall(SYS_fsync, file);
}

int fdatasync(int file) {
  note_sync();
  return (int)syscall(SYS_fdatasync, file);
}
