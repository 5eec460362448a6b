/* Wrong arguments under MPI_ERRORS_RETURN: each gives its class, and the library works on after. */
#include "check.h"

static int buffer[8];

static void point_to_point(void) {
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Status status;
    MPI_Message message;
    int flag, *tag_ub = NULL, found;
    OK(MPI_Comm_get_attr(w, MPI_TAG_UB, &tag_ub, &found));
    FAILS(MPI_Send(buffer, 1, MPI_INT, size, 0, w), MPI_ERR_RANK);
    FAILS(MPI_Send(buffer, 1, MPI_INT, -7, 0, w), MPI_ERR_RANK);
    FAILS(MPI_Send(buffer, 1, MPI_INT, MPI_ANY_SOURCE, 0, w), MPI_ERR_RANK);
    FAILS(MPI_Recv(buffer, 1, MPI_INT, size, 0, w, &status), MPI_ERR_RANK);
    FAILS(MPI_Send(buffer, 1, MPI_INT, 0, -1, w), MPI_ERR_TAG);
    FAILS(MPI_Send(buffer, 1, MPI_INT, 0, MPI_ANY_TAG, w), MPI_ERR_TAG);
    FAILS(MPI_Recv(buffer, 1, MPI_INT, 0, -5, w, &status), MPI_ERR_TAG);
    if (found && *tag_ub < 0x7fffffff)
        FAILS(MPI_Send(buffer, 1, MPI_INT, 0, *tag_ub + 1, w), MPI_ERR_TAG);
    FAILS(MPI_Send(buffer, -1, MPI_INT, 0, 0, w), MPI_ERR_COUNT);
    FAILS(MPI_Recv(buffer, -1, MPI_INT, 0, 0, w, &status), MPI_ERR_COUNT);
    FAILS(MPI_Send_c(buffer, -1, MPI_INT, 0, 0, w), MPI_ERR_COUNT);
    FAILS(MPI_Send(buffer, 1, MPI_DATATYPE_NULL, 0, 0, w), MPI_ERR_TYPE);
    FAILS(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, 0, 0, w), MPI_ERR_TYPE);
    FAILS(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_ANY_SOURCE, 0, w, &status), MPI_ERR_TYPE);
    FAILS(MPI_Recv(buffer, 1, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, w, &status), MPI_ERR_TYPE);
    FAILS(MPI_Irecv(NULL, 0, (MPI_Datatype)12345, MPI_PROC_NULL, 0, w, &request), MPI_ERR_TYPE);
    FAILS(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_NULL, &status), MPI_ERR_COMM);
    FAILS(MPI_Recv(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, -7, w, &status), MPI_ERR_TAG);
    FAILS(MPI_Send(NULL, 1, MPI_INT, 0, 0, w), MPI_ERR_BUFFER);
    FAILS(MPI_Send(buffer, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Isend(buffer, 1, MPI_INT, size, 0, w, &request), MPI_ERR_RANK);
    FAILS(MPI_Irecv(buffer, -2, MPI_INT, 0, 0, w, &request), MPI_ERR_COUNT);
    FAILS(MPI_Irecv(buffer, 2, MPI_INT, 0, 0, w, NULL), MPI_ERR_ARG);
    FAILS(MPI_Send_init(buffer, 1, MPI_INT, size, 0, w, &request), MPI_ERR_RANK);
    FAILS(MPI_Probe(size, 0, w, &status), MPI_ERR_RANK);
    FAILS(MPI_Iprobe(0, -9, w, &flag, &status), MPI_ERR_TAG);
    FAILS(MPI_Mprobe(0, 0, MPI_COMM_NULL, &message, &status), MPI_ERR_COMM);
    FAILS(MPI_Sendrecv(buffer, 1, MPI_INT, size, 0, buffer + 4, 1, MPI_INT, 0, 0, w, &status), MPI_ERR_RANK);
    FAILS(MPI_Sendrecv_replace(buffer, 1, MPI_INT, 0, -4, 0, 0, w, &status), MPI_ERR_TAG);
    FAILS(MPI_Buffer_attach(NULL, 500), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_attach_buffer(w, NULL, 500), MPI_ERR_BUFFER);
    message = MPI_MESSAGE_NULL;
    FAILS(MPI_Mrecv(buffer, 1, MPI_INT, &message, &status), MPI_ERR_REQUEST);
    request = MPI_REQUEST_NULL;
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Cancel(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Request_free(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Waitall(-1, &request, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    OK(MPI_Send_init(buffer, 1, MPI_INT, MPI_PROC_NULL, 0, w, &request));
    OK(MPI_Request_free(&request));
}

static void datatypes(void) {
    MPI_Datatype type, uncommitted;
    int two[] = {1, 2}, negative[] = {1, -2}, bytes;
    MPI_Aint far[] = {0, 8};
    OK(MPI_Type_contiguous(2, MPI_INT, &uncommitted));
    FAILS(MPI_Send(buffer, 1, uncommitted, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    OK(MPI_Type_free(&uncommitted));
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    FAILS(MPI_Type_vector(-1, 1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_vector(1, -1, 1, MPI_INT, &type));
    REFUSED(MPI_Type_indexed(2, negative, two, MPI_INT, &type));
    FAILS(MPI_Type_create_hindexed(-1, two, far, MPI_INT, &type), MPI_ERR_COUNT);
    REFUSED(MPI_Type_create_subarray(1, &(int){4}, &(int){3}, &(int){2}, MPI_ORDER_C, MPI_INT, &type));
    REFUSED(MPI_Type_create_subarray(1, &(int){4}, &(int){3}, &(int){0}, 12345, MPI_INT, &type));
    FAILS(MPI_Type_size(MPI_DATATYPE_NULL, &bytes), MPI_ERR_TYPE);
    type = MPI_DATATYPE_NULL;
    FAILS(MPI_Type_commit(&type), MPI_ERR_TYPE);
}

static void communicators(void) {
    MPI_Comm comm;
    MPI_Group group;
    int n;
    FAILS(MPI_Comm_rank(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    FAILS(MPI_Comm_size(MPI_COMM_NULL, &n), MPI_ERR_COMM);
    FAILS(MPI_Comm_dup(MPI_COMM_NULL, &comm), MPI_ERR_COMM);
    FAILS(MPI_Comm_group(MPI_COMM_NULL, &group), MPI_ERR_COMM);
    FAILS(MPI_Comm_split(MPI_COMM_WORLD, -3, 0, &comm), MPI_ERR_ARG);
    FAILS(MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_NULL, &comm), MPI_ERR_GROUP);
    FAILS(MPI_Group_size(MPI_GROUP_NULL, &n), MPI_ERR_GROUP);
    comm = MPI_COMM_WORLD;
    FAILS(MPI_Comm_free(&comm), MPI_ERR_COMM);
    FAILS(MPI_Cart_shift(MPI_COMM_WORLD, 0, 1, &n, &n), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
}

static void collectives(void) {
    int out[64] = {0};
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Request request;
    MPI_Op op;
    FAILS(MPI_Bcast(buffer, 1, MPI_INT, size, w), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(buffer, 1, MPI_INT, -1, w), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(buffer, -1, MPI_INT, 0, w), MPI_ERR_COUNT);
    FAILS(MPI_Bcast(buffer, 1, MPI_DATATYPE_NULL, 0, w), MPI_ERR_TYPE);
    FAILS(MPI_Bcast(buffer, 1, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Ibcast(buffer, 1, MPI_INT, size, w, &request), MPI_ERR_ROOT);
    FAILS(MPI_Barrier(MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Allreduce(buffer, out, 1, MPI_INT, MPI_OP_NULL, w), MPI_ERR_OP);
    FAILS(MPI_Allreduce(buffer, out, -1, MPI_INT, MPI_SUM, w), MPI_ERR_COUNT);
    FAILS(MPI_Allreduce(buffer, buffer, 1, MPI_INT, MPI_SUM, w), MPI_ERR_BUFFER); /* aliased */
    FAILS(MPI_Reduce(buffer, out, 1, MPI_INT, MPI_SUM, size, w), MPI_ERR_ROOT);
    FAILS(MPI_Gather(buffer, 1, MPI_INT, out, 1, MPI_INT, size, w), MPI_ERR_ROOT);
    FAILS(MPI_Alltoall(buffer, -1, MPI_INT, out, 1, MPI_INT, w), MPI_ERR_COUNT);
    op = MPI_SUM;
    FAILS(MPI_Op_free(&op), MPI_ERR_OP);
}

/* After all that, a message still arrives. */
static void still_alive(void) {
    int value = rank, got = -1, right = (rank + 1) % size, left = (rank + size - 1) % size;
    OK(MPI_Sendrecv(&value, 1, MPI_INT, right, 0, &got, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    SAME(got, left);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    point_to_point();
    datatypes();
    communicators();
    collectives();
    still_alive();
    return finish();
}
