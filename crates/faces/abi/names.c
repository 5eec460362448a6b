/* The functions and variables of mpi.h that stand for names outside the ABI, with symbols: `mpicc` adds the archive made of this
   file, so that a program that declares such a name itself, as configure's probes do, links. All are weak, so a program's own
   definition of one of them comes first. */
#define FISHPLATE_NAME __attribute__((weak))
#include <mpi.h>

#undef MPI_F_STATUS_IGNORE
#undef MPI_F_STATUSES_IGNORE
#undef MPI_F08_STATUS_IGNORE
#undef MPI_F08_STATUSES_IGNORE
FISHPLATE_NAME MPI_Fint *MPI_F_STATUS_IGNORE = 0;
FISHPLATE_NAME MPI_Fint *MPI_F_STATUSES_IGNORE = 0;
FISHPLATE_NAME MPI_F08_status *MPI_F08_STATUS_IGNORE = 0;
FISHPLATE_NAME MPI_F08_status *MPI_F08_STATUSES_IGNORE = 0;
