/* Senders that wait sleep: rank 1 computes for two seconds, in which rank 0 first has no connection to it where a network is between
 * them, and then no room for more messages. */
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { MESSAGES = 20000, LENGTH = 1000, SECONDS = 2 };

static double processor(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    unsigned char bytes[LENGTH] = {0};
    if (rank == 1) sleep(SECONDS);
    double before = processor(), began = MPI_Wtime(), used = -1;
    for (int i = 0; i < MESSAGES && rank < 2; i++) {
        if (rank == 0) {
            OK(MPI_Send(bytes, LENGTH, MPI_BYTE, 1, 0, MPI_COMM_WORLD));
            /* The work of the messages behind the wait is no wait. */
            if (used < 0 && MPI_Wtime() - began >= SECONDS * 0.9) used = processor() - before;
        } else
            OK(MPI_Recv(bytes, LENGTH, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (rank == 0 && used < 0) WRONG("no send waited for the receiver");
    if (rank == 0 && used > SECONDS * 0.5) WRONG("%d s of waiting took %.2f s of the processor", SECONDS, used);
    return finish();
}
