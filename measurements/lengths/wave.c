/* A wave in a row of points, of which each rank has a part: threads of a rank advance it, and ranks exchange its ends. Arguments: points of
   a rank, steps. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int points = argc > 1 ? atoi(argv[1]) : 20000, steps = argc > 2 ? atoi(argv[2]) : 100;
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    double *was = calloc(points + 2, sizeof *was), *is = calloc(points + 2, sizeof *is), *next = calloc(points + 2, sizeof *next);
    if (rank == 0) is[points / 2] = was[points / 2] = 1;
    double height = 0;
    for (int step = 0; step < steps; step++) {
        MPI_Sendrecv(&is[points], 1, MPI_DOUBLE, right, 0, &is[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&is[1], 1, MPI_DOUBLE, left, 1, &is[points + 1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double own = 0;
#pragma omp parallel for reduction(max : own)
        for (int at = 1; at <= points; at++) {
            next[at] = 2 * is[at] - was[at] + 0.25 * (is[at - 1] - 2 * is[at] + is[at + 1]);
            own = next[at] > own ? next[at] : own;
        }
        double *old = was;
        was = is, is = next, next = old;
        if (step % 10 == 9) MPI_Allreduce(&own, &height, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%d ranks, %d steps: the wave is %g high\n", size, steps, height);
    MPI_Finalize();
}
