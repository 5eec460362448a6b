/* A wrong argument under a fatal error handler. The program must not reach its end; the runner looks
 * at the exit code and at the message, which names the procedure and the argument. */
#include "check.h"

int main(int argc, char **argv) {
    const char *which = argc > 1 ? argv[1] : "";
    int value = 0, last;
    start(&argc, &argv);
    last = rank == size - 1; /* the others wait, and must be ended too */
    if (!last) MPI_Recv(&value, 1, MPI_INT, last, 999, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(which, "rank")) MPI_Send(&value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    if (!strcmp(which, "tag")) MPI_Send(&value, 1, MPI_INT, 0, -4711, MPI_COMM_WORLD);
    if (!strcmp(which, "count")) MPI_Bcast(&value, -4711, MPI_INT, 0, MPI_COMM_WORLD);
    if (!strcmp(which, "comm")) MPI_Comm_size(MPI_COMM_NULL, &value);
    if (!strcmp(which, "type")) MPI_Allreduce(&value, &last, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(which, "root")) MPI_Gather(&value, 1, MPI_INT, &value, 1, MPI_INT, 4711, MPI_COMM_WORLD);
    if (!strcmp(which, "truncate")) {
        MPI_Request request;
        MPI_Isend(&(int[8]){0}, 8, MPI_INT, 0, 0, MPI_COMM_SELF, &request);
        MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    }
    if (!strcmp(which, "abort-handler")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT);
        MPI_Send(&value, 1, MPI_INT, 4711, 0, MPI_COMM_WORLD);
    }
    fprintf(stderr, "the program went on after a fatal error\n");
    printf("went on\n");
    MPI_Finalize();
    return 0;
}
