/* A long message after the other, until one fails; what the library says of it is the last that each rank says. With
 * `fatal`, the library itself ends the program. */
#include <unistd.h>

#include "../programs/check.h"

enum { BYTES = 8 << 20 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int fatal = argc > 1 && strcmp(argv[1], "fatal") == 0;
    if (!fatal) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    char *bytes = calloc(1, BYTES);
    int code = MPI_SUCCESS;
    for (int number = 0; code == MPI_SUCCESS; number++) {
        code = rank == 0 ? MPI_Send(bytes, BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD)
                         : MPI_Recv(bytes, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 0 && number == 1 && code == MPI_SUCCESS) {
            printf("under way\n");
            fflush(stdout);
        }
    }
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    fprintf(stderr, "rank %d has seen: %s\n", rank, text);
    /* The other has its own to say before this end of the job ends it. */
    sleep(5);
    return 9;
}
