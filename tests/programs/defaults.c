/* Errors whose handler no program has set: files return theirs, and so does an object that is made with MPI_ERRORS_RETURN. */
#include "check.h"

/* A session may be supported or not; the call returns. */
static void session(void) {
    MPI_Session session = MPI_SESSION_NULL;
    if (MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS) MPI_Session_finalize(&session);
}

int main(int argc, char **argv) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_File file = MPI_FILE_NULL;
    session();
    start(&argc, &argv);
    CHECK(MPI_File_open(MPI_COMM_WORLD, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS, "no such file");
    CHECK(MPI_File_delete("/nowhere/at/all", MPI_INFO_NULL) != MPI_SUCCESS, "no such file");
    CHECK(MPI_Comm_create_from_group(MPI_GROUP_NULL, "x", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) != MPI_SUCCESS, "no group");
    session();
    return finish();
}
