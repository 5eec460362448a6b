/* A program that ends badly: the argument says how.
 *
 *   barrier, sleep, finalize   rank 1 makes a fatal error, and its exit handler does this
 *   signal                     rank 1 calls MPI from a signal handler
 *   descriptors                rank 1 closes all descriptors, then waits for the others
 *
 * Text that is in a buffer at the error is printed. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static const char *how;

static void at_exit(void) {
    if (!strcmp(how, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "sleep"))
        for (;;) pause();
    if (!strcmp(how, "finalize")) MPI_Finalize();
}

static void at_signal(int number) {
    int flag;
    (void)number;
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, value = 0, flag;
    how = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    atexit(at_exit);
    if (rank == 1) printf("buffered");
    if (rank != 1) MPI_Recv(&value, 1, MPI_INT, 1, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "signal")) {
        struct itimerval often = {{0, 1000}, {0, 1000}};
        signal(SIGALRM, at_signal);
        setitimer(ITIMER_REAL, &often, NULL);
        for (;;) MPI_Iprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "descriptors")) {
        for (int descriptor = 3; descriptor < 1024; descriptor++) close(descriptor);
        MPI_Recv(&value, 1, MPI_INT, 0, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(&value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    return 0;
}
