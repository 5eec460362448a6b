// The timed part of an application: from a barrier to the slowest rank's end.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static double begun;

static void begin(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    begun = MPI_Wtime();
}

// Prints the result, which must not depend on the network, and the time.
static void end(double result) {
    double took = MPI_Wtime() - begun, longest;
    int rank;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        printf("result %.12g, time %.6f s\n", result, longest);
    MPI_Finalize();
}

// The next number of a generator (splitmix64).
static inline uint64_t next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void *room(size_t bytes) {
    void *found = malloc(bytes);
    if (!found)
        MPI_Abort(MPI_COMM_WORLD, 1);
    return found;
}
