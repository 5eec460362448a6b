/* The part of f08_objects in C: attributes as C has them. */
#include <mpi.h>
#include <stdint.h>

int attribute_in_c(int comm, int keyval, intptr_t *value)
{
    int flag = 0;
    intptr_t *address;
    MPI_Comm_get_attr(MPI_Comm_fromint(comm), keyval, &address, &flag);
    if (flag)
        *value = *address;
    return flag;
}

int set_in_c(int comm, int keyval, intptr_t value)
{
    return MPI_Comm_set_attr(MPI_Comm_fromint(comm), keyval, (void *)value);
}
