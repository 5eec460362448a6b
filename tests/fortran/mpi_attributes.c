/* The parts in C of mpi_attributes.f90. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

static int object;

int key_of_c(void)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    return key;
}

void set_in_c(int key)
{
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &object);
}

intptr_t address_in_c(void)
{
    return (intptr_t)&object;
}

/* The integer at the address that is the attribute in C: an int if MPI 1 set it. */
intptr_t read_in_c(int key, int old)
{
    void *address = NULL;
    int flag = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, key, &address, &flag);
    if (!flag)
        return 0;
    return old ? *(int *)address : *(MPI_Aint *)address;
}

int predefined_in_c(void)
{
    int *value, flag;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag);
    return *value;
}

int comm_in_c(int comm)
{
    int size;
    MPI_Comm_size(MPI_Comm_fromint(comm), &size);
    return size;
}
