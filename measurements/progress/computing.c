/* Latency of operations on a window whose target computes and makes no MPI calls.
 *
 *     computing OPERATIONS PAUSE_US
 *
 * Rank 0 computes until rank 1 has written a word into its window. Rank 1 makes OPERATIONS of each
 * kind, each between MPI_Win_lock and MPI_Win_unlock, PAUSE_US of sleep apart, and prints for each
 * kind the median, the 99th percentile and the maximum in microseconds. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 1024, LONG = 1 << 17 };

typedef struct {
    volatile int64_t end;
    int64_t word, block[BLOCK], far[LONG];
} Memory;

static int by_value(const void *one, const void *other) {
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

/* The processor time that this process's main thread has had, in seconds. */
static double processor(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv) {
    static const char *const kinds[] = {"put 8 B", "get 8 B", "fetch-and-op", "compare-and-swap", "accumulate 8 KiB", "get-accumulate 8 KiB",
                                        "put 1 MiB", "get 1 MiB"};
    int rank, operations = argc > 1 ? atoi(argv[1]) : 1000, pause = argc > 2 ? atoi(argv[2]) : 500;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Memory *memory = calloc(1, sizeof *memory);
    int64_t one = 1, none = 0, old, *own = calloc(LONG, 8), *result = calloc(LONG, 8);
    double *times = malloc(operations * sizeof *times);
    MPI_Win win;
    MPI_Win_create(memory, sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        double start = MPI_Wtime(), used = processor();
        while (!memory->end) {}
        double passed = MPI_Wtime() - start;
        printf("the target computed for %.1f s and had the processor for %.1f %% of them\n", passed, 100 * (processor() - used) / passed);
    }
    for (size_t kind = 0; rank == 1 && kind < sizeof kinds / sizeof *kinds; kind++) {
        for (int i = 0; i < operations; i++) {
            usleep(pause);
            double start = MPI_Wtime();
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
            MPI_Aint word = offsetof(Memory, word), block = offsetof(Memory, block), far = offsetof(Memory, far);
            switch (kind) {
            case 0: MPI_Put(&one, 1, MPI_INT64_T, 0, word, 1, MPI_INT64_T, win); break;
            case 1: MPI_Get(&old, 1, MPI_INT64_T, 0, word, 1, MPI_INT64_T, win); break;
            case 2: MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, word, MPI_SUM, win); break;
            case 3: MPI_Compare_and_swap(&one, &none, &old, MPI_INT64_T, 0, word, win); break;
            case 4: MPI_Accumulate(own, BLOCK, MPI_INT64_T, 0, block, BLOCK, MPI_INT64_T, MPI_SUM, win); break;
            case 5: MPI_Get_accumulate(own, BLOCK, MPI_INT64_T, result, BLOCK, MPI_INT64_T, 0, block, BLOCK, MPI_INT64_T, MPI_SUM, win); break;
            case 6: MPI_Put(own, LONG, MPI_INT64_T, 0, far, LONG, MPI_INT64_T, win); break;
            default: MPI_Get(result, LONG, MPI_INT64_T, 0, far, LONG, MPI_INT64_T, win); break;
            }
            MPI_Win_unlock(0, win);
            times[i] = 1e6 * (MPI_Wtime() - start);
        }
        qsort(times, operations, sizeof *times, by_value);
        printf("%-22s %10.1f %10.1f %10.1f\n", kinds[kind], times[operations / 2], times[operations * 99 / 100], times[operations - 1]);
    }
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Put(&one, 1, MPI_INT64_T, 0, offsetof(Memory, end), 1, MPI_INT64_T, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
