/* Work inside MPI. Two ranks make one kind of it ten times, and rank 0 prints the time. Kinds: "sum" and "function" add vectors of `count` doubles
   in MPI_Reduce_local, by MPI_SUM and by a function of the program, "column" packs a column of a matrix, "handler" calls an error handler. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 10, STRIDE = 16 };

static volatile double sink;

static void compute(int amount) {
    double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
    sink = x;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *count; i++) ((double *)inout)[i] += ((double *)in)[i];
}

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    compute(1000000);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *kind = argc > 1 ? argv[1] : "sum";
    int rank, count = argc > 2 ? atoi(argv[2]) : 1000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double *a = calloc(count, 8 * STRIDE), *b = calloc(count, 8);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Datatype column;
    MPI_Type_vector(count, 1, STRIDE, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    double start = MPI_Wtime();
    for (int i = 0; i < TIMES; i++) {
        int at = 0;
        if (!strcmp(kind, "sum")) MPI_Reduce_local(a, b, count, MPI_DOUBLE, MPI_SUM);
        if (!strcmp(kind, "function")) MPI_Reduce_local(a, b, count, MPI_DOUBLE, op);
        if (!strcmp(kind, "column")) MPI_Pack(a, 1, column, b, 8 * count, &at, MPI_COMM_WORLD);
        if (!strcmp(kind, "handler")) MPI_Send(a, 1, MPI_DOUBLE, 99, 0, MPI_COMM_WORLD);
    }
    double time = MPI_Wtime() - start;
    if (rank == 0) printf("0 %.9f\n", time);
    MPI_Finalize();
    return 0;
}
