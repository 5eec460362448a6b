/* What the standard allows before MPI_Init. */
#include "check.h"

static void versions(void)
{
    int major = 0, minor = -1, length = 0;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Get_version(&major, &minor) == MPI_SUCCESS && major == 5 && minor == 0);
    CHECK(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS && major == 1 && minor == 0);
    CHECK(MPI_Get_library_version(text, &length) == MPI_SUCCESS);
    CHECK((int)strlen(text) == length && strstr(text, "Fishplate"));
}

static void state(void)
{
    int flag = 1;
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    flag = 1;
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Wtime() > 0 && MPI_Wtick() > 0 && MPI_Wtick() < 1e-3);
    CHECK(MPI_Pcontrol(1) == MPI_SUCCESS && MPI_Pcontrol(2, "x", 3.0) == MPI_SUCCESS);
}

static void infos(void)
{
    MPI_Info info, copy;
    int flag = -1, keys = -1, size;
    char value[8] = "?";
    char key[MPI_MAX_INFO_KEY];
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "colour", "green") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "size", "1") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "colour", "deep blue") == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &keys) == MPI_SUCCESS && keys == 2);
    CHECK(MPI_Info_get_nthkey(info, 0, key) == MPI_SUCCESS && !strcmp(key, "colour"));

    size = 0;
    CHECK(MPI_Info_get_string(info, "colour", &size, NULL, &flag) == MPI_SUCCESS);
    CHECK(flag && size == 10);
    size = sizeof value;
    CHECK(MPI_Info_get_string(info, "colour", &size, value, &flag) == MPI_SUCCESS);
    CHECK(flag && size == 10 && !strcmp(value, "deep bl"));
    size = sizeof value;
    CHECK(MPI_Info_get_string(info, "taste", &size, value, &flag) == MPI_SUCCESS);
    CHECK(!flag && size == sizeof value && !strcmp(value, "deep bl"));

    CHECK(MPI_Info_get(info, "colour", 4, value, &flag) == MPI_SUCCESS);
    CHECK(flag && !strcmp(value, "deep"));
    CHECK(MPI_Info_get_valuelen(info, "colour", &size, &flag) == MPI_SUCCESS && size == 9);

    CHECK(MPI_Info_dup(info, &copy) == MPI_SUCCESS && copy != info);
    CHECK(MPI_Info_delete(info, "colour") == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &keys) == MPI_SUCCESS && keys == 1);
    CHECK(MPI_Info_get_nkeys(copy, &keys) == MPI_SUCCESS && keys == 2);
    CHECK(MPI_Info_fromint(MPI_Info_toint(copy)) == copy);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    CHECK(MPI_Info_free(&copy) == MPI_SUCCESS);

    CHECK(MPI_Info_get_nkeys(MPI_INFO_ENV, &keys) == MPI_SUCCESS && keys >= 4);
    size = sizeof key;
    CHECK(MPI_Info_get_string(MPI_INFO_ENV, "command", &size, key, &flag) == MPI_SUCCESS);
    CHECK(flag && strstr(key, "early"));

    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
    size = sizeof value;
    CHECK(MPI_Info_get_string(info, "mpi_count_size", &size, value, &flag) == MPI_SUCCESS);
    CHECK(flag && !strcmp(value, "8"));
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

static void fortran(void)
{
    const int given[2] = {-1, 0};
    int values[2] = {7, 7}, is_set = -1, size;
    char value[8];
    MPI_Info info = MPI_INFO_ENV;
    CHECK(MPI_Abi_get_fortran_booleans(4, &values[0], &values[1], &is_set) == MPI_SUCCESS);
    CHECK(!is_set && values[0] == 7 && values[1] == 7);
    CHECK(MPI_Abi_set_fortran_booleans(4, (void *)&given[0], (void *)&given[1]) == MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_booleans(4, &values[0], &values[1], &is_set) == MPI_SUCCESS);
    CHECK(is_set && values[0] == -1 && values[1] == 0);
    CHECK(MPI_Abi_get_fortran_booleans(8, &values[0], &values[1], &is_set) == MPI_SUCCESS);
    CHECK(!is_set && values[0] == -1);

    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_integer_size", "4") == MPI_SUCCESS);
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_SUCCESS);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
    size = sizeof value;
    CHECK(MPI_Info_get_string(info, "mpi_integer_size", &size, value, &is_set) == MPI_SUCCESS);
    CHECK(is_set && !strcmp(value, "4"));
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

static void errors(void)
{
    char text[MPI_MAX_ERROR_STRING];
    int class = -1, length = 0;
    CHECK(MPI_Error_class(MPI_ERR_TRUNCATE, &class) == MPI_SUCCESS && class == MPI_ERR_TRUNCATE);
    CHECK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length) == MPI_SUCCESS);
    CHECK((int)strlen(text) == length && strstr(text, "MPI_ERR_TRUNCATE") == text);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_SUPPORTED);
}

static void integers(void)
{
    CHECK(MPI_Comm_toint(MPI_COMM_WORLD) == 257);
    CHECK(MPI_Comm_fromint(258) == MPI_COMM_SELF);
    CHECK(MPI_Type_fromint(MPI_Type_toint(MPI_DOUBLE)) == MPI_DOUBLE);
    CHECK(MPI_Aint_diff(MPI_Aint_add(40, 2), 40) == 2);
}

int main(void)
{
    versions();
    state();
    infos();
    fortran();
    errors();
    integers();
    return 0;
}
