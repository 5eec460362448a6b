/* Queries of the environment: versions, names, time, memory, state, threads. */
#include "check.h"

int main(int argc, char **argv) {
    int flag = -1, version = 0, subversion = -1, length = -1, provided = -1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    /* These are allowed before Init. */
    OK(MPI_Initialized(&flag));
    SAME(flag, 0);
    OK(MPI_Finalized(&flag));
    SAME(flag, 0);
    OK(MPI_Get_version(&version, &subversion));
    CHECK(version == MPI_VERSION && subversion == MPI_SUBVERSION, "version %d.%d", version, subversion);
    OK(MPI_Get_library_version(text, &length));
    CHECK(length > 0 && length == (int)strlen(text), "library version '%s'", text);
    OK(MPI_Abi_get_version(&version, &subversion));
    CHECK(version == MPI_ABI_VERSION && subversion == MPI_ABI_SUBVERSION, "ABI %d.%d", version, subversion);

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    CHECK(provided >= MPI_THREAD_FUNNELED, "thread level %d", provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK(argc == 3 && strcmp(argv[1], "two words") == 0 && strcmp(argv[2], "") == 0,
          "the arguments have changed");
    OK(MPI_Initialized(&flag));
    SAME(flag, 1);

    OK(MPI_Get_processor_name(text, &length));
    CHECK(length > 0 && length < MPI_MAX_PROCESSOR_NAME && length == (int)strlen(text), "'%s'", text);
    MPI_Comm parent = MPI_COMM_WORLD;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent == MPI_COMM_NULL, "a parent, though no process started this one");
    double first = MPI_Wtime(), tick = MPI_Wtick();
    CHECK(tick > 0 && tick < 0.01, "Wtick is %g", tick);
    double second = MPI_Wtime();
    while (second - first < 0.01) second = MPI_Wtime();
    CHECK(second - first < 60, "Wtime jumped by %g s", second - first);

    char *memory = NULL;
    OK(MPI_Alloc_mem(1 << 20, MPI_INFO_NULL, &memory));
    CHECK(memory != NULL && (uintptr_t)memory % 16 == 0, "Alloc_mem gave %p", (void *)memory);
    memset(memory, 1, 1 << 20);
    OK(MPI_Free_mem(memory));

    /* What Fortran's bindings tell is told once. */
    int values[2] = {1, 0};
    OK(MPI_Abi_set_fortran_booleans(4, &values[0], &values[1]));
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    SAME(MPI_Abi_set_fortran_booleans(4, &values[1], &values[0]), MPI_ERR_ABI);
    SAME(MPI_Abi_set_fortran_booleans(3, &values[0], &values[1]), MPI_ERR_ARG);
    OK(MPI_Abi_get_fortran_booleans(4, &values[1], &values[0], &flag));
    CHECK(flag && values[1] == 1 && values[0] == 0, "logicals %d %d", values[1], values[0]);

    /* Address arithmetic and status setters. */
    MPI_Aint a, b;
    int pair[2];
    OK(MPI_Get_address(&pair[0], &a));
    OK(MPI_Get_address(&pair[1], &b));
    SAME(MPI_Aint_diff(b, a), sizeof(int));
    SAME(MPI_Aint_add(a, sizeof(int)), b);
    MPI_Status status;
    memset(&status, 0, sizeof status);
    OK(MPI_Status_set_elements(&status, MPI_INT, 5));
    SAME(count_of(&status, MPI_INT), 5);
    OK(MPI_Status_set_cancelled(&status, 1));
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 1);

    MPI_Finalize();
    OK(MPI_Finalized(&flag));
    SAME(flag, 1);
    OK(MPI_Initialized(&flag));
    SAME(flag, 1);
    OK(MPI_Get_version(&version, &subversion));
    return verdict();
}
