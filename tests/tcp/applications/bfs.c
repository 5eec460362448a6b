// Breadth-first search in a random graph: irregular messages, whose number and size nobody knows before.
// bfs VERTICES DEGREE SEARCHES
#include "timed.h"

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = atoi(argv[1]) / ranks, degree = atoi(argv[2]), searches = atoi(argv[3]);
    uint32_t vertices = own * ranks, first = own * rank;
    // The neighbours of a vertex: some near, some anywhere.
    uint32_t *edges = room(sizeof(uint32_t) * own * degree);
    uint64_t state = rank + 7;
    for (long i = 0; i < (long)own * degree; i++) {
        uint32_t from = first + i / degree, near = (from + vertices + next(&state) % 1024 - 512) % vertices;
        edges[i] = next(&state) % 4 ? near : next(&state) % vertices;
    }
    int *level = room(sizeof(int) * own), *counts = room(4 * sizeof(int) * ranks);
    int *places = counts + ranks, *theirs = places + ranks, *from = theirs + ranks;
    uint32_t *frontier = room(sizeof(uint32_t) * own), *out = room(sizeof(uint32_t) * own * degree);
    uint32_t *in = room(sizeof(uint32_t) * own * degree * 2);
    double sum = 0, all;
    begin();
    for (int search = 0; search < searches; search++) {
        uint32_t root = (uint32_t)search * 2654435761u % vertices;
        int size = 0;
        for (int i = 0; i < own; i++)
            level[i] = -1;
        if (root / own == (uint32_t)rank) {
            level[root - first] = 0;
            frontier[size++] = root - first;
        }
        for (int depth = 1;; depth++) {
            for (int to = 0; to < ranks; to++)
                counts[to] = 0;
            for (int i = 0; i < size; i++)
                for (int j = 0; j < degree; j++)
                    counts[edges[(long)frontier[i] * degree + j] / own]++;
            int total = 0, arriving = 0;
            for (int to = 0; to < ranks; to++) {
                places[to] = total;
                total += counts[to];
            }
            MPI_Alltoall(counts, 1, MPI_INT, theirs, 1, MPI_INT, MPI_COMM_WORLD);
            for (int to = 0; to < ranks; to++) {
                from[to] = arriving;
                arriving += theirs[to];
                counts[to] = 0;
            }
            for (int i = 0; i < size; i++)
                for (int j = 0; j < degree; j++) {
                    uint32_t vertex = edges[(long)frontier[i] * degree + j], to = vertex / own;
                    out[places[to] + counts[to]++] = vertex % own;
                }
            MPI_Alltoallv(out, counts, places, MPI_UINT32_T, in, theirs, from, MPI_UINT32_T, MPI_COMM_WORLD);
            size = 0;
            for (int i = 0; i < arriving; i++)
                if (level[in[i]] < 0) {
                    level[in[i]] = depth;
                    frontier[size++] = in[i];
                    sum += depth;
                }
            int any;
            MPI_Allreduce(&size, &any, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
            if (any == 0)
                break;
        }
    }
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    end(all);
}
