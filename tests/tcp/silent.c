/* Silent peers: rank 0 meets all ranks of the other host, which sleep from then on, outside MPI. Prints the time of a poll that finds
 * nothing, in an MPI_Iprobe, and the time of a message of 8 bytes between ranks 0 and 1 if they are on one host. The arguments are the
 * seconds and the number of ranks on the first host. */
#include <unistd.h>

#include "../programs/check.h"

static double seconds;

static void poll_for_nothing(void) {
    double begin = MPI_Wtime(), now = begin;
    long polls = 0;
    for (int found; now - begin < seconds / 2; now = MPI_Wtime())
        for (int at = 0; at < 1000; at++, polls++) {
            MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            CHECK(!found, "a message with a tag that nobody uses");
        }
    printf("poll %.1f ns\n", (now - begin) / polls * 1e9);
}

static void pingpong(void) {
    long out = 0, in = 0, round = 0;
    double begin = MPI_Wtime(), now = begin;
    for (int more = 1; more; round++) {
        if (round % 64 == 0) now = MPI_Wtime();
        out = rank == 0 && now - begin > seconds / 2 ? -round - 1 : round + 1;
        if (rank == 0) MPI_Send(&out, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_LONG, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(&in, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD);
        SAME(labs(in), round + 1);
        more = in > 0;
    }
    if (rank == 0) printf("latency %.1f ns\n", (MPI_Wtime() - begin) / round / 2 * 1e9);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    seconds = argc > 1 ? atof(argv[1]) : 1;
    int here = argc > 2 ? atoi(argv[2]) : 1, token = rank;
    if (rank >= here) {
        MPI_Sendrecv_replace(&token, 1, MPI_INT, 0, 1, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        usleep(1e6 * (seconds + 0.2));
    }
    if (rank == 0) {
        for (int peer = here; peer < size; peer++) {
            token = 0;
            MPI_Sendrecv_replace(&token, 1, MPI_INT, peer, 1, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            SAME(token, peer);
        }
        if (here == 1) poll_for_nothing();
    }
    if (rank < here && here == 2) pingpong();
    return finish();
}
