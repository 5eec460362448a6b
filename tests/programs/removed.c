/* Procedures beside the ABI's, as programs of other libraries call them: attributes, error handlers and datatypes of MPI 1. */
#define FISHPLATE_REMOVED_NAMES
#include "check.h"

static int copies, deletions;

static int copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)keyval, (void)extra;
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int forget(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

static void attributes(void) {
    int keyval, there = 0, value = 7, *found = NULL;
    MPI_Comm twin;
    OK(MPI_Keyval_create(copy, forget, &keyval, NULL));
    OK(MPI_Attr_put(MPI_COMM_WORLD, keyval, &value));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    SAME(copies, 1);
    OK(PMPI_Attr_get(twin, keyval, &found, &there));
    CHECK(there && found == &value, "the copied attribute");
    OK(MPI_Comm_free(&twin));
    OK(MPI_Attr_delete(MPI_COMM_WORLD, keyval));
    SAME(deletions, 2);
    OK(MPI_Keyval_free(&keyval));
    SAME(keyval, MPI_KEYVAL_INVALID);
    OK(MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, &found, &there));
    CHECK(there && *found >= 32767, "MPI_TAG_UB");
}

static int calls;

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    calls++;
}

static void handlers(void) {
    MPI_Errhandler own, before;
    OK(MPI_Errhandler_create(handle, &own));
    OK(MPI_Errhandler_get(MPI_COMM_WORLD, &before));
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, own));
    FAILS(MPI_Send(NULL, 0, MPI_INT, size, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    SAME(calls, 1);
    OK(MPI_Errhandler_set(MPI_COMM_WORLD, before));
    OK(MPI_Errhandler_free(&own));
}

static void types(void) {
    struct pair { char c; double d; } pair;
    int one[] = {1, 1};
    MPI_Aint at[2], from, extent, lower, upper;
    MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE}, type, row;
    OK(MPI_Address(&pair, &from));
    OK(MPI_Address(&pair.c, &at[0]));
    OK(MPI_Address(&pair.d, &at[1]));
    at[0] -= from;
    at[1] -= from;
    OK(MPI_Type_struct(2, one, at, parts, &type));
    OK(MPI_Type_extent(type, &extent));
    OK(MPI_Type_lb(type, &lower));
    OK(MPI_Type_ub(type, &upper));
    SAME(extent, sizeof pair);
    SAME(lower, 0);
    SAME(upper, sizeof pair);
    OK(MPI_Type_free(&type));
    OK(MPI_Type_hvector(2, 1, 24, MPI_DOUBLE, &row));
    OK(MPI_Type_extent(row, &extent));
    SAME(extent, 32);
    OK(MPI_Type_free(&row));
    at[0] = 8;
    at[1] = 24;
    OK(MPI_Type_hindexed(2, one, at, MPI_DOUBLE, &row));
    OK(MPI_Type_lb(row, &lower));
    OK(MPI_Type_ub(row, &upper));
    SAME(lower, 8);
    SAME(upper, 32);
    OK(MPI_Type_free(&row));
}

/* The two of no edition of the standard: an error here, as for the procedures that they extend. */
static void partitioned(void) {
    MPI_Request request;
    int value = 0;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int with = MPI_Psend_init_c(&value, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (with == MPI_SUCCESS) OK(MPI_Request_free(&request));
    int without = MPI_Psend_init(&value, 1, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    if (without == MPI_SUCCESS) OK(MPI_Request_free(&request));
    SAME(with, without);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    attributes();
    handlers();
    types();
    partitioned();
    return finish();
}
