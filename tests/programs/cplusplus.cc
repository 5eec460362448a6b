// mpi.h in C++: it compiles without a warning, names have C linkage, constants initialise statics.
#include "check.h"

static const MPI_Datatype type = MPI_INT;
static const MPI_Comm world = MPI_COMM_WORLD;

static void add(void *in, void *inout, int *count, MPI_Datatype *) {
    for (int i = 0; i < *count; i++) static_cast<int *>(inout)[i] += static_cast<int *>(in)[i];
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int sum = -1;
    MPI_Op op;
    OK(MPI_Op_create(add, 1, &op));
    OK(MPI_Allreduce(&rank, &sum, 1, type, op, world));
    SAME(sum, size * (size - 1) / 2);
    OK(MPI_Op_free(&op));
    return finish();
}
