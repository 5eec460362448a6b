/* The shapes and a few values that the ABI fixes, asked of the header in C and in C++. */
#include <mpi.h>
#include <stddef.h>

#define CHECK(name, fact) typedef char name[(fact) ? 1 : -1]

CHECK(status_is_eight_ints, sizeof(MPI_Status) == 8 * sizeof(int));
CHECK(error_is_the_third, offsetof(MPI_Status, MPI_ERROR) == 2 * sizeof(int));
CHECK(aint_is_a_pointer, sizeof(MPI_Aint) == sizeof(void *));
CHECK(count_is_64_bits, sizeof(MPI_Count) == 8);
CHECK(offset_is_64_bits, sizeof(MPI_Offset) == 8);
CHECK(handles_are_pointers, sizeof(MPI_Comm) == sizeof(void *));
CHECK(versions, MPI_VERSION == 5 && MPI_SUBVERSION == 0);

#if MPI_ABI_VERSION != 1 || MPI_ABI_SUBVERSION != 0
#error "the versions must be usable by the preprocessor"
#endif

struct use {
    MPI_Comm comm;
    MPI_Datatype type;
    void *in_place;
    MPI_Comm_copy_attr_function *copy;
    MPI_T_cb_safety safety;
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    int (*send_c)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
};

void use(struct use *use);

static int all_or_nothing(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    (void)comm, (void)key, (void)extra, (void)in, (void)out;
    *flag = 1;
    return MPI_SUCCESS;
}

/* Names of MPI 2 for the types of functions, and one type class beside the standard's. */
CHECK(type_class, MPIX_TYPECLASS_LOGICAL == MPI_TYPECLASS_INTEGER - 1);

struct handlers {
    MPI_Comm_errhandler_fn *comm;
    MPI_File_errhandler_fn *file;
    MPI_Session_errhandler_fn *session;
    MPI_Win_errhandler_fn *win;
};

static void explain(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void add(void *in, void *inout, MPI_Count *len, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)len, (void)type;
}

void use(struct use *use)
{
    int keyval;
    MPI_Errhandler handler;
    MPI_Op op;
    use->comm = MPI_COMM_WORLD;
    use->type = MPI_DOUBLE;
    use->in_place = MPI_IN_PLACE;
    use->copy = MPI_COMM_DUP_FN;
    use->safety = MPI_T_CB_REQUIRE_THREAD_SAFE;
    use->send = MPI_Send;
    use->send_c = PMPI_Send_c;
    MPI_Comm_create_keyval(all_or_nothing, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_create_errhandler(explain, &handler);
    MPI_Op_create_c(add, 1, &op);
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Pcontrol(1, "more", 2.0);
    switch (keyval) {
    case MPI_KEYVAL_INVALID:
    case MPI_UNDEFINED:
        break;
    }
}
