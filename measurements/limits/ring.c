/* What two copies at once allow, without MPI: a message goes to and fro between two processes, each bound to a core, through a
 * ring in shared memory, and is copied in and out at the same time. Prints the microseconds one way, medians of 30 times 20.
 *
 *     cc -O2 -mavx measurements/limits/ring.c -o build/ring && build/ring RING_KIB PIECE_KIB BYTES...
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIMES = 30, TURNS = 20, MOST = 8 << 20 };

typedef char vector __attribute__((vector_size(32)));

/* One direction: the numbers of bytes written and read, on separate cache lines. */
struct way {
  _Alignas(128) atomic_size_t written;
  _Alignas(128) atomic_size_t read;
  _Alignas(4096) char ring[];
};

static size_t ring, piece;

/* Whole lines, forward; all are aligned. */
__attribute__((noinline)) static void copy(char *to, const char *from, size_t bytes) {
  for (const char *end = from + bytes; from < end; from += 128, to += 128) {
    const vector *in = (const vector *)from;
    vector a = in[0], b = in[1], c = in[2], d = in[3], *out = (vector *)to;
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
  }
}

static size_t next(size_t left) { return left < piece ? left : piece; }

static void give(struct way *way, const char *from, size_t bytes) {
  size_t at = atomic_load_explicit(&way->written, memory_order_relaxed);
  for (size_t len; bytes; bytes -= len, from += len) {
    len = next(bytes);
    while (at + len - atomic_load_explicit(&way->read, memory_order_acquire) > ring) __builtin_ia32_pause();
    copy(way->ring + at % ring, from, len);
    atomic_store_explicit(&way->written, at += len, memory_order_release);
  }
}

static void take(struct way *way, char *to, size_t bytes) {
  size_t at = atomic_load_explicit(&way->read, memory_order_relaxed);
  for (size_t len; bytes; bytes -= len, to += len) {
    len = next(bytes);
    while (atomic_load_explicit(&way->written, memory_order_acquire) < at + len) __builtin_ia32_pause();
    copy(to, way->ring + at % ring, len);
    atomic_store_explicit(&way->read, at += len, memory_order_release);
  }
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  ring = argc > 3 ? strtoul(argv[1], NULL, 10) << 10 : 0;
  piece = argc > 3 ? strtoul(argv[2], NULL, 10) << 10 : 0;
  if (!piece || !ring || ring % piece) {
    fprintf(stderr, "ring RING_KIB PIECE_KIB BYTES...: the ring is a number of pieces\n");
    return 2;
  }
  struct way *ways[2];
  for (int i = 0; i < 2; i++) {
    ways[i] = mmap(NULL, sizeof *ways[i] + ring, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ways[i] == MAP_FAILED) return perror("ring: memory for the rings"), 1;
    memset(ways[i]->ring, 0, ring);
  }
  pid_t other = fork();
  if (other < 0) return perror("ring: a second process"), 1;
  int me = other == 0;
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(me, &core);
  if (sched_setaffinity(0, sizeof core, &core)) return perror("ring: cores 0 and 1"), 1;
  char *from = aligned_alloc(4096, MOST), *to = aligned_alloc(4096, MOST);
  if (!from || !to) return perror("ring: buffers"), 1;
  memset(from, 1, MOST), memset(to, 2, MOST);
  for (int i = 3; i < argc; i++) {
    size_t bytes = strtoul(argv[i], NULL, 10);
    if (!bytes || bytes > MOST || bytes % piece) {
      fprintf(stderr, "ring: %s bytes are left out: not a number of pieces up to %d bytes\n", argv[i], MOST);
      continue;
    }
    double times[TIMES];
    for (int time = -TIMES / 4; time < TIMES; time++) {
      double begin = now();
      for (int turn = 0; turn < TURNS; turn++) {
        if (me) take(ways[0], to, bytes), give(ways[1], from, bytes);
        else give(ways[0], from, bytes), take(ways[1], to, bytes);
      }
      if (time >= 0) times[time] = (now() - begin) / 2 / TURNS;
    }
    qsort(times, TIMES, sizeof *times, by_size);
    if (!me) printf("%9zu %9.3f\n", bytes, times[TIMES / 2]), fflush(stdout);
  }
  return me ? 0 : wait(NULL) < 0;
}
