/* Error handlers of users, error classes, codes and strings of users, inheritance by dup. */
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

int main(int argc, char **argv) {
    start(&argc, &argv);
    handlers();
    codes();
    return finish();
}
