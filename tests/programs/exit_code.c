/* The launcher gives the exit code of the first rank that failed. The argument is the code of rank 1;
 * `signal` kills it, `early` leaves without Finalize while the others wait for it. */
#include "check.h"
#include <signal.h>

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "0";
    int value;
    start(&argc, &argv);
    if (!strcmp(what, "signal") || !strcmp(what, "early")) {
        if (rank == 1 && what[0] == 's') raise(SIGKILL);
        if (rank == 1) _Exit(9);
        MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        fprintf(stderr, "a message from the dead\n");
        return 1;
    }
    MPI_Finalize();
    return rank == 1 ? atoi(what) : 0;
}
