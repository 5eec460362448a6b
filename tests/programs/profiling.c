/* The profiling interface: a program that defines MPI_Send itself sees its own calls only, and gets
 * the library's work from PMPI_Send. Calls inside the library do not pass here. */
#include "check.h"

static int sends, receives, barriers, inits;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    sends++;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
             MPI_Status *status) {
    receives++;
    return PMPI_Recv(buffer, count, type, from, tag, comm, status);
}

int MPI_Barrier(MPI_Comm comm) {
    barriers++;
    return PMPI_Barrier(comm);
}

int MPI_Init(int *argc, char ***argv) {
    inits++;
    return PMPI_Init(argc, argv);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int value = rank, sum = -1;
    for (int i = 0; i < 10; i++) {
        if (rank == 0 && size > 1) OK(MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD));
        if (rank == 1) OK(MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MPI_Comm twin;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_free(&twin));
    OK(MPI_Pcontrol(1));
    SAME(inits, 1);
    SAME(sends, rank == 0 && size > 1 ? 10 : 0);
    SAME(receives, rank == 1 ? 10 : 0);
    SAME(barriers, 1);
    return finish();
}
