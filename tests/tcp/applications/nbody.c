// Bodies that attract each other: the positions of each rank go around a ring, and every rank adds up the forces on its own.
// nbody BODIES STEPS
#include "timed.h"
#include <math.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int own = atoi(argv[1]) / ranks, steps = atoi(argv[2]);
    size_t bytes = sizeof(double) * 3 * own;
    double *at = room(bytes), *speed = calloc(3 * own, sizeof(double)), *force = room(bytes), *there = room(bytes);
    uint64_t state = rank + 1;
    for (int i = 0; i < 3 * own; i++)
        at[i] = next(&state) / 18446744073709551616.0;
    begin();
    for (int step = 0; step < steps; step++) {
        memset(force, 0, bytes);
        memcpy(there, at, bytes);
        for (int round = 0; round < ranks; round++) {
            for (int i = 0; i < own; i++) {
                for (int j = 0; j < own; j++) {
                    double x = there[3 * j] - at[3 * i], y = there[3 * j + 1] - at[3 * i + 1], z = there[3 * j + 2] - at[3 * i + 2];
                    double square = x * x + y * y + z * z + 1e-3, weight = 1 / (square * sqrt(square));
                    force[3 * i] += weight * x;
                    force[3 * i + 1] += weight * y;
                    force[3 * i + 2] += weight * z;
                }
            }
            MPI_Sendrecv_replace(there, 3 * own, MPI_DOUBLE, (rank + 1) % ranks, 0, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                                 MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 3 * own; i++) {
            speed[i] += 1e-7 * force[i];
            at[i] += 1e-3 * speed[i];
        }
    }
    double energy = 0, all;
    for (int i = 0; i < 3 * own; i++)
        energy += speed[i] * speed[i];
    MPI_Allreduce(&energy, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    end(all);
}
