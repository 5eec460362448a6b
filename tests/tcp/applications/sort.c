// Sorts keys that are not evenly distributed: samples, splitters, one exchange of parts of different lengths, a merge by sorting.
// sort KEYS TIMES
#include "timed.h"
#include <string.h>

static int order(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    enum { SAMPLES = 64 };
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = atoi(argv[1]) / ranks, times = atoi(argv[2]), most = 2 * own;
    uint64_t *keys = room(8L * own), *sorted = room(8L * most), *samples = room(8L * SAMPLES * (ranks + 1));
    int *counts = room(4 * sizeof(int) * ranks), *places = counts + ranks, *theirs = places + ranks, *from = theirs + ranks;
    uint64_t state = 3 + rank;
    double sum = 0, all;
    begin();
    for (int time = 0; time < times; time++) {
        for (int i = 0; i < own; i++) {
            uint64_t one = next(&state) >> 32, other = next(&state) >> 32;
            keys[i] = one * other; // More small keys than large ones.
        }
        qsort(keys, own, 8, order);
        for (int i = 0; i < SAMPLES; i++)
            samples[i] = keys[(long)own * i / SAMPLES];
        MPI_Allgather(samples, SAMPLES, MPI_UINT64_T, samples + SAMPLES, SAMPLES, MPI_UINT64_T, MPI_COMM_WORLD);
        qsort(samples + SAMPLES, SAMPLES * ranks, 8, order);
        int at = 0, arriving = 0;
        for (int to = 0; to < ranks; to++) {
            places[to] = at;
            while (at < own && (to == ranks - 1 || keys[at] < samples[SAMPLES + SAMPLES * (to + 1)]))
                at++;
            counts[to] = at - places[to];
        }
        MPI_Alltoall(counts, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD);
        for (int to = 0; to < ranks; to++) {
            from[to] = arriving;
            arriving += theirs[to];
        }
        if (arriving > most)
            MPI_Abort(MPI_COMM_WORLD, 1);
        MPI_Alltoallv(keys, counts, places, MPI_UINT64_T, sorted, theirs, from, MPI_UINT64_T, MPI_COMM_WORLD);
        qsort(sorted, arriving, 8, order);
        for (int i = 0; i < arriving; i += 1000)
            sum += (double)(sorted[i] >> 40);
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    end(all);
}
