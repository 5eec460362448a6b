/* Every name that the ABI leaves out: handles keep their identity through the integers of Fortran, statuses their fields. */
#include "check.h"

#define ROUND_TRIP(class, handle) CHECK(MPI_##class##_f2c(MPI_##class##_c2f(handle)) == (handle))
#define BOTH(class, handle) \
    do { \
        MPI_Fint integer = MPI_##class##_c2f(handle); \
        CHECK(integer == PMPI_##class##_c2f(handle) && PMPI_##class##_f2c(integer) == (handle)); \
        CHECK(integer == MPI_##class##_toint(handle)); \
        ROUND_TRIP(class, handle); \
    } while (0)

static void handles(void)
{
    BOTH(Comm, MPI_COMM_WORLD);
    BOTH(Errhandler, MPI_ERRORS_RETURN);
    BOTH(File, MPI_FILE_NULL);
    BOTH(Group, MPI_GROUP_EMPTY);
    BOTH(Info, MPI_INFO_ENV);
    BOTH(Message, MPI_MESSAGE_NO_PROC);
    BOTH(Op, MPI_SUM);
    BOTH(Request, MPI_REQUEST_NULL);
    BOTH(Session, MPI_SESSION_NULL);
    BOTH(Type, MPI_DOUBLE);
    BOTH(Win, MPI_WIN_NULL);
}

static void statuses(void)
{
    MPI_Status status, back;
    MPI_F08_status named;
    MPI_Fint array[MPI_F_STATUS_SIZE];
    int i;
    memset(&back, 0, sizeof back);
    status.MPI_SOURCE = 3;
    status.MPI_TAG = 4;
    status.MPI_ERROR = 5;
    for (i = 0; i < 5; i++)
        status.MPI_internal[i] = 10 + i;
    CHECK(MPI_Status_c2f(&status, array) == MPI_SUCCESS);
    CHECK(array[MPI_F_SOURCE] == 3 && array[MPI_F_TAG] == 4 && array[MPI_F_ERROR] == 5 && array[7] == 14);
    CHECK(MPI_Status_f2c(array, &back) == MPI_SUCCESS && !memcmp(&status, &back, sizeof status));
    CHECK(MPI_Status_c2f08(&status, &named) == MPI_SUCCESS && named.MPI_TAG == 4);
    memset(array, 0, sizeof array);
    CHECK(MPI_Status_f082f(&named, array) == MPI_SUCCESS && array[MPI_F_TAG] == 4 && array[3] == 10);
    array[MPI_F_TAG] = 40;
    CHECK(MPI_Status_f2f08(array, &named) == MPI_SUCCESS && named.MPI_TAG == 40);
    CHECK(MPI_Status_f082c(&named, &back) == MPI_SUCCESS && back.MPI_TAG == 40 && back.MPI_SOURCE == 3);
    CHECK(PMPI_Status_c2f(&status, array) == MPI_SUCCESS && array[MPI_F_TAG] == 4);
    CHECK(PMPI_Status_f2c(array, &back) == MPI_SUCCESS && back.MPI_TAG == 4);
}

int main(void)
{
    MPI_Fint *none = MPI_F_STATUS_IGNORE, *all = MPI_F_STATUSES_IGNORE;
    MPI_F08_status *named = MPI_F08_STATUS_IGNORE;
    CHECK(none == NULL && all == NULL && named == NULL);
    handles();
    statuses();
    return 0;
}
