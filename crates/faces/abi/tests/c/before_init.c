/* Ends in the initial error handler. */
#include "check.h"

int main(void)
{
    MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
    return 0;
}
