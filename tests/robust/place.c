/* Prints the rank, the number of ranks and the number of the program. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int rank, size, found, *program;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &program, &found);
    printf("%d/%d %d\n", rank, size, found ? *program : -1);
    MPI_Finalize();
    return 0;
}
