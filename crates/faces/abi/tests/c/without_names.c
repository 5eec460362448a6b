/* Definitions without a guard, which FISHPLATE_NO_FORTRAN_NAMES makes room for. */
#define FISHPLATE_NO_FORTRAN_NAMES
#include "check.h"

#ifdef MPI_Fint
#error "a name is left"
#endif

typedef long MPI_Fint;

MPI_Comm MPI_Comm_f2c(MPI_Fint comm);

MPI_Comm MPI_Comm_f2c(MPI_Fint comm)
{
    return MPI_Comm_fromint((int)comm);
}

int main(void)
{
    CHECK(MPI_Comm_f2c(257) == MPI_COMM_WORLD);
    return 0;
}
