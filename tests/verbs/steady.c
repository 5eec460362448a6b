/* Messages of many lengths between two hosts for some seconds, checked byte by byte; then the first messages of ranks that
 * have not met. A rail may break after "under way". The seconds are the argument; a file named behind them ends the messages once
 * it exists. */
#include "../programs/check.h"
#include <unistd.h>

enum { LONGEST = 1 << 20 };

static char *out, *in, *expected;

/* One message to `peer` and one back, of the length and contents that the round's number gives. */
static void exchange(int peer, int round) {
    static const int lengths[] = {0, 8, 700, 3000, 12 << 10, 70 << 10, LONGEST};
    int length = lengths[round % 7];
    fill(out, length, round + rank);
    fill(expected, length, round + peer);
    memset(in, 0, length);
    MPI_Status status;
    MPI_Sendrecv(out, length, MPI_BYTE, peer, round, in, length, MPI_BYTE, peer, round, MPI_COMM_WORLD, &status);
    int count;
    MPI_Get_count(&status, MPI_BYTE, &count);
    SAME(count, length);
    CHECK(memcmp(in, expected, length) == 0, "round %d, %d bytes from rank %d", round, length, peer);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 5;
    out = malloc(LONGEST), in = malloc(LONGEST), expected = malloc(LONGEST);
    /* The first half of the ranks is on one host, the second half on the other. */
    int half = size / 2, peer = (rank + half) % size, first = rank % half == 0;
    if (first) {
        double begin = MPI_Wtime();
        int rounds = 0, more = 1;
        while (more) {
            exchange(peer, rounds++);
            if (rank == 0 && rounds == 14) {
                printf("under way\n");
                fflush(stdout);
            }
            more = rounds < 28 || (MPI_Wtime() - begin < seconds && (argc < 3 || access(argv[2], F_OK) != 0));
            if (rank == 0) MPI_Send(&more, 1, MPI_INT, peer, 99, MPI_COMM_WORLD);
            else MPI_Recv(&more, 1, MPI_INT, peer, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    /* The others wait for the first of their host, and meet their peers only now. */
    int token = 0, here = rank - rank % half;
    if (first)
        for (int other = here + 1; other < here + half; other++) MPI_Send(&token, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
    else {
        MPI_Recv(&token, 1, MPI_INT, here, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int round = 0; round < 14; round++) exchange(peer, round);
    }
    free(out), free(in), free(expected);
    return finish();
}
