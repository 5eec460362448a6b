/* The start and the end of MPI, and nothing between them. */
#include <mpi.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    return MPI_Finalize();
}
