/* Half of the time of a round trip with messages of a vector type, by length of the message and of its runs: the send buffer has gaps as long
 * as its runs, the receive buffer has none. Prints lines of: message bytes, run bytes, microseconds (the median of the batches). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 15 };

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int rank, least_run = argc > 1 ? atoi(argv[1]) : 1024;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int len = 32 << 10; len <= 1 << 20; len *= 2) {
        char *own = malloc(2 * (size_t)len), *to = malloc((size_t)len);
        memset(own, 1, 2 * (size_t)len);
        memset(to, 2, (size_t)len);
        for (int run = least_run; run <= 64 << 10 && run <= len; run *= 2) {
            MPI_Datatype type;
            double times[BATCHES];
            int each = (2 << 20) / len + 4;
            MPI_Type_vector(len / run, run, 2 * run, MPI_BYTE, &type);
            MPI_Type_commit(&type);
            for (int batch = -1; batch < BATCHES; batch++) {
                double begun = MPI_Wtime();
                for (int i = 0; i < each; i++) {
                    if (rank == 0) MPI_Send(own, 1, type, 1, 0, MPI_COMM_WORLD);
                    MPI_Recv(to, len, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    if (rank == 1) MPI_Send(own, 1, type, 0, 0, MPI_COMM_WORLD);
                }
                if (batch >= 0) times[batch] = (MPI_Wtime() - begun) / each / 2 * 1e6;
            }
            qsort(times, BATCHES, sizeof *times, ascending);
            if (rank == 0) printf("%d %d %.2f\n", len, run, times[BATCHES / 2]);
            MPI_Type_free(&type);
        }
        free(own);
        free(to);
    }
    MPI_Finalize();
    return 0;
}
