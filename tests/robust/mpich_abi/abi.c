/* A program of an old ABI, as its mpi.h says: handles, statuses, constants, callbacks, limits. It has two ranks or more, and each prints `passed`.
 * Built with the standard's mpi.h, it is the program of the standard ABI that does as much. Each argument names a part that the
 * library behind the standard ABI does in its own way, and that is left out. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)

#ifdef MPI_ABI_VERSION
#define BYTES_ARE(status, bytes) 1
#define IS_CANCELLED(status) 1
#elif defined OPEN_MPI
#define BYTES_ARE(status, bytes) ((status)._ucount == (bytes))
#define IS_CANCELLED(status) (status)._cancelled
#else
#define BYTES_ARE(status, bytes) ((status).count_lo == (bytes))
#define IS_CANCELLED(status) ((status).count_hi_and_cancelled & 1)
#endif

static char **left_out;
static int rank, size;
static MPI_Comm expected_comm;
static int expected_keyval, copies, deletes, handled;
static int extra;
static MPI_Datatype expected_type;

static int is_left_out(const char *part) {
    for (char **name = left_out; *name; name++) if (!strcmp(*name, part)) return 1;
    return 0;
}

static int copy(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag) {
    CHECK(comm == expected_comm && keyval == expected_keyval && state == &extra);
    *(void **)out = (char *)in + 1;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int del(MPI_Comm comm, int keyval, void *value, void *state) {
    CHECK(comm == expected_comm && keyval == expected_keyval && state == &extra && value);
    deletes++;
    return MPI_SUCCESS;
}

static void handler(MPI_Comm *comm, int *code, ...) {
    int class;
    CHECK(*comm == expected_comm);
    MPI_Error_class(*code, &class);
    CHECK(class == MPI_ERR_RANK);
    handled++;
}

static void add(void *in, void *inout, int *length, MPI_Datatype *type) {
    CHECK(*type == expected_type);
    int words, bytes;
    MPI_Type_size(*type, &bytes);
    words = *length * bytes / (int)sizeof(int);
    for (int i = 0; i < words; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void messages(MPI_Comm comm) {
    int next = (rank + 1) % size, last = (rank + size - 1) % size, in = -1, count, flag;
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, next, 7, comm, &requests[1]);
    CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    MPI_Get_count(&statuses[0], MPI_CHAR, &count);
    CHECK(in == last && statuses[0].MPI_SOURCE == last && statuses[0].MPI_TAG == 7 && count == 4 && BYTES_ARE(statuses[0], 4));
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);

    MPI_Recv(&in, 1, MPI_INT, MPI_PROC_NULL, MPI_ANY_TAG, comm, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && BYTES_ARE(status, 0));
    MPI_Wait(&requests[0], &status);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);

    MPI_Irecv(&in, 1, MPI_INT, rank, 9, comm, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    CHECK(flag && IS_CANCELLED(status));

    MPI_Recv_init(&in, 1, MPI_INT, MPI_PROC_NULL, 0, comm, &requests[0]);
    MPI_Request kept = requests[0];
    MPI_Start(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    CHECK(requests[0] == kept && kept != MPI_REQUEST_NULL);
    MPI_Request_free(&requests[0]);
    CHECK(requests[0] == MPI_REQUEST_NULL);
}

static void returned_errors(MPI_Comm comm) {
    MPI_Request request;
    int class, code, word = 0, long_message[2] = {0, 0};
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Send(&word, 1, MPI_INT, 17, 0, comm);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_RANK && handled == 1);
    MPI_Isend(long_message, 2, MPI_INT, 0, 0, comm, &request);
    code = MPI_Recv(&word, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE);
}

static void errors(void) {
    MPI_Comm comm;
    MPI_Errhandler own, got;
    int class, word = 0, code;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == own);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&own);
    expected_comm = comm;
    code = MPI_Send(&word, 1, MPI_INT, 17, 0, comm);
    CHECK(handled == 1);
    MPI_Error_class(code, &class);
    if (!is_left_out("code-of-a-handled-error")) CHECK(class == MPI_ERR_RANK);

    if (!is_left_out("errors-return")) returned_errors(comm);
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);

    int own_class, own_code, *last, flag;
    MPI_Add_error_class(&own_class);
    MPI_Add_error_code(own_class, &own_code);
    MPI_Error_class(own_code, &class);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &flag);
    CHECK(own_class > MPI_ERR_LASTCODE && class == own_class && flag);
    if (!is_left_out("last-used-code")) CHECK(*last >= own_code);
}

static void callbacks(void) {
    MPI_Comm comm, other;
    int keyval, *limit, flag, sum[2] = {1, rank};
    char *value;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copy, del, &keyval, &extra);
    expected_comm = comm, expected_keyval = keyval;
    MPI_Comm_set_attr(comm, keyval, (void *)8);
    MPI_Comm_dup(comm, &other);
    MPI_Comm_get_attr(other, keyval, &value, &flag);
    CHECK(flag && value == (char *)9 && copies == 1);
    expected_comm = other;
    MPI_Comm_free(&other);
    expected_comm = comm;
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&keyval);
    CHECK(deletes == 2);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_attr(comm, keyval, &extra);
    MPI_Comm_dup(comm, &other);
    MPI_Comm_get_attr(other, keyval, &value, &flag);
    CHECK(flag && value == (char *)&extra);
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
    MPI_Comm_free_keyval(&keyval);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &limit, &flag);
    CHECK(flag && *limit >= 32767);

    MPI_Op op;
    MPI_Datatype pair;
    MPI_Op_create(add, 1, &op);
    expected_type = MPI_INT;
    MPI_Allreduce(MPI_IN_PLACE, sum, 2, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(sum[0] == size && sum[1] == size * (size - 1) / 2);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    expected_type = pair;
    MPI_Allreduce(MPI_IN_PLACE, sum, 1, pair, op, MPI_COMM_WORLD);
    CHECK(sum[0] == size * size);
    MPI_Type_free(&pair);
    CHECK(pair == MPI_DATATYPE_NULL);
    MPI_Op_free(&op);

    struct { double value; int at; } most = {rank, rank};
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE_INT, MPI_MAXLOC, MPI_COMM_WORLD);
    CHECK(most.at == size - 1);
}

static void communicators(void) {
    MPI_Comm comm;
    MPI_Group group;
    int result, ranks[2] = {0, MPI_PROC_NULL}, translated[2], dims[1] = {size}, periods[1] = {0}, from, to, in, out, weighted;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_compare(comm, MPI_COMM_WORLD, &result);
    CHECK(result == MPI_CONGRUENT);
    MPI_Comm_group(comm, &group);
    MPI_Group_translate_ranks(group, 2, ranks, group, translated);
    CHECK(translated[0] == 0 && translated[1] == MPI_PROC_NULL);
    MPI_Group_free(&group);
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm);
    CHECK(comm != MPI_COMM_NULL);
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm);
    MPI_Cart_shift(comm, 0, 1, &from, &to);
    MPI_Topo_test(comm, &result);
    CHECK(result == MPI_CART && from == (rank ? rank - 1 : MPI_PROC_NULL) && to == (rank + 1 < size ? rank + 1 : MPI_PROC_NULL));
    MPI_Comm_free(&comm);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &rank, MPI_UNWEIGHTED, 1, &rank, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    MPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    CHECK(in == 1 && out == 1 && !weighted);
    MPI_Comm_free(&comm);
}

static void datatypes(void) {
    int sizes[2] = {4, 4}, parts[2] = {2, 2}, starts[2] = {1, 1}, integers, addresses, types, combiner, contents[8];
    MPI_Aint none[1];
    MPI_Datatype type, made[1];
    MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_SUBARRAY && integers == 8 && addresses == 0 && types == 1);
    MPI_Type_get_contents(type, integers, addresses, types, contents, none, made);
    CHECK(contents[0] == 2 && contents[7] == MPI_ORDER_C && made[0] == MPI_INT);
    MPI_Type_free(&type);

    int *counts = malloc(size * sizeof *counts), *places = malloc(size * sizeof *places);
    int *send = malloc(size * sizeof *send), *receive = malloc(size * sizeof *receive);
    MPI_Datatype *ints = malloc(size * sizeof *ints);
    for (int i = 0; i < size; i++) counts[i] = 1, places[i] = 4 * i, send[i] = 100 * rank + i, ints[i] = MPI_INT;
    MPI_Request request;
    MPI_Ialltoallw(send, counts, places, ints, receive, counts, places, ints, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++) CHECK(receive[i] == 100 * i + rank);
    free(counts), free(places), free(send), free(receive), free(ints);
}

#ifndef MPI_ABI_VERSION
/* Members that mark bounds: the standard has them no more. */
static void marks(void) {
    MPI_Datatype type, types[] = {MPI_LB, MPI_INT, MPI_UB, MPI_CHAR}, upper[] = {MPI_INT, MPI_UB};
    int lengths[] = {1, 1, 1, 1}, bytes;
    MPI_Aint displacements[] = {-8, 0, 24, 12}, lower, extent;
    CHECK(MPI_Type_create_struct(4, lengths, displacements, types, &type) == MPI_SUCCESS);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_size(type, &bytes);
    CHECK(lower == -8 && extent == 32 && bytes == 5);
    MPI_Type_free(&type);
    displacements[0] = 4, displacements[1] = 40;
    CHECK(MPI_Type_struct(2, lengths, displacements, upper, &type) == MPI_SUCCESS);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 4 && extent == 36);
    MPI_Type_free(&type);
}
#endif

static void distributed_arrays(void) {
    int gsizes[2] = {10, 11}, deals[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC}, lengths[2] = {MPI_DISTRIBUTE_DFLT_DARG, 5},
        grid[2] = {2, 3}, integers, addresses, types, combiner, contents[12];
    int wanted[12] = {6, 4, 2, 10, 11, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 5, 2, 3, MPI_ORDER_FORTRAN};
    MPI_Aint none[1];
    MPI_Datatype type, made[1];
    MPI_Type_create_darray(6, 4, 2, gsizes, deals, lengths, grid, MPI_ORDER_FORTRAN, MPI_INT, &type);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_DARRAY && integers == 12 && addresses == 0 && types == 1);
    MPI_Type_get_contents(type, integers, addresses, types, contents, none, made);
    CHECK(made[0] == MPI_INT);
    for (int i = 0; i < 12; i++) CHECK(contents[i] == wanted[i]);
    MPI_Type_size(type, &types);
    CHECK(types == 5 * 5 * 4);
    MPI_Type_free(&type);

    MPI_Type_create_f90_real(7, MPI_UNDEFINED, &type);
    MPI_Type_create_f90_real(7, MPI_UNDEFINED, &made[0]);
    CHECK(type == made[0]);
    MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    CHECK(combiner == MPI_COMBINER_F90_REAL && integers == 2 && addresses == 0 && types == 0);
    MPI_Type_get_contents(type, integers, addresses, types, contents, none, made);
    CHECK(contents[0] == 7 && contents[1] == MPI_UNDEFINED);
    MPI_Type_size(type, &integers);
    CHECK(integers == 8);
    double sum = rank;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
}

static int queries, frees, cancels, code_of_free;

static int query(void *state, MPI_Status *status) {
    CHECK(state == &extra);
    status->MPI_SOURCE = MPI_PROC_NULL;
    status->MPI_TAG = 77;
    MPI_Status_set_elements(status, MPI_INT, 5);
    MPI_Status_set_cancelled(status, cancels);
    queries++;
    return MPI_SUCCESS;
}

static int done_with(void *state) {
    CHECK(state == &extra);
    frees++;
    return code_of_free;
}

static int cancelled(void *state, int complete) {
    CHECK(state == &extra && !complete);
    cancels++;
    return MPI_SUCCESS;
}

static void generalised_requests(void) {
    MPI_Request request;
    MPI_Status status;
    int flag, code, class;
    MPI_Grequest_start(query, done_with, cancelled, &extra, &request);
    MPI_Test(&request, &flag, &status);
    CHECK(!flag && request != MPI_REQUEST_NULL);
    MPI_Grequest_complete(request);
    MPI_Request_get_status(request, &flag, &status);
    CHECK(flag && queries == 1 && frees == 0 && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == 77 && BYTES_ARE(status, 20));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL && queries == 2 && frees == 1);

    MPI_Grequest_start(query, done_with, cancelled, &extra, &request);
    MPI_Cancel(&request);
    MPI_Grequest_complete(request);
    CHECK(MPI_Waitall(1, &request, &status) == MPI_SUCCESS);
    MPI_Test_cancelled(&status, &flag);
    CHECK(cancels == 1 && flag && IS_CANCELLED(status) && status.MPI_SOURCE == MPI_PROC_NULL && frees == 2);

    if (is_left_out("errors-return")) return;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    code_of_free = MPI_ERR_IO;
    MPI_Grequest_start(query, done_with, cancelled, &extra, &request);
    MPI_Grequest_complete(request);
    code = MPI_Wait(&request, &status);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_IO && frees == 3 && status.MPI_TAG == 77);
}

/* Texts are as long as the ABI allows, and not longer. */
static void texts(void) {
    enum { LETTERS = 100, MOST = MPI_MAX_OBJECT_NAME - 1 };
    char given[LETTERS + 1], got[MPI_MAX_OBJECT_NAME + 1], error[MPI_MAX_ERROR_STRING + 1], version[MPI_MAX_LIBRARY_VERSION_STRING + 1];
    MPI_Comm comm;
    int length;
    memset(given, 'x', LETTERS), given[LETTERS] = 0;
    got[MPI_MAX_OBJECT_NAME] = error[MPI_MAX_ERROR_STRING] = version[MPI_MAX_LIBRARY_VERSION_STRING] = '#';
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_name(comm, given);
    MPI_Comm_get_name(comm, got, &length);
    CHECK(length == (LETTERS < MOST ? LETTERS : MOST) && (int)strlen(got) == length && got[MPI_MAX_OBJECT_NAME] == '#');
    MPI_Comm_free(&comm);
    MPI_Error_string(MPI_ERR_TRUNCATE, error, &length);
    CHECK(length > 0 && (int)strlen(error) == length && error[MPI_MAX_ERROR_STRING] == '#');
    MPI_Get_library_version(version, &length);
    CHECK(length > 0 && (int)strlen(version) == length && version[MPI_MAX_LIBRARY_VERSION_STRING] == '#');
}

/* A buffer for three messages by the ABI's overhead takes three. */
static void buffers(void) {
    enum { MESSAGES = 3, BYTES = 40 };
    int total = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD), back;
    char *buffer = malloc(total), *detached, message[BYTES] = "message";
    MPI_Buffer_attach(buffer, total);
    for (int i = 0; i < MESSAGES; i++) CHECK(MPI_Bsend(message, BYTES, MPI_CHAR, rank, i, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < MESSAGES; i++) MPI_Recv(message, BYTES, MPI_CHAR, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&detached, &back);
    CHECK(detached == buffer && back == total);
    free(buffer);
}

int main(int argc, char **argv) {
    int provided, length;
    left_out = argv + 1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(provided == MPI_THREAD_MULTIPLE && size > 1);
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Get_processor_name(name, &length);
    CHECK((int)strlen(name) == length && length < MPI_MAX_PROCESSOR_NAME);
    messages(MPI_COMM_WORLD);
    errors();
    callbacks();
    communicators();
    datatypes();
    buffers();
    texts();
    distributed_arrays();
#ifndef MPI_ABI_VERSION
    marks();
#endif
    generalised_requests();
    PMPI_Barrier(MPI_COMM_WORLD);
    puts("passed");
    return MPI_Finalize();
}
