/* Attributes of communicators: predefined ones, copy and delete callbacks and their order, what an
 * error in a callback does. */
#include "check.h"

static int copies, deletions, refuse, last_deleted;

static int copy(MPI_Comm old, int key, void *extra, void *in, void *out, int *flag) {
    (void)old, (void)key;
    SAME(*(int *)extra, 7);
    copies++;
    *(intptr_t *)out = (intptr_t)in + 1;
    *flag = copies % 2; /* every other time the attribute is not taken over */
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key;
    SAME(*(int *)extra, 7);
    if (refuse) return MPI_ERR_OTHER;
    deletions++;
    last_deleted = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

static void predefined(void) {
    int *value = NULL, found = 0;
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &found));
    CHECK(found && *value >= 32767, "MPI_TAG_UB");
    if (found && size > 1) { /* the largest tag works */
        int tag = *value;
        if (rank == 0) OK(MPI_Send(NULL, 0, MPI_INT, 1, tag, MPI_COMM_WORLD));
        if (rank == 1) OK(MPI_Recv(NULL, 0, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &found));
    CHECK(found && (*value == 0 || *value == 1), "MPI_WTIME_IS_GLOBAL");
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &found));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &found));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &found));
    OK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &found));
    if (found) CHECK(*value >= size, "MPI_UNIVERSE_SIZE is %d", *value);
}

static void life(void) {
    MPI_Comm comm, twin, third;
    int extra = 7, key, copied, found = -1;
    void *value = NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_create_keyval(copy, drop, &key, &extra));
    OK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &copied, NULL));
    OK(MPI_Comm_set_attr(comm, key, (void *)10));
    OK(MPI_Comm_set_attr(comm, copied, (void *)99));
    OK(MPI_Comm_dup(comm, &twin));
    OK(MPI_Comm_get_attr(twin, key, &value, &found));
    CHECK(found && value == (void *)11, "the copy is %p", value);
    OK(MPI_Comm_get_attr(twin, copied, &value, &found));
    CHECK(found && value == (void *)99, "by MPI_COMM_DUP_FN: %p", value);
    OK(MPI_Comm_dup(comm, &third));
    OK(MPI_Comm_get_attr(third, key, &value, &found));
    SAME(found, 0);
    OK(MPI_Comm_free(&third));
    SAME(deletions, 0);
    OK(MPI_Comm_free(&twin));
    SAME(deletions, 1);
    SAME(last_deleted, 11);
    /* split copies nothing */
    OK(MPI_Comm_split(comm, 0, 0, &third));
    OK(MPI_Comm_get_attr(third, copied, &value, &found));
    SAME(found, 0);
    OK(MPI_Comm_free(&third));
    /* A deletion that is refused leaves the attribute where it is. */
    refuse = 1;
    CHECK(MPI_Comm_delete_attr(comm, key) != MPI_SUCCESS, "the refused deletion succeeded");
    OK(MPI_Comm_get_attr(comm, key, &value, &found));
    CHECK(found && value == (void *)10, "the attribute is gone though its deletion was refused");
    refuse = 0;
    OK(MPI_Comm_free_keyval(&key));
    SAME(key, MPI_KEYVAL_INVALID);
    OK(MPI_Comm_free_keyval(&copied));
    OK(MPI_Comm_free(&comm));
    SAME(deletions, 2);
    SAME(last_deleted, 10);
    FAILS(MPI_Comm_set_attr(MPI_COMM_SELF, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
}

/* What hangs on MPI_COMM_SELF is deleted at the beginning of Finalize, last set first. */
static int order_seen[3], orders;

static int at_end(MPI_Comm comm, int key, void *value, void *extra) {
    int dead = -1;
    (void)comm, (void)key, (void)extra;
    MPI_Finalized(&dead);
    SAME(dead, 0);
    order_seen[orders++] = (int)(intptr_t)value;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    predefined();
    life();
    for (int i = 0; i < 3; i++) {
        int key;
        OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &key, NULL));
        OK(MPI_Comm_set_attr(MPI_COMM_SELF, key, (void *)(intptr_t)(i + 1)));
    }
    MPI_Finalize();
    CHECK(orders == 3 && order_seen[0] == 3 && order_seen[1] == 2 && order_seen[2] == 1,
          "%d callbacks at Finalize: %d %d %d", orders, order_seen[0], order_seen[1], order_seen[2]);
    return verdict();
}
