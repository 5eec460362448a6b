
/* Names that the ABI leaves out: handles and statuses for Fortran. Each one is left to a program that has defined it as a
   macro before; FISHPLATE_NO_FORTRAN_NAMES leaves out all of them. */
#ifndef FISHPLATE_NO_FORTRAN_NAMES

#ifndef FISHPLATE_NAME
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define FISHPLATE_NAME static inline
#else
#define FISHPLATE_NAME static __inline__
#endif
#endif

#ifndef MPI_Fint
typedef int MPI_Fint;
#define MPI_Fint MPI_Fint
#endif
#ifndef MPI_F08_status
typedef MPI_Status MPI_F08_status;
#define MPI_F08_status MPI_F08_status
#endif
#ifndef MPI_F_STATUS_IGNORE
#define MPI_F_STATUS_IGNORE ((MPI_Fint *) 0)
#endif
#ifndef MPI_F_STATUSES_IGNORE
#define MPI_F_STATUSES_IGNORE ((MPI_Fint *) 0)
#endif
#ifndef MPI_F08_STATUS_IGNORE
#define MPI_F08_STATUS_IGNORE ((MPI_F08_status *) 0)
#endif
#ifndef MPI_F08_STATUSES_IGNORE
#define MPI_F08_STATUSES_IGNORE ((MPI_F08_status *) 0)
#endif

FISHPLATE_NAME int fishplate_status_to_array(const MPI_Status *status, MPI_Fint *array)
{
    int i;
    array[MPI_F_SOURCE] = status->MPI_SOURCE;
    array[MPI_F_TAG] = status->MPI_TAG;
    array[MPI_F_ERROR] = status->MPI_ERROR;
    for (i = 0; i < 5; i++)
        array[3 + i] = status->MPI_internal[i];
    return MPI_SUCCESS;
}
FISHPLATE_NAME int fishplate_status_from_array(const MPI_Fint *array, MPI_Status *status)
{
    int i;
    status->MPI_SOURCE = array[MPI_F_SOURCE];
    status->MPI_TAG = array[MPI_F_TAG];
    status->MPI_ERROR = array[MPI_F_ERROR];
    for (i = 0; i < 5; i++)
        status->MPI_internal[i] = array[3 + i];
    return MPI_SUCCESS;
}
