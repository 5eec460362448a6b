/* Calls in communicators of several sizes, and in phases that MPI_Pcontrol marks. */
#include <mpi.h>

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, sum, number = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 3; turn++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm pair;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, 0, &pair);
    for (int step = 0; step < 4; step++) {
        MPI_Pcontrol(1, "step");
        for (int turn = 0; turn < 5; turn++)
            MPI_Allreduce(&number, &sum, 1, MPI_INT, MPI_SUM, pair);
        MPI_Pcontrol(0, "step");
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_SELF, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&pair);
    MPI_Finalize();
    return sum != 2;
}
