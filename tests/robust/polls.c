/* Ranks in a ring that compute in slices and poll after each, until a message of every size has come. The number of polls depends
   on the machine. With an argument, rank 0 calls MPI_Barrier on MPI_COMM_SELF if it has polled more often than the argument says:
   the sequence of its calls then depends on time. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void compute(int amount) {
    volatile double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
}

int main(int argc, char **argv) {
    static char out[1 << 18], in[1 << 18];
    MPI_Init(&argc, &argv);
    int rank, size;
    long polls = 0, most = argc > 1 ? atol(argv[1]) : -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int bytes = 1; bytes <= 1 << 18; bytes *= 4) {
        MPI_Request get, put;
        MPI_Irecv(in, bytes, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &get);
        compute(2000 * (1 + rank));
        MPI_Isend(out, bytes, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &put);
        double start = MPI_Wtime();
        for (int flag = 0; !flag && MPI_Wtime() - start < 10; polls++) {
            compute(200);
            MPI_Test(&get, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&put, MPI_STATUS_IGNORE);
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    if (rank == 0 && most >= 0 && polls > most) MPI_Barrier(MPI_COMM_SELF);
    double time = MPI_Wtime();
    printf("%d %.9f\n", rank, time);
    if (rank == 0) fprintf(stderr, "polls %ld\n", polls);
    MPI_Finalize();
    return 0;
}
