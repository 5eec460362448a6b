/* The system refuses memory to the library: rank 0 sends more messages to nobody than a limit leaves room for. */
#include "check.h"
#include <sys/resource.h>

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
    char *message = calloc(1, BYTES);
    start(&argc, &argv);
    if (rank == 0) {
        struct rlimit room = {1 << 29, 1 << 29};
        setrlimit(RLIMIT_AS, &room);
        MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0);
        for (int i = 0; i < 4096; i++) MPI_Bsend(message, BYTES, MPI_BYTE, size - 1, i, MPI_COMM_WORLD);
    } else {
        MPI_Recv(message, BYTES, MPI_BYTE, 0, 4711, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    printf("went on\n");
    MPI_Finalize();
    return 0;
}
