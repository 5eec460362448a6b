/* Asks for a session and makes a window, and looks at no error code but those of the window. Rank 0 also
 * asks for an intercommunicator and the tools interface. With the argument `fatal`, the window's errors are fatal. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, length, class;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Session session;
    MPI_Comm comm;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++) {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Comm_create_from_group(MPI_GROUP_EMPTY, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    }
    if (rank == 0)
        MPI_Intercomm_create_from_groups(MPI_GROUP_EMPTY, 0, MPI_GROUP_EMPTY, 0, "none", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    if (rank == 0) MPI_T_cvar_get_num(&length);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc < 2 || strcmp(argv[1], "fatal") != 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    int code = MPI_Win_create(&rank, sizeof rank, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &class);
    if (rank == 0) printf("%d %s\n", class == MPI_ERR_UNSUPPORTED_OPERATION, text);
    MPI_Finalize();
    return 0;
}
