/* MPI_Abort by one rank ends all, whatever they do, with the code that was given. */
#include "check.h"
#include <unistd.h>

int main(int argc, char **argv) {
    const char *others = argc > 1 ? argv[1] : "wait";
    int value;
    start(&argc, &argv);
    if (rank == size - 1) MPI_Abort(MPI_COMM_WORLD, 42);
    if (!strcmp(others, "wait"))
        MPI_Recv(&value, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(others, "sleep")) /* outside MPI, and deaf to polite signals */
        for (;;) pause();
    if (!strcmp(others, "compute"))
        for (volatile long forever = 0;; forever++) {}
    fprintf(stderr, "the program went on after MPI_Abort\n");
    return 0;
}
