/* Calls before Init and after Finalize end the program with a message that says which call, and
 * when; so do a second Init and a second Finalize. */
#include "check.h"

int main(int argc, char **argv) {
    const char *when = argc > 1 ? argv[1] : "";
    int value = 0;
    if (!strcmp(when, "before")) MPI_Comm_rank(MPI_COMM_WORLD, &value);
    if (!strcmp(when, "before-send")) MPI_Send(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    if (!strcmp(when, "before-finalize")) MPI_Finalize();
    MPI_Init(&argc, &argv);
    if (!strcmp(when, "twice")) MPI_Init(&argc, &argv);
    MPI_Finalize();
    if (!strcmp(when, "after")) MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(when, "after-finalize")) MPI_Finalize();
    if (!strcmp(when, "after-init")) MPI_Init(&argc, &argv);
    printf("went on\n");
    return 0;
}
