/* The network of a target fails for ever while a rank accesses a window there: the error says why, of a get as of a put.
 *
 * Argument: get or put. */
#include "check.h"

enum { RUN = 50000, RUNS = 8, EPOCHS = 400 };

static char part[RUN * RUNS], other[RUN * RUNS];

int main(int argc, char **argv) {
    start(&argc, &argv);
    int puts = argc > 1 && strcmp(argv[1], "put") == 0;
    MPI_Win win;
    OK(MPI_Win_create(part, sizeof part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        OK(MPI_Win_lock_all(0, win));
        for (int i = 0; i < RUNS; i++) {
            MPI_Aint at = (MPI_Aint)i * RUN;
            if (puts) OK(MPI_Put(other + at, RUN, MPI_BYTE, !rank, at, RUN, MPI_BYTE, win));
            else OK(MPI_Get(other + at, RUN, MPI_BYTE, !rank, at, RUN, MPI_BYTE, win));
        }
        OK(MPI_Win_flush_all(win));
        OK(MPI_Win_unlock_all(win));
    }
    WRONG("the network has not failed");
    OK(MPI_Win_free(&win));
    return finish();
}
