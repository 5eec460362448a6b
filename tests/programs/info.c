/* Info objects: set, get, order, dup, delete, limits, and the environment's. */
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Info info, twin;
    char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY + 1], long_value[3000];
    int found = -1, n = -1, length = sizeof value;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    OK(MPI_Info_create(&info));
    OK(MPI_Info_get_nkeys(info, &n));
    SAME(n, 0);
    OK(MPI_Info_set(info, "one", "1"));
    OK(MPI_Info_set(info, "two", "second"));
    OK(MPI_Info_set(info, "one", "first")); /* replaces */
    OK(MPI_Info_get_nkeys(info, &n));
    SAME(n, 2);
    OK(MPI_Info_get_string(info, "one", &length, value, &found));
    CHECK(found && strcmp(value, "first") == 0 && length == 6, "'%s', %d", value, length);
    length = 3; /* cut to what fits, with its end */
    OK(MPI_Info_get_string(info, "two", &length, value, &found));
    CHECK(found && strcmp(value, "se") == 0 && length == 7, "'%s', %d", value, length);
    length = 0; /* only the length is asked for */
    strcpy(value, "untouched");
    OK(MPI_Info_get_string(info, "two", &length, value, &found));
    CHECK(found && strcmp(value, "untouched") == 0 && length == 7, "'%s', %d", value, length);
    OK(MPI_Info_get_string(info, "three", &length, value, &found));
    SAME(found, 0);
    OK(MPI_Info_get_nthkey(info, 0, key));
    CHECK(strcmp(key, "one") == 0, "key 0 is %s", key);
    OK(MPI_Info_dup(info, &twin));
    OK(MPI_Info_delete(info, "one"));
    OK(MPI_Info_get_nkeys(info, &n));
    SAME(n, 1);
    OK(MPI_Info_get_nkeys(twin, &n));
    SAME(n, 2);
    FAILS(MPI_Info_delete(info, "one"), MPI_ERR_INFO_NOKEY);
    memset(long_value, 'a', sizeof long_value);
    long_value[sizeof long_value - 1] = 0;
    FAILS(MPI_Info_set(info, "key", long_value), MPI_ERR_INFO_VALUE);
    FAILS(MPI_Info_set(info, long_value, "value"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(info, "", "value"), MPI_ERR_INFO_KEY);
    OK(MPI_Info_free(&info));
    CHECK(info == MPI_INFO_NULL, "after Info_free");
    OK(MPI_Info_free(&twin));
    FAILS(MPI_Info_get_nkeys(MPI_INFO_NULL, &n), MPI_ERR_INFO);

    OK(MPI_Info_get_nkeys(MPI_INFO_ENV, &n));
    MPI_Comm comm;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true"));
    OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    OK(MPI_Comm_get_info(comm, &twin));
    CHECK(twin != MPI_INFO_NULL, "Comm_get_info");
    OK(MPI_Info_free(&twin));
    OK(MPI_Comm_set_info(comm, info));
    OK(MPI_Info_free(&info));
    OK(MPI_Comm_free(&comm));
    return finish();
}
