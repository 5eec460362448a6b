/* Two ranks with a fixed number of calls of each kind, which count_calls.c counts. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, word = 0, in = 0;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 5; i++) {
        if (rank == 0) MPI_Send(&word, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&word, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&in, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&word, 1, MPI_INT, !rank, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return MPI_Finalize();
}
