/* Two ranks measure messages between them, by the procedures of `fishplate bench`, with any MPI library.
 *
 *     stream latency|rate|bandwidth BYTES SECONDS
 *
 * `latency` prints half of the mean round trip in µs; `rate` messages a second and `bandwidth` MB/s of windows of 64 messages, each
 * answered by four bytes. A short run before determines the number of exchanges. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64 };

static int rank, length, is_latency;
static char *bytes;

static void exchange(void) {
    char answer[4] = "ack";
    if (is_latency) {
        if (rank == 0) MPI_Send(bytes, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(bytes, length, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(bytes, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        return;
    }
    MPI_Request all[WINDOW];
    for (int at = 0; at < WINDOW; at++)
        if (rank == 0) MPI_Isend(bytes, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &all[at]);
        else MPI_Irecv(bytes, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &all[at]);
    MPI_Waitall(WINDOW, all, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(answer, 4, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(answer, 4, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
}

static double time_of(int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int at = 0; at < count; at++) exchange();
    return MPI_Wtime() - begin;
}

int main(int argc, char **argv) {
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || size != 2) {
        fprintf(stderr, "two ranks: stream latency|rate|bandwidth BYTES SECONDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    is_latency = strcmp(argv[1], "latency") == 0;
    length = atoi(argv[2]);
    if ((bytes = calloc(1, length + 1)) == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
    int warm = is_latency ? 2000 : length < 65536 ? 20 : 2;
    time_of(warm);
    int count = atof(argv[3]) / (time_of(warm) / warm) + 1;
    MPI_Bcast(&count, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double taken = time_of(count);
    if (rank == 0 && is_latency) printf("%.3f\n", taken / count / 2 * 1e6);
    else if (rank == 0) printf("%.1f\n", (double)count * WINDOW / taken * (strcmp(argv[1], "rate") == 0 ? 1 : length / 1e6));
    MPI_Finalize();
    return 0;
}
