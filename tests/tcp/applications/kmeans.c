// Groups points around centres: every rank has points of its own, and all add up the new centres.
// kmeans POINTS CENTRES ROUNDS
#include "timed.h"
#include <string.h>

enum { DIMENSIONS = 16 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = atoi(argv[1]) / ranks, centres = atoi(argv[2]), rounds = atoi(argv[3]);
    int size = centres * (DIMENSIONS + 1);
    double *points = room(sizeof(double) * own * DIMENSIONS), *centre = room(sizeof(double) * size), *sums = room(sizeof(double) * size);
    uint64_t state = 11 + rank;
    for (long i = 0; i < (long)own * DIMENSIONS; i++)
        points[i] = (next(&state) >> 11) * 0x1p-53;
    memset(centre, 0, sizeof(double) * size);
    memcpy(centre, points, sizeof(double) * (centres * DIMENSIONS));
    begin();
    MPI_Bcast(centre, size, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        memset(sums, 0, sizeof(double) * size);
        for (int i = 0; i < own; i++) {
            double nearest = 1e300, *point = points + (long)i * DIMENSIONS;
            int best = 0;
            for (int c = 0; c < centres; c++) {
                double distance = 0;
                for (int d = 0; d < DIMENSIONS; d++) {
                    double apart = point[d] - centre[c * DIMENSIONS + d];
                    distance += apart * apart;
                }
                if (distance < nearest) {
                    nearest = distance;
                    best = c;
                }
            }
            for (int d = 0; d < DIMENSIONS; d++)
                sums[best * DIMENSIONS + d] += point[d];
            sums[centres * DIMENSIONS + best] += 1;
        }
        MPI_Allreduce(MPI_IN_PLACE, sums, size, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int c = 0; c < centres; c++)
            for (int d = 0; d < DIMENSIONS; d++)
                if (sums[centres * DIMENSIONS + c] > 0)
                    centre[c * DIMENSIONS + d] = sums[c * DIMENSIONS + d] / sums[centres * DIMENSIONS + c];
    }
    double sum = 0;
    for (int i = 0; i < centres * DIMENSIONS; i++)
        sum += centre[i];
    end(sum);
}
