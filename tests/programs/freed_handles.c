/* Handles used after they were freed, and handles that never were: an error of the right class, not
 * a crash, also when other objects have been made since. */
#include "check.h"

/* A number that no library hands out as a predefined handle, and garbage that looks like a pointer. */
#define FORGED(type) ((type)(uintptr_t)0x1f)
#define GARBAGE(type) ((type)(uintptr_t)0xdeadbeef0)

int main(int argc, char **argv) {
    start(&argc, &argv);
    int value = 0, n;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));

    MPI_Comm comm, dead_comm;
    OK(MPI_Comm_dup(MPI_COMM_SELF, &comm));
    dead_comm = comm;
    OK(MPI_Comm_free(&comm));
    FAILS(MPI_Send(&value, 1, MPI_INT, 0, 0, dead_comm), MPI_ERR_COMM);
    FAILS(MPI_Comm_size(dead_comm, &n), MPI_ERR_COMM);
    FAILS(MPI_Comm_free(&dead_comm), MPI_ERR_COMM);
    FAILS(MPI_Comm_size(FORGED(MPI_Comm), &n), MPI_ERR_COMM);
    FAILS(MPI_Comm_size(GARBAGE(MPI_Comm), &n), MPI_ERR_COMM);

    MPI_Datatype type, dead_type;
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    dead_type = type;
    OK(MPI_Type_free(&type));
    FAILS(MPI_Send(&value, 1, dead_type, MPI_PROC_NULL, 0, MPI_COMM_WORLD), MPI_ERR_TYPE);
    FAILS(MPI_Type_size(dead_type, &n), MPI_ERR_TYPE);
    FAILS(MPI_Type_size(FORGED(MPI_Datatype), &n), MPI_ERR_TYPE);
    FAILS(MPI_Type_size(GARBAGE(MPI_Datatype), &n), MPI_ERR_TYPE);

    MPI_Group group, dead_group;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &group));
    dead_group = group;
    OK(MPI_Group_free(&group));
    FAILS(MPI_Group_size(dead_group, &n), MPI_ERR_GROUP);
    FAILS(MPI_Group_size(GARBAGE(MPI_Group), &n), MPI_ERR_GROUP);

    MPI_Request request, dead_request;
    OK(MPI_Recv_init(&value, 1, MPI_INT, 0, 0, MPI_COMM_SELF, &request));
    dead_request = request;
    OK(MPI_Request_free(&request));
    FAILS(MPI_Wait(&dead_request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    request = GARBAGE(MPI_Request);
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);

    MPI_Op dead_op = GARBAGE(MPI_Op);
    int sum = 0;
    FAILS(MPI_Allreduce(&value, &sum, 1, MPI_INT, dead_op, MPI_COMM_SELF), MPI_ERR_OP);

    MPI_Info info, dead_info;
    OK(MPI_Info_create(&info));
    dead_info = info;
    OK(MPI_Info_free(&info));
    FAILS(MPI_Info_get_nkeys(dead_info, &n), MPI_ERR_INFO);

    /* A handle of one kind where another is wanted. */
    FAILS(MPI_Comm_size((MPI_Comm)(uintptr_t)MPI_INT, &n), MPI_ERR_COMM);
    FAILS(MPI_Type_size((MPI_Datatype)(uintptr_t)MPI_COMM_WORLD, &n), MPI_ERR_TYPE);

    /* What was made meanwhile still works. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return finish();
}
