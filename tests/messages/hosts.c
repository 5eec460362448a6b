/* Prints rank and processor name, and checks that the names of two ranks are equal exactly where
 * both share memory. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { NAME = MPI_MAX_PROCESSOR_NAME };

int main(int argc, char **argv) {
    char own[NAME] = "", in_info[NAME] = "", all[64][NAME];
    int rank, size, length, flag, wrong = 0, alike = 0, beside, room = NAME;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(own, &length);
    wrong |= length != (int)strlen(own);
    MPI_Info_get_string(MPI_INFO_ENV, "host", &room, in_info, &flag);
    wrong |= !flag || strcmp(own, in_info) != 0;
    MPI_Allgather(own, NAME, MPI_CHAR, all, NAME, MPI_CHAR, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++) alike += strcmp(all[i], own) == 0;
    MPI_Comm host;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_size(host, &beside);
    wrong |= alike != beside;
    for (int i = 0; i < size && rank == 0; i++) printf("%d %s\n", i, all[i]);
    MPI_Finalize();
    return wrong;
}
