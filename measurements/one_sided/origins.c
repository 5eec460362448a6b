/* Rate of accumulates of several origins into one window.
 *
 *     origins MILLISECONDS
 *
 * Rank 0 is the target, and sleeps outside of MPI. All others sum blocks of 8 KiB of doubles into
 * places of their own in its window, each with a flush, until the time is over. Rank 0 prints the
 * accumulates of all origins per second. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1024 };

/* Number of accumulates until `end`; the clock is read after every tenth. */
static double accumulate(MPI_Win win, const double *own, MPI_Aint place, double end) {
    double count = 0;
    while (MPI_Wtime() < end) {
        for (int i = 0; i < 10; i++) {
            MPI_Accumulate(own, BLOCK, MPI_DOUBLE, 0, place, BLOCK, MPI_DOUBLE, MPI_SUM, win);
            MPI_Win_flush(0, win);
        }
        count += 10;
    }
    return count;
}

int main(int argc, char **argv) {
    int rank, size, milliseconds = argc > 1 ? atoi(argv[1]) : 300;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double *memory, own[BLOCK], rate = 0, all = 0;
    MPI_Win win;
    MPI_Aint bytes = rank == 0 ? (MPI_Aint)(size - 1) * sizeof own : 0;
    MPI_Win_allocate(bytes, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    for (int i = 0; i < BLOCK; i++) own[i] = 1;
    for (MPI_Aint i = 0; rank == 0 && i < (size - 1) * BLOCK; i++) memory[i] = 0;
    MPI_Win_fence(0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank == 0) {
        usleep(1000 * milliseconds * 5 / 4);
    } else {
        MPI_Aint place = (MPI_Aint)(rank - 1) * BLOCK;
        MPI_Win_lock_all(0, win);
        accumulate(win, own, place, MPI_Wtime() + milliseconds / 10000.0);
        double start = MPI_Wtime();
        double count = accumulate(win, own, place, start + milliseconds / 1000.0);
        rate = count / (MPI_Wtime() - start);
        MPI_Win_unlock_all(win);
    }
    MPI_Reduce(&rate, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    for (MPI_Aint i = 0; rank == 0 && i < (size - 1) * BLOCK; i++) {
        if (memory[i] < 10 || memory[i] != memory[i / BLOCK * BLOCK]) {
            fprintf(stderr, "element %ld is %g\n", (long)i, memory[i]);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    if (rank == 0) MPI_Win_unlock(0, win);
    if (rank == 0) printf("%.0f\n", all);
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
