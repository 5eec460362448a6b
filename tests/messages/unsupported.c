/* Writes a file and connects, and looks at no error code but that of the connection. Rank 0 also
 * deletes the file and asks the tools interface. With the argument `fatal`, that error is fatal. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank, length, class;
    char text[MPI_MAX_ERROR_STRING];
    MPI_File file;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 2; i++) {
        MPI_File_open(MPI_COMM_WORLD, "out.dat", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
        MPI_File_write(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE);
    }
    if (rank == 0) MPI_File_delete("out.dat", MPI_INFO_NULL);
    if (rank == 0) MPI_T_cvar_get_num(&length);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc < 2 || strcmp(argv[1], "fatal") != 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    int code = MPI_Comm_connect("", MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other);
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &class);
    if (rank == 0) printf("%d %s\n", class == MPI_ERR_UNSUPPORTED_OPERATION, text);
    MPI_Finalize();
    return 0;
}
