/* The names beside the ABI, before MPI_Init: their addresses, and one call each where that is allowed. */
#define FISHPLATE_REMOVED_NAMES
#include "check.h"

typedef int (*procedure)(void);

int main(void)
{
    const procedure all[] = {
        (procedure)MPI_Attr_delete, (procedure)MPI_Attr_get, (procedure)MPI_Attr_put, (procedure)MPI_Keyval_create,
        (procedure)MPI_Keyval_free, (procedure)MPI_Address, (procedure)MPI_Errhandler_create, (procedure)MPI_Errhandler_get,
        (procedure)MPI_Errhandler_set, (procedure)MPI_Type_extent, (procedure)MPI_Type_hindexed, (procedure)MPI_Type_hvector,
        (procedure)MPI_Type_lb, (procedure)MPI_Type_struct, (procedure)MPI_Type_ub, (procedure)MPI_Precv_init_c,
        (procedure)MPI_Psend_init_c, (procedure)PMPI_Attr_get, (procedure)PMPI_Type_ub, (procedure)PMPI_Psend_init_c,
    };
    size_t i;
    for (i = 0; i < sizeof all / sizeof all[0]; i++)
        CHECK(all[i] != NULL);
    return 0;
}
