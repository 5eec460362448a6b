/* The least that a turn can cost where ranks are processes: two processes on one core pass a word to and fro, each waking the other
 * by a futex and then waiting. Prints nothing: its processor time is the measurement.
 *
 *     cc -O2 measurements/simulator/handover.c -o build/handover && build/handover HANDOVERS
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* One word for each process, on lines of their own: 1 if it has the turn. */
struct turn {
  _Alignas(128) atomic_int has;
};

static void give(struct turn *to) {
  atomic_store(&to->has, 1);
  syscall(SYS_futex, &to->has, FUTEX_WAKE, 1);
}

static void await(struct turn *own) {
  while (!atomic_exchange(&own->has, 0))
    syscall(SYS_futex, &own->has, FUTEX_WAIT, 0, NULL);
}

int main(int count, char **words) {
  long handovers = count > 1 ? atol(words[1]) : 1000000;
  struct turn *turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (turns == MAP_FAILED)
    return 1;
  cpu_set_t core;
  CPU_ZERO(&core);
  CPU_SET(sched_getcpu(), &core);
  sched_setaffinity(0, sizeof core, &core);
  int own = fork() == 0;
  for (long pass = 0; pass < handovers / 2; pass++) {
    if (own == 0)
      give(&turns[1]);
    await(&turns[own]);
    if (own == 1)
      give(&turns[0]);
  }
  if (own == 0)
    wait(NULL);
  return 0;
}
