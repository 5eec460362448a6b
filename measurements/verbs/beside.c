/* The same few measurements through any MPI library, between ranks 0 and 1, as `fishplate bench` makes them:
 *   latency BYTES COUNT   half of the median round trip, in microseconds
 *   bw BYTES COUNT        windows of 64 messages, each acknowledged by one: MB/s of 10^6 bytes */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 64, WARM = 50 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static int later(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

static void there_and_back(int rank, char *bytes, int length) {
    if (rank == 0) MPI_Send(bytes, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(bytes, length, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(bytes, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

static void window(int rank, char *bytes, int length) {
    MPI_Request requests[WINDOW];
    char acknowledged[4] = {0};
    for (int at = 0; at < WINDOW; at++)
        if (rank == 0) MPI_Isend(bytes, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[at]);
        else MPI_Irecv(bytes, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[at]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0) MPI_Recv(acknowledged, 4, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(acknowledged, 4, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
    int latency = !strcmp(argv[1], "latency"), length = atoi(argv[2]), count = atoi(argv[3]);
    void (*step)(int, char *, int) = latency ? there_and_back : window;
    int warm = latency ? WARM : 1 + count / 10;
    char *bytes = malloc(length);
    double *took = calloc(count, sizeof *took);
    memset(bytes, rank, length);
    double began = 0;
    for (int turn = -warm; turn < count; turn++) {
        double before = seconds();
        if (turn == 0) began = before;
        step(rank, bytes, length);
        if (turn >= 0) took[turn] = seconds() - before;
    }
    double all = seconds() - began;
    qsort(took, count, sizeof *took, later);
    if (rank == 0) printf("%.3f\n", latency ? took[count / 2] / 2 * 1e6 : 1.0 * WINDOW * count * length / all / 1e6);
    free(took);
    free(bytes);
    MPI_Finalize();
    return 0;
}
