/* What a program of Open MPI's C++ bindings does with libmpi_cxx.so.40: an object is the address of its class's table of functions, and a
 * handle; names are as a C++ compiler makes them. Each rank prints `passed`. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)

struct object { const void *functions; void *handle; };

/* The table of MPI::Datatype, which a C++ compiler puts into every program: offset, type, functions. */
const void *_ZTVN3MPI8DatatypeE[3] = {0, 0, "functions"};

extern struct object _ZN3MPI3INTE, _ZN3MPI10COMM_WORLDE;
extern void *const _ZN3MPI8IN_PLACEE;
void _ZN3MPI4CommC2Ev(struct object *);
void _ZN3MPI8Datatype4FreeEv(struct object *);
void ompi_mpi_cxx_op_intercept(void *, void *, int *, MPI_Datatype *, MPI_User_function *);
void ompi_op_set_cxx_callback(MPI_Op, MPI_User_function *);

static void check(const struct object *type) {
    CHECK(type->functions == &_ZTVN3MPI8DatatypeE[2] && type->handle == MPI_INT);
}

static void add(const void *in, void *inout, int length, const struct object *type) {
    check(type);
    for (int i = 0; i < length; i++) ((int *)inout)[i] += ((const int *)in)[i];
}

static void keep_first(const void *in, void *inout, int length, const struct object *type) {
    check(type);
    for (int i = 0; i < length; i++) ((int *)inout)[i] = ((const int *)in)[i];
}

/* MPI::Op::Init */
static MPI_Op made(void *function, int commutes) {
    MPI_Op op;
    MPI_Op_create((MPI_User_function *)(void *)ompi_mpi_cxx_op_intercept, commutes, &op);
    ompi_op_set_cxx_callback(op, function);
    return op;
}

int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct object comm = {0, 0}, type;
    check(&_ZN3MPI3INTE);
    /* The program has no table of communicators' functions. */
    CHECK(_ZN3MPI10COMM_WORLDE.handle == MPI_COMM_WORLD && !_ZN3MPI10COMM_WORLDE.functions && _ZN3MPI8IN_PLACEE == MPI_IN_PLACE);
    _ZN3MPI4CommC2Ev(&comm);
    CHECK(comm.handle == MPI_COMM_NULL);

    MPI_Op sum = made(add, 1), first = made(keep_first, 0);
    int values[2] = {1, rank}, ranks = 100 + rank;
    MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_INT, sum, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &ranks, 1, MPI_INT, first, MPI_COMM_WORLD);
    CHECK(values[0] == size && values[1] == size * (size - 1) / 2 && ranks == 100);
    MPI_Op_free(&sum);
    MPI_Op_free(&first);

    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    type.handle = pair;
    _ZN3MPI8Datatype4FreeEv(&type);
    CHECK(type.handle == MPI_DATATYPE_NULL);
    puts("passed");
    return MPI_Finalize();
}
