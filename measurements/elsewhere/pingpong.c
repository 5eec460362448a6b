/* A ping-pong between ranks 0 and 1 that prints the table of Intel's MPI Benchmarks: message length, repetitions, half of the
 * round trip in microseconds, and the rate. The time is the mean, as there. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void exchange(char *buffer, int length, int rank) {
    if (rank == 0) {
        MPI_Send(buffer, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, length, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    static const int lengths[] = {8, 64, 1024, 4096, 16384, 65536, 262144, 1048576};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *buffer = calloc(1 << 20, 1);
    if (rank == 0) {
        printf("#    Intel(R) MPI Benchmarks, MPI-1 part: its table, by another program\n# Benchmarking PingPong\n# #processes = 2\n");
        printf("       #bytes #repetitions      t[usec]   Mbytes/sec\n");
    }
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        int length = lengths[at], repetitions = length < 65536 ? 200 : 40;
        exchange(buffer, length, rank);
        double begin = MPI_Wtime();
        for (int turn = 0; turn < repetitions; turn++) exchange(buffer, length, rank);
        double mean = (MPI_Wtime() - begin) / repetitions / 2 * 1e6;
        if (rank == 0) printf("%13d %12d %12.2f %12.2f\n", length, repetitions, mean, length / mean);
    }
    free(buffer);
    MPI_Finalize();
    return 0;
}
