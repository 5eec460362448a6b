/* The first rank of each of two hosts exchanges messages for some seconds, while it has a message for a rank of the other host that is
 * not in MPI: its connection to that rank is not made until the end, so the rank goes on listening. The seconds are the argument. Prints
 * the time of a message of 8 bytes one way, and the bandwidth of messages of 1 MiB. */
#include <unistd.h>

#include "../programs/check.h"

enum { LONG = 1 << 20, WINDOW = 8, APART = 11, SHORT = 12, STREAM = 13, CREDIT = 14 };

static double seconds;
static char *bytes;

/* A ping-pong of numbers; the last has the other sign. */
static void pingpong(int peer) {
    long out = 0, in = 0, round = 0;
    double begin = MPI_Wtime(), now = begin;
    for (int more = 1; more; round++) {
        now = MPI_Wtime();
        out = rank == 0 && round > 100 && now - begin > seconds / 2 ? -round - 1 : round + 1;
        if (rank == 0) MPI_Send(&out, 1, MPI_LONG, peer, SHORT, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_LONG, peer, SHORT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        SAME(labs(in), round + 1);
        if (rank != 0) MPI_Send(&in, 1, MPI_LONG, peer, SHORT, MPI_COMM_WORLD);
        more = in > 0;
        if (round == 100 && rank == 0) {
            printf("under way\n");
            fflush(stdout);
        }
    }
    if (rank == 0) printf("latency %.3f us\n", (now - begin) / round / 2 * 1e6);
}

/* Windows of long messages from rank 0; the credit says whether another follows. */
static void stream(int peer) {
    MPI_Request requests[WINDOW];
    double begin = MPI_Wtime(), now = begin;
    long windows = 0;
    for (int more = 1; more; windows++) {
        for (int at = 0; at < WINDOW; at++) {
            if (rank == 0) MPI_Isend(bytes + at * LONG, LONG, MPI_BYTE, peer, STREAM, MPI_COMM_WORLD, &requests[at]);
            else MPI_Irecv(bytes + at * LONG, LONG, MPI_BYTE, peer, STREAM, MPI_COMM_WORLD, &requests[at]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        more = now - begin < seconds / 2;
        if (rank == 0) {
            MPI_Send(&more, 1, MPI_INT, peer, CREDIT, MPI_COMM_WORLD);
            MPI_Recv(&more, 1, MPI_INT, peer, CREDIT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&more, 1, MPI_INT, peer, CREDIT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&more, 1, MPI_INT, peer, CREDIT, MPI_COMM_WORLD);
        }
        now = MPI_Wtime();
    }
    if (rank == 0) printf("bandwidth %.2f MB/s\n", windows * (double)WINDOW * LONG / (now - begin) / 1e6);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    seconds = argc > 1 ? atof(argv[1]) : 5;
    int half = size / 2, there = (rank + half) % size, first = rank % half == 0, token = rank, other = -1;
    if (!first) {
        /* The ranks of the other host know of this one only from here on. */
        usleep(1e6 * (seconds + 0.5));
        MPI_Recv(&other, 1, MPI_INT, there - there % half, APART, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        SAME(other, there - there % half);
        MPI_Send(&token, 1, MPI_INT, other, APART, MPI_COMM_WORLD);
        return finish();
    }
    bytes = malloc(WINDOW * LONG);
    fill(bytes, WINDOW * LONG, 0);
    char *expected = malloc(WINDOW * LONG);
    memcpy(expected, bytes, WINDOW * LONG);
    if (rank != 0) memset(bytes, 0, WINDOW * LONG);
    MPI_Request apart[2];
    MPI_Isend(&token, 1, MPI_INT, there + 1, APART, MPI_COMM_WORLD, &apart[0]);
    MPI_Irecv(&other, 1, MPI_INT, there + 1, APART, MPI_COMM_WORLD, &apart[1]);
    pingpong(there);
    stream(there);
    MPI_Waitall(2, apart, MPI_STATUSES_IGNORE);
    SAME(other, there + 1);
    CHECK(memcmp(bytes, expected, WINDOW * LONG) == 0, "the long messages differ");
    free(bytes), free(expected);
    return finish();
}
