/* Error handlers of users and whose errors they hear, arguments that count at the root only, error
 * classes, codes and strings of users, inheritance by dup. */
#include "check.h"

static int calls, seen_class;
static MPI_Comm seen_comm;

static void handler(MPI_Comm *comm, int *code, ...) {
    calls++;
    seen_comm = *comm;
    MPI_Error_class(*code, &seen_class);
}

static void handlers(void) {
    MPI_Errhandler own, got;
    MPI_Comm comm, twin;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(handler, &own));
    OK(MPI_Comm_set_errhandler(comm, own));
    OK(MPI_Comm_get_errhandler(comm, &got));
    CHECK(got == own, "another handler came back");
    OK(MPI_Errhandler_free(&got));
    OK(MPI_Errhandler_free(&own)); /* lives on while the communicator has it */
    CHECK(own == MPI_ERRHANDLER_NULL, "after Errhandler_free");
    FAILS(MPI_Send(NULL, 0, MPI_INT, size, 0, comm), MPI_ERR_RANK);
    SAME(calls, 1);
    SAME(seen_class, MPI_ERR_RANK);
    CHECK(seen_comm == comm, "the handler saw another communicator");
    OK(MPI_Comm_dup(comm, &twin)); /* inherits it */
    FAILS(MPI_Send(NULL, -1, MPI_INT, 0, 0, twin), MPI_ERR_COUNT);
    SAME(calls, 2);
    CHECK(seen_comm == twin, "the handler saw another communicator");
    OK(MPI_Comm_call_errhandler(twin, MPI_ERR_TAG));
    SAME(calls, 3);
    SAME(seen_class, MPI_ERR_TAG);
    OK(MPI_Comm_set_errhandler(twin, MPI_ERRORS_RETURN));
    FAILS(MPI_Send(NULL, -1, MPI_INT, 0, 0, twin), MPI_ERR_COUNT);
    SAME(calls, 3);
    OK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &got));
    CHECK(got == MPI_ERRORS_ARE_FATAL, "the world begins with another handler");
    OK(MPI_Comm_free(&comm));
    OK(MPI_Comm_free(&twin));
}

static void codes(void) {
    int class = -1, code = -1, back = -1, length = -1, *last = NULL, found = 0;
    char text[MPI_MAX_ERROR_STRING];
    OK(MPI_Add_error_class(&class));
    CHECK(class > MPI_ERR_LASTCODE, "the new class %d is not above MPI_ERR_LASTCODE", class);
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found));
    CHECK(found && *last >= class, "MPI_LASTUSEDCODE");
    OK(MPI_Add_error_code(class, &code));
    OK(MPI_Error_class(code, &back));
    SAME(back, class);
    OK(MPI_Add_error_string(code, "rails are wet"));
    OK(MPI_Error_string(code, text, &length));
    CHECK(strcmp(text, "rails are wet") == 0 && length == 13, "'%s', %d", text, length);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    OK(MPI_Remove_error_string(code));
    OK(MPI_Remove_error_code(code));
    OK(MPI_Remove_error_class(class));
    for (int c = MPI_SUCCESS; c <= MPI_ERR_ABI; c++) {
        OK(MPI_Error_class(c, &back));
        SAME(back, c);
        length = 0;
        OK(MPI_Error_string(c, text, &length));
        CHECK(length > 0 && length == (int)strlen(text), "class %d has no text", c);
    }
    REFUSED(MPI_Error_string(-5, text, &length));
}

/* Errors of an operation go to the communicator on which it began, however it is completed. */
static void completion(void) {
    MPI_Comm comm;
    MPI_Errhandler own;
    MPI_Message message;
    MPI_Request requests[3];
    MPI_Status statuses[3];
    int two[2] = {1, 2}, into[10], none, indices[3], outcount = -5;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_create_errhandler(handler, &own));
    OK(MPI_Comm_set_errhandler(comm, own));
    OK(MPI_Errhandler_free(&own));

    for (int testing = 0; testing < 2; testing++) {
        calls = 0;
        OK(MPI_Irecv(into, 2, MPI_INT, rank, 1, comm, &requests[0]));
        OK(MPI_Irecv(&none, 1, MPI_INT, rank, 2, comm, &requests[1]));
        OK(MPI_Irecv(into + 2, 2, MPI_INT, rank, 3, comm, &requests[2]));
        for (int tag = 1; tag <= 3; tag++) OK(MPI_Send(two, 2, MPI_INT, rank, tag, comm));
        if (testing)
            FAILS(MPI_Testsome(3, requests, &outcount, indices, statuses), MPI_ERR_IN_STATUS);
        else
            FAILS(MPI_Waitsome(3, requests, &outcount, indices, statuses), MPI_ERR_IN_STATUS);
        SAME(outcount, 3);
        SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
        SAME(statuses[1].MPI_ERROR, MPI_ERR_TRUNCATE);
        SAME(statuses[2].MPI_ERROR, MPI_SUCCESS);
        SAME(calls, 1);
        CHECK(seen_comm == comm, "the handler saw another communicator");
    }

    calls = 0;
    OK(MPI_Isend(two, 2, MPI_INT, rank, 4, comm, &requests[0]));
    OK(MPI_Mprobe(rank, 4, comm, &message, MPI_STATUS_IGNORE));
    FAILS(MPI_Mrecv(&none, 1, MPI_INT, &message, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    OK(MPI_Isendrecv(two, 2, MPI_INT, rank, 5, &none, 1, MPI_INT, rank, 5, comm, &requests[0]));
    FAILS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    SAME(calls, 2);
    CHECK(seen_comm == comm, "the handler saw another communicator");

    if (size > 1) { /* the counts differ: rank 1 finds that out */
        calls = 0;
        OK(MPI_Ibcast(into, rank == 0 ? 1 : 10, MPI_INT, 0, comm, &requests[0]));
        if (rank == 1)
            FAILS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
        else
            OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        SAME(calls, rank == 1);
    }
    OK(MPI_Comm_free(&comm));
}

/* Arguments that are significant at the root only may be anything elsewhere. */
static void only_at_the_root(void) {
    int own = rank, *all = allocate((size_t)size * sizeof(int));
    MPI_Request request;
    for (int root = 0; root < size; root++) {
        int at_root = rank == root;
        OK(MPI_Gather(&own, 1, MPI_INT, at_root ? all : NULL, at_root ? 1 : -1,
                      at_root ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD));
        OK(MPI_Iscatter(at_root ? all : NULL, at_root ? 1 : -1, at_root ? MPI_INT : MPI_DATATYPE_NULL,
                        &own, 1, MPI_INT, root, MPI_COMM_WORLD, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        SAME(own, rank);
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    FAILS(MPI_Gather(&own, 1, MPI_INT, all, -1, MPI_INT, rank, MPI_COMM_WORLD), MPI_ERR_COUNT);
    FAILS(MPI_Scatter(all, -1, MPI_INT, &own, 1, MPI_INT, rank, MPI_COMM_WORLD), MPI_ERR_COUNT);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    free(all);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    handlers();
    completion();
    only_at_the_root();
    codes();
    return finish();
}
