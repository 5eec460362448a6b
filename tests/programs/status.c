/* Status fields and copies. */
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Status status, copy;
    int value = -1, flag = -1;
    OK(MPI_Status_set_elements(&status, MPI_INT, 5));
    OK(MPI_Status_set_cancelled(&status, 0));
    SAME(count_of(&status, MPI_INT), 5);
    copy = status; /* a status is a plain value */
    SAME(count_of(&copy, MPI_INT), 5);
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 0);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag != 0, 1);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_OTHER));
    OK(MPI_Status_get_source(&status, &value));
    SAME(value, 3);
    OK(MPI_Status_get_tag(&status, &value));
    SAME(value, 4);
    OK(MPI_Status_get_error(&status, &value));
    SAME(value, MPI_ERR_OTHER);
    SAME(sizeof(MPI_Status), 32);
    return finish();
}
