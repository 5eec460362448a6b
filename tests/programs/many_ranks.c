/* More ranks than cores: a ring and an allreduce finish in reasonable time. */
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int token = 0, right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int lap = 0; lap < 3 && size > 1; lap++) {
        if (rank == 0) {
            OK(MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD));
            OK(MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(&token, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            token++;
            OK(MPI_Send(&token, 1, MPI_INT, right, 0, MPI_COMM_WORLD));
        }
    }
    if (rank == 0) SAME(token, 3 * (size - 1));
    for (int round = 0; round < 20; round++) {
        int sum = -1, mine = rank + round;
        OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        SAME(sum, size * (size - 1) / 2 + size * round);
    }
    double *all = allocate(sizeof *all * size), one = rank * 0.5;
    OK(MPI_Allgather(&one, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD));
    for (int i = 0; i < size; i++) CHECK(all[i] == i * 0.5, "part %d is %g", i, all[i]);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(all);
    return finish();
}
