/* Ranks in a ring: before each of `rounds` rounds every rank computes, then passes a message on. Rank 0 prints the time at
   the end. With a third argument the ring is not closed, and all wait for ever. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double compute(int amount) {
    volatile double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
    return x;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1, bytes = argc > 2 ? atoi(argv[2]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *out = calloc(1, bytes), *in = calloc(1, bytes);
    for (int round = 0; round < rounds; round++) {
        compute(20000 * (1 + rank));
        MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    double time = MPI_Wtime();
    printf("%d %.9f\n", rank, time);
    if (argc > 3) MPI_Recv(in, bytes, MPI_BYTE, (rank + 1) % size, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
