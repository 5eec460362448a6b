/* A ping-pong of 8 bytes between two hosts for some seconds, and the longest time from one message to the next. A rail may break
 * after "under way". The seconds are the argument. */
#include "../programs/check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 5, begin = MPI_Wtime(), before = begin, longest = 0;
    long out = 0, in = 0, more = 1;
    int peer = 1 - rank;
    for (long round = 0; more; round++) {
        /* The sign of the last message differs. */
        out = rank == 0 && round > 100 && MPI_Wtime() - begin > seconds ? -round - 1 : round + 1;
        if (rank == 0) MPI_Send(&out, 1, MPI_LONG, peer, 3, MPI_COMM_WORLD);
        MPI_Recv(&in, 1, MPI_LONG, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1) {
            SAME(labs(in), round + 1);
            MPI_Send(&in, 1, MPI_LONG, peer, 3, MPI_COMM_WORLD);
        } else
            SAME(in, out);
        more = in > 0;
        double now = MPI_Wtime();
        if (now - before > longest) longest = now - before;
        before = now;
        if (round == 100) {
            longest = 0;
            if (rank == 0) {
                printf("under way\n");
                fflush(stdout);
            }
        }
    }
    if (rank == 0) printf("longest %.3f s\n", longest);
    return finish();
}
