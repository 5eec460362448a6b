/* Does a rank that waits give way to others? Each counts how often it yields or sleeps while it waits for a message that is
   long in coming, and says whether it did. */

#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MEETINGS = 3, PAUSE = 20000 };

static atomic_int offers;

/* The library calls this one. */
int sched_yield(void) {
    atomic_fetch_add(&offers, 1);
    return (int)syscall(SYS_sched_yield);
}

static long sleeps(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nvcsw;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* All have begun by then, and have had to wait for each other. */
    for (int i = 0; i < MEETINGS; i++) {
        usleep(rank == i % size ? PAUSE : 0);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    int seen = atomic_load(&offers);
    long slept = 0;
    for (int i = 0; i < size; i++) {
        usleep(rank == i ? PAUSE : 0);
        long before = sleeps();
        MPI_Barrier(MPI_COMM_WORLD);
        slept += sleeps() - before;
    }
    printf("%d %s\n", rank, atomic_load(&offers) > seen || slept > 0 ? "gives way" : "spins");
    MPI_Finalize();
    return 0;
}
