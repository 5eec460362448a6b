/* Nonblocking collectives in flight together, with point-to-point messages between and completed in
 * another order than started; a collective's messages never mix with a program's. */
#include "check.h"

enum { MANY = 12, COUNT = 700 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    static int data[MANY][COUNT], sums[MANY][COUNT], out[MANY], in[MANY];
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Comm comms[2] = {MPI_COMM_WORLD, MPI_COMM_NULL};
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (int round = 0; round < 20; round++) {
        MPI_Request collectives[MANY], points[2 * MANY];
        for (int k = 0; k < MANY; k++) {
            MPI_Comm comm = comms[k % 2];
            for (int i = 0; i < COUNT; i++) {
                data[k][i] = k % 3 ? rank + i + k : rank == k % size ? i * k : -1;
                sums[k][i] = -1;
            }
            out[k] = rank * 100 + k;
            OK(MPI_Irecv(&in[k], 1, MPI_INT, left, k % 3, comm, &points[2 * k]));
            if (k % 3 == 0)
                OK(MPI_Ibcast(data[k], COUNT, MPI_INT, k % size, comm, &collectives[k]));
            else if (k % 3 == 1)
                OK(MPI_Iallreduce(data[k], sums[k], COUNT, MPI_INT, MPI_SUM, comm, &collectives[k]));
            else
                OK(MPI_Ibarrier(comm, &collectives[k]));
            OK(MPI_Isend(&out[k], 1, MPI_INT, right, k % 3, comm, &points[2 * k + 1]));
        }
        if (round % 3 == 0) {
            for (int k = MANY - 1; k >= 0; k--) OK(MPI_Wait(&collectives[k], MPI_STATUS_IGNORE));
        } else if (round % 3 == 1) {
            for (int done = 0; done < MANY; done++) {
                int index;
                OK(MPI_Waitany(MANY, collectives, &index, MPI_STATUS_IGNORE));
            }
        } else {
            int all = 0;
            while (!all) OK(MPI_Testall(MANY, collectives, &all, MPI_STATUSES_IGNORE));
        }
        OK(MPI_Waitall(2 * MANY, points, MPI_STATUSES_IGNORE));
        for (int k = 0; k < MANY; k++) {
            SAME(in[k], left * 100 + k);
            for (int i = 0; i < COUNT; i++) {
                if (k % 3 == 0) SAME(data[k][i], i * k);
                if (k % 3 == 1) SAME(sums[k][i], size * (size - 1) / 2 + size * (i + k));
            }
        }
    }
    /* A barrier holds: no rank leaves the nonblocking form before the last has entered. */
    int late = size - 1, flag = 0;
    MPI_Request barrier;
    if (rank == late) {
        int go;
        for (int r = 0; r < size - 1; r++)
            OK(MPI_Recv(&go, 1, MPI_INT, r, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
    } else {
        OK(MPI_Ibarrier(MPI_COMM_WORLD, &barrier));
        for (int i = 0; i < 200; i++) OK(MPI_Test(&barrier, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag, "the barrier was left before the last rank came");
        OK(MPI_Send(&rank, 1, MPI_INT, late, 50, MPI_COMM_WORLD));
    }
    OK(MPI_Wait(&barrier, MPI_STATUS_IGNORE));
    OK(MPI_Comm_free(&comms[1]));
    return finish();
}
