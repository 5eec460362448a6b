/* The least: Init, rank, size, one message around, Finalize. For the first run of a new library. */
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int token = 41;
    if (size > 1) {
        if (rank == 0) {
            MPI_Send(&token, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&token, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            token++;
            MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        }
    }
    SAME(token, 41 + (rank == 0 ? size - 1 : rank));
    return finish();
}
