/* One error of messages or collective calls, named by the first argument, or its right neighbour. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static int is(const char *what, const char *name) { return !strcmp(what, name); }

static void sum(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)type;
    for (int at = 0; at < *count; at++) ((int *)inout)[at] += ((int *)in)[at];
}

/* The program's function adds, and a call that fails takes no message back. */
static void functions(void) {
    int in = rank, out = -1;
    MPI_Op op;
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Op_create(sum, 1, &op);
    MPI_Allreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
    if (out != size * (size - 1) / 2) exit(3);
    MPI_Op_free(&op);
    if (rank == 0) MPI_Send(&in, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL) == MPI_SUCCESS) exit(4);
    if (rank == 1) MPI_Recv(&in, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Issend(&in, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_free(&request);
}

static void collective(const char *what) {
    int in[8] = {0}, out[64] = {0}, counts[8], displs[8], one = rank == 1;
    float reals[8] = {0};
    for (int at = 0; at < size; at++) counts[at] = 1, displs[at] = at;
    if (is(what, "roots")) MPI_Bcast(in, 1, MPI_INT, one, MPI_COMM_WORLD);
    if (is(what, "operations")) MPI_Allreduce(in, out, 1, MPI_INT, one ? MPI_MAX : MPI_SUM, MPI_COMM_WORLD);
    if (is(what, "counts")) MPI_Allgather(in, one ? 2 : 1, MPI_INT, out, one ? 2 : 1, MPI_INT, MPI_COMM_WORLD);
    if (is(what, "signatures")) MPI_Allreduce(one ? (void *)reals : in, out, 1, one ? MPI_FLOAT : MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (is(what, "blocks")) MPI_Gatherv(in, one ? 2 : 1, MPI_INT, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
    if (is(what, "forms")) {
        MPI_Request request;
        if (one) MPI_Ibarrier(MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
        else MPI_Barrier(MPI_COMM_WORLD);
    }
    if (is(what, "calls")) {
        if (one) MPI_Barrier(MPI_COMM_WORLD);
        else MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    if (is(what, "absent") && !one) MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (is(what, "right")) {
        MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Gatherv(in, 1, MPI_INT, out, counts, displs, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
    }
}

static void message(const char *what) {
    int data[8] = {0};
    MPI_Request request;
    if (is(what, "types")) {
        if (rank == 0) MPI_Send(data, 2, MPI_FLOAT, 1, 7, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(data, 2, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (is(what, "truncated")) {
        if (rank == 0) MPI_Send(data, 4, MPI_INT, 1, 7, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(data, 2, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (is(what, "unreceived") && rank == 0) MPI_Send(data, 4, MPI_INT, 1, 7, MPI_COMM_WORLD);
    if (is(what, "unfinished")) {
        if (rank == 0) MPI_Send(data, 4, MPI_INT, 1, 7, MPI_COMM_WORLD);
        if (rank == 1) MPI_Irecv(data, 4, MPI_INT, 0, 7, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (is(what, "race") && rank) MPI_Send(data, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    if (is(what, "race") && !rank)
        for (int at = 1; at < size; at++) MPI_Recv(data, 1, MPI_INT, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (is(what, "leaks")) {
        MPI_Comm comm;
        MPI_Datatype pair;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Type_contiguous(2, MPI_INT, &pair);
        MPI_Type_commit(&pair);
        if (rank) MPI_Comm_free(&comm);
    }
    if (is(what, "right")) {
        MPI_Datatype pair;
        MPI_Type_contiguous(2, MPI_INT, &pair);
        MPI_Type_commit(&pair);
        if (rank == 0) MPI_Send(data, 2, MPI_INT, 1, 7, MPI_COMM_WORLD);
        if (rank == 1) MPI_Irecv(data, 3, pair, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &request), MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Type_free(&pair);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (is(argv[1], "functions")) functions();
    collective(argv[1]);
    message(argv[1]);
    MPI_Finalize();
    return 0;
}
