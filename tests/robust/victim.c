/* A program to be killed. Says `ready` when it is where the argument wants it, and stays there.
 *
 *   before    not yet in MPI_Init           wait      in a receive without a message
 *   ring      passing messages on           reduce    in one allreduce after another
 *   compute   busy outside MPI              deaf      asleep outside MPI, deaf to polite signals
 *   after     a second behind MPI_Finalize  leave N   rank 1 leaves with code N after MPI_Init
 *   fault     rank 1 writes to address 0
 *   between   in an allreduce between the lower and the upper half, which the last rank never joins
 *   stripe    rank 1 within an accumulate, of which it holds the lock in memory that all map; the others wait for that lock
 *   lock      rank 1 holds a window lock in such memory; the others wait for it
 *   long      two ranks exchange long messages; their memory is large, so a killed one takes a while to disappear */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LONG = 4 << 20, BALLAST = 256 << 20 };

static void ready(void) {
    if (write(1, "ready\n", 6) != 6) abort();
}

/* An intercommunicator of the two halves, whose collective operations have left their first calls behind. */
static MPI_Comm halves(int rank, int size) {
    MPI_Comm half, between;
    int low = rank < size / 2, sum;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 1, &between);
    for (int i = 0; i < 8; i++) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, between);
    return between;
}

static volatile long *told;

/* Whoever reads the operand of its accumulate comes here, and stays. */
static void stuck(int number) {
    (void)number;
    *told = 1;
    ready();
    for (;;) pause();
}

/* Rank 1 stays where it holds a lock of rank 0's part; the others wait for the lock. */
static void hold(int rank, int in_accumulate) {
    long *base, seen = 0, *operand = &seen;
    MPI_Win win;
    MPI_Win_allocate(rank == 1 ? 8 : 8000, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (in_accumulate) MPI_Win_lock_all(0, win);
    if (rank == 1) {
        told = base;
        if (!in_accumulate) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            stuck(0);
        }
        operand = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        signal(SIGSEGV, stuck);
    } else {
        if (!in_accumulate) MPI_Win_lock(MPI_LOCK_SHARED, 1, MPI_MODE_NOCHECK, win);
        do {
            MPI_Get(&seen, 1, MPI_LONG, 1, 0, 1, MPI_LONG, win);
            MPI_Win_flush(1, win);
        } while (!seen);
        ready();
        if (!in_accumulate) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    }
    MPI_Accumulate(operand, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush(0, win);
    printf("rank %d was not held up\n", rank);
}

int main(int argc, char **argv) {
    const char *where = argc > 1 ? argv[1] : "";
    int rank, size, value = 0, sum;
    if (!strcmp(where, "before")) {
        ready();
        for (;;) pause();
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *memory = !strcmp(where, "long") ? malloc(BALLAST) : NULL;
    if (memory) memset(memory, 1, BALLAST);
    if (!strcmp(where, "after")) MPI_Finalize();
    MPI_Comm between = strcmp(where, "between") ? MPI_COMM_NULL : halves(rank, size);
    if (!strcmp(where, "stripe") || !strcmp(where, "lock")) hold(rank, !strcmp(where, "stripe"));
    ready();
    if (!strcmp(where, "leave") && rank == 1) _exit(atoi(argv[2]));
    if (!strcmp(where, "fault") && rank == 1) *(volatile int *)0 = 1;
    if (!strcmp(where, "after")) return sleep(1) != 0;
    if (!strcmp(where, "compute")) for (volatile long i = 0;; i++) {}
    if (!strcmp(where, "deaf")) {
        for (int s = 1; s < NSIG; s++) signal(s, SIG_IGN);
        for (;;) sleep(1000);
    }
    if (!strcmp(where, "reduce"))
        for (;;) MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (between != MPI_COMM_NULL) {
        if (rank == size - 1) for (;;) pause();
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, between);
    }
    if (memory)
        for (;;)
            MPI_Sendrecv(memory, LONG, MPI_BYTE, 1 - rank, 0, memory + LONG, LONG, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    if (!strcmp(where, "ring"))
        for (;;)
            MPI_Sendrecv_replace(&value, 1, MPI_INT, (rank + 1) % size, 0, (rank + size - 1) % size, 0,
                                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 1;
}
