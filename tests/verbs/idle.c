/* Rank 1 waits three seconds in MPI_Recv for a message of the other host; what processor time that took is what counts. */
#include <sys/resource.h>
#include <unistd.h>

#include "../programs/check.h"

static double processor(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int length = argc > 1 ? atoi(argv[1]) : 8;
    char *bytes = malloc(length);
    /* The connection is made. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        sleep(3);
        memset(bytes, 77, length);
        MPI_Send(bytes, length, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        double before = processor();
        MPI_Recv(bytes, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double used = processor() - before;
        CHECK(used < 0.3, "three seconds of waiting took %.2f s of the processor", used);
        CHECK(bytes[0] == 77 && bytes[length - 1] == 77, "not what was sent");
        fprintf(stderr, "waiting took %.3f s of the processor\n", used);
    }
    return finish();
}
