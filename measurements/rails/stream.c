/* A stream of long messages from rank 0 to rank 1: bytes received between two times.
 *
 *     stream FROM_MS UNTIL_MS WINDOW LENGTH
 *
 * WINDOW messages of LENGTH bytes are under way at a time.
 * Rank 1 prints the bandwidth between FROM_MS and UNTIL_MS of MPI_Wtime, in MB/s. The stream ends after UNTIL_MS. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 5) {
        fprintf(stderr, "usage: stream FROM_MS UNTIL_MS WINDOW LENGTH\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    double from = atof(argv[1]) / 1e3, until = atof(argv[2]) / 1e3;
    int window = atoi(argv[3]), length = atoi(argv[4]), rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char **buffers = malloc(window * sizeof *buffers);
    MPI_Request *requests = malloc(window * sizeof *requests);
    for (int at = 0; at < window; at++) {
        buffers[at] = malloc(length);
        memset(buffers[at], rank, length);
        requests[at] = MPI_REQUEST_NULL;
    }
    long bytes = 0;
    int last = 0;
    for (long number = 0; !last; number++) {
        int at = number % window;
        if (rank == 0) {
            MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
            last = MPI_Wtime() > until + 2e-3;
            MPI_Isend(buffers[at], length, MPI_BYTE, 1, last, MPI_COMM_WORLD, &requests[at]);
        } else {
            MPI_Status status;
            if (number < window) {
                if (number == 0)
                    for (int other = 0; other < window; other++)
                        MPI_Irecv(buffers[other], length, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[other]);
            }
            MPI_Wait(&requests[at], &status);
            double now = MPI_Wtime();
            if (now >= from && now < until)
                bytes += length;
            last = status.MPI_TAG;
            if (!last)
                MPI_Irecv(buffers[at], length, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[at]);
        }
    }
    if (rank == 0) {
        MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    } else {
        printf("%.1f\n", bytes / (until - from) / 1e6);
        for (int at = 0; at < window; at++)
            if (requests[at] != MPI_REQUEST_NULL) {
                MPI_Cancel(&requests[at]);
                MPI_Wait(&requests[at], MPI_STATUS_IGNORE);
            }
    }
    MPI_Finalize();
    return 0;
}
