/* A program with names of its own where the library has none: each under a guard, as portable programs write them. */
#include "check.h"

#ifndef MPI_Fint
#define MPI_Fint int
#endif
#ifndef MPI_Comm_f2c
#define MPI_Comm_f2c(comm) MPI_Comm_fromint(comm)
#endif
#ifndef MPI_Comm_c2f
static MPI_Fint MPI_Comm_c2f(MPI_Comm comm)
{
    return MPI_Comm_toint(comm);
}
#endif

int main(void)
{
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
    CHECK(MPI_Comm_f2c(world) == MPI_COMM_WORLD);
    return 0;
}
