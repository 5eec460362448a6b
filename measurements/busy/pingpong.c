/* Ping-pong of 8 bytes between two ranks, which compute between exchanges.

   pingpong SECONDS MICROSECONDS

   Rank 0 prints, in microseconds, the mean, median, 99th percentile and maximum of half a round trip. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4000000 };
static double times[MOST];

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Work of a fixed number of steps, so that a rank without a core takes longer. */
static void compute(long steps) {
    volatile double sum = 0;
    for (long step = 0; step < steps; step++) sum += (double)step;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 1, microseconds = argc > 2 ? atof(argv[2]) : 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    /* The least of several tries is the speed of an undisturbed core. */
    double least = 1;
    for (int attempt = 0; attempt < 20; attempt++) {
        double begin = MPI_Wtime();
        compute(100000);
        double took = MPI_Wtime() - begin;
        if (took < least) least = took;
    }
    long steps = (long)(microseconds * 1e-6 / least * 100000);

    char message[8] = {0};
    long count = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), last = begin;
    while (!message[0]) {
        compute(steps);
        if (rank == 0) {
            message[0] = last - begin > seconds;
            MPI_Send(message, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(message, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            double now = MPI_Wtime();
            if (count < MOST) times[count] = (now - last) * 1e6 / 2;
            count++;
            last = now;
        } else {
            MPI_Recv(message, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(message, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 0) {
        long kept = count < MOST ? count : MOST;
        qsort(times, (size_t)kept, sizeof *times, by_value);
        printf("%.4f %.4f %.4f %.4f\n", (last - begin) * 1e6 / 2 / (double)count, times[kept / 2], times[kept * 99 / 100],
               times[kept - 1]);
    }
    MPI_Finalize();
    return 0;
}
