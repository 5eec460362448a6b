/* Long messages both ways between ranks of which every second one begins later than the others, in turn.
 *
 *     skew PATTERN STEPS LENGTH SKEW_US...
 *
 * PATTERN: `pairs`, two messages each way between the ranks of a pair; `halo`, one each way to both neighbours in a ring; `ring`, one to the
 * next rank; `shift`, one to the rank half the ring away. A barrier precedes each step. Rank 0 prints for each skew the microseconds of
 * all steps. Messages of each skew have tags of their own, so what the library learns of receives begins anew. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, count, length, to[2], from[2];
static char *memory;

/* The neighbours to which a rank sends, in the order of its sends, and from which it receives. */
static int neighbours(const char *pattern) {
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, far = (rank + ranks / 2) % ranks;
    if (!strcmp(pattern, "pairs")) {
        to[0] = to[1] = from[0] = from[1] = rank ^ 1;
        return 2;
    }
    if (!strcmp(pattern, "halo")) {
        to[0] = from[1] = next;
        to[1] = from[0] = last;
        return 2;
    }
    to[0] = !strcmp(pattern, "shift") ? far : next;
    from[0] = !strcmp(pattern, "shift") ? far : last;
    return 1;
}

/* One exchange, which every second rank begins `skew` seconds late. */
static void exchange(int is_late, double skew, int tag) {
    MPI_Request requests[4];
    MPI_Barrier(MPI_COMM_WORLD);
    double until = MPI_Wtime() + (is_late ? skew : 0);
    while (MPI_Wtime() < until)
        ;
    for (int at = 0; at < count; at++)
        MPI_Irecv(memory + (size_t)at * length, length, MPI_BYTE, from[at], tag + at, MPI_COMM_WORLD, &requests[at]);
    for (int at = 0; at < count; at++)
        MPI_Isend(memory + (size_t)(2 + at) * length, length, MPI_BYTE, to[at], tag + at, MPI_COMM_WORLD, &requests[count + at]);
    MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc < 5) {
        fprintf(stderr, "usage: skew PATTERN STEPS LENGTH SKEW_US...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int steps = atoi(argv[2]);
    length = atoi(argv[3]);
    count = neighbours(argv[1]);
    memory = calloc(4, length);
    /* Connections and registrations. */
    exchange(0, 0, 0);
    for (int at = 4; at < argc; at++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int step = 0; step < steps; step++)
            exchange((rank + step) % 2, atof(argv[at]) * 1e-6, 2 * at);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            printf("%s %.2f\n", argv[at], (MPI_Wtime() - begin) * 1e6);
    }
    free(memory);
    MPI_Finalize();
    return 0;
}
