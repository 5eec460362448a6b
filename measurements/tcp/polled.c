/* An exchange that only nonblocking calls drive, as in a search of a graph: each rank sends messages to ranks by chance while it polls
 * for those of others, then all agree on the end of a level.
 *
 * Argument: levels. Rank 0 prints the seconds that they take. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 300, BYTES = 4096, POSTED = 8, SENT = 8 };

static char in[POSTED][BYTES], out[SENT][BYTES];
static MPI_Request receives[POSTED], sends[SENT];
static long got, sum;

/* Takes a message, if there is one, and reads it. */
static void look(void) {
    int at, flag;
    MPI_Testany(POSTED, receives, &at, &flag, MPI_STATUS_IGNORE);
    if (!flag || at == MPI_UNDEFINED) return;
    got++;
    for (int i = 0; i < BYTES; i++) sum += in[at][i];
    MPI_Irecv(in[at], BYTES, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &receives[at]);
}

static void finish(MPI_Request *request) {
    for (int flag = 0;;) {
        MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        if (flag) return;
        look();
    }
}

static void level(int size, unsigned *seed) {
    static long due;
    int counts[1024] = {0}, mine;
    for (int i = 0; i < MESSAGES; i++) {
        int to = rand_r(seed) % size;
        counts[to]++;
        finish(&sends[i % SENT]);
        MPI_Isend(out[i % SENT], BYTES, MPI_CHAR, to, 1, MPI_COMM_WORLD, &sends[i % SENT]);
        look();
    }
    MPI_Request all;
    MPI_Ireduce_scatter_block(counts, &mine, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &all);
    finish(&all);
    for (due += mine; got < due;) look();
    for (int i = 0; i < SENT; i++) finish(&sends[i]);
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    finish(&all);
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned seed = (unsigned)rank + 1;
    for (int i = 0; i < POSTED; i++) MPI_Irecv(in[i], BYTES, MPI_CHAR, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &receives[i]);
    for (int i = 0; i < SENT; i++) sends[i] = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = argc > 1 ? atoi(argv[1]) : 20; i > 0; i--) level(size, &seed);
    if (rank == 0) printf("%.3f\n", MPI_Wtime() - start);
    for (int i = 0; i < POSTED; i++) {
        MPI_Cancel(&receives[i]);
        MPI_Wait(&receives[i], MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
