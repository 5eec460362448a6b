/* Ends in the initial error handler. */
#include "check.h"

int main(void)
{
    int keys;
    MPI_Info_get_nkeys(MPI_INFO_NULL, &keys);
    return 0;
}
