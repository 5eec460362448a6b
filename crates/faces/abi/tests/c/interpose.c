/* A tool defines MPI_ names of its own and goes on with the PMPI_ names. */
#include "check.h"

static int calls;

int MPI_Get_version(int *version, int *subversion)
{
    calls++;
    return PMPI_Get_version(version, subversion);
}

int main(void)
{
    int version = 0, subversion = -1;
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == 5 && calls == 1);
    version = 0;
    CHECK(PMPI_Get_version(&version, &subversion) == MPI_SUCCESS);
    CHECK(version == 5 && calls == 1);
    return 0;
}
