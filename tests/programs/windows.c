/* Windows of every kind, their attributes, names, hints, groups and error handlers. */
#include "check.h"

static int deletions, handled;

static int copy(MPI_Win old, int key, void *extra, void *in, void *out, int *flag) {
    (void)old, (void)key, (void)extra, (void)in, (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static int drop(MPI_Win win, int key, void *value, void *extra) {
    (void)key;
    int flag;
    void *base;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag)); /* the window is still there */
    SAME(*(int *)extra, 7);
    SAME((intptr_t)value, 11);
    deletions++;
    return MPI_SUCCESS;
}

static void on_error(MPI_Win *win, int *code, ...) {
    (void)win;
    int class;
    MPI_Error_class(*code, &class);
    handled = class;
}

/* The predefined attributes of a window. */
static void attributes(MPI_Win win, int flavor, void *base, MPI_Aint bytes, int unit) {
    void *value = NULL;
    int flag = 0;
    OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag));
    CHECK(flag && value == base, "MPI_WIN_BASE is %p, not %p", value, base);
    OK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag));
    if (flag) SAME(*(MPI_Aint *)value, bytes);
    else WRONG("no MPI_WIN_SIZE");
    OK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag));
    if (flag) SAME(*(int *)value, unit);
    else WRONG("no MPI_WIN_DISP_UNIT");
    OK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag));
    if (flag) SAME(*(int *)value, flavor);
    else WRONG("no MPI_WIN_CREATE_FLAVOR");
    OK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag));
    if (flag) SAME(*(int *)value, MPI_WIN_UNIFIED);
    else WRONG("no MPI_WIN_MODEL");
    FAILS(MPI_Win_set_attr(win, MPI_WIN_SIZE, NULL), MPI_ERR_KEYVAL);
    FAILS(MPI_Win_delete_attr(win, MPI_WIN_MODEL), MPI_ERR_KEYVAL);
}

static void life(MPI_Win win) {
    char name[MPI_MAX_OBJECT_NAME];
    int length, key, extra = 7, flag, same;
    void *value;
    MPI_Group group, all;
    MPI_Errhandler handler, found;
    OK(MPI_Win_get_name(win, name, &length));
    SAME(length, 0);
    OK(MPI_Win_set_name(win, "halo"));
    OK(MPI_Win_get_name(win, name, &length));
    CHECK(length == 4 && strcmp(name, "halo") == 0, "%s", name);
    OK(MPI_Win_create_keyval(copy, drop, &key, &extra));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    SAME(flag, 0);
    OK(MPI_Win_set_attr(win, key, (void *)11));
    OK(MPI_Win_get_attr(win, key, &value, &flag));
    CHECK(flag && value == (void *)11, "%p", value);
    OK(MPI_Win_free_keyval(&key));
    SAME(key, MPI_KEYVAL_INVALID);
    OK(MPI_Win_get_group(win, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_compare(group, all, &same));
    SAME(same, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&all));
    /* Some programs ask at each access, and never free the answer. */
    enum { ANSWERS = 1 << 21 };
    for (int i = 0; i < ANSWERS; i++)
        if (MPI_Win_get_group(win, &group) != MPI_SUCCESS) CHECK(0, "group %d of the window", i);
    OK(MPI_Group_size(group, &length));
    SAME(length, size);
    for (int i = 0; i < ANSWERS; i++) {
        all = group;
        if (MPI_Group_free(&all) != MPI_SUCCESS) CHECK(0, "the end of answer %d", i);
    }
    OK(MPI_Win_create_errhandler(on_error, &handler));
    OK(MPI_Win_set_errhandler(win, handler));
    handled = 0;
    OK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER));
    SAME(handled, MPI_ERR_OTHER);
    REFUSED(MPI_Win_unlock(0, win));
    SAME(handled, MPI_ERR_RMA_SYNC);
    OK(MPI_Win_get_errhandler(win, &found));
    CHECK(found == handler, "another handler");
    OK(MPI_Errhandler_free(&found));
    OK(MPI_Errhandler_free(&handler));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
}

static void hints(void) {
    MPI_Info info, used;
    MPI_Win win;
    int flag, length = 99;
    char value[100];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Info_set(info, "accumulate_ordering", "none"));
    OK(MPI_Info_set(info, "mpi_accumulate_granularity", "8"));
    OK(MPI_Info_set(info, "colour", "red"));
    OK(MPI_Win_create(NULL, 0, 1, info, MPI_COMM_WORLD, &win));
    OK(MPI_Win_get_info(win, &used));
    OK(MPI_Info_get_string(used, "no_locks", &length, value, &flag));
    CHECK(flag && strcmp(value, "true") == 0, "no_locks is %s", value);
    length = 99;
    OK(MPI_Info_get_string(used, "accumulate_ordering", &length, value, &flag));
    CHECK(flag && strcmp(value, "none") == 0, "accumulate_ordering is %s", value);
    OK(MPI_Info_get_string(used, "colour", &length, value, &flag));
    SAME(flag, 0);
    OK(MPI_Info_free(&used));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Info_set(info, "no_locks", "perhaps"));
    FAILS(MPI_Win_set_info(win, info), MPI_ERR_INFO_VALUE);
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
}

static void kinds(void) {
    enum { COUNT = 100 };
    double memory[COUNT], *base = NULL;
    MPI_Win win;
    MPI_Aint bytes;
    int unit;
    OK(MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    attributes(win, MPI_WIN_FLAVOR_CREATE, memory, sizeof memory, 8);
    life(win);
    SAME(deletions, 0);
    FAILS(MPI_Win_attach(win, memory, 8), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&win));
    SAME(deletions, 1);
    CHECK(win == MPI_WIN_NULL, "the handle is not null");
    OK(MPI_Win_allocate(sizeof memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    attributes(win, MPI_WIN_FLAVOR_ALLOCATE, base, sizeof memory, 4);
    for (int i = 0; i < COUNT; i++) base[i] = i;
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&base[rank], 1, MPI_DOUBLE, (rank + 1) % size, 2 * (COUNT - 1), 1, MPI_DOUBLE, win));
    OK(MPI_Win_fence(0, win));
    SAME(base[COUNT - 1], (rank + size - 1) % size);
    OK(MPI_Win_free(&win));
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    attributes(win, MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1);
    FAILS(MPI_Win_attach(win, NULL, 8), MPI_ERR_ARG);
    FAILS(MPI_Win_shared_query(win, 0, &bytes, &unit, &base), MPI_ERR_RMA_FLAVOR);
    OK(MPI_Win_free(&win));
    FAILS(MPI_Win_create(memory, 8, 0, MPI_INFO_NULL, MPI_COMM_SELF, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(memory, -1, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win), MPI_ERR_SIZE);
    MPI_Win none = MPI_WIN_NULL;
    FAILS(MPI_Win_free(&none), MPI_ERR_WIN);
    FAILS(MPI_Win_fence(0, none), MPI_ERR_WIN);
}

/* Ranks of a host store to each other's part of a window. */
static void shared(void) {
    MPI_Comm host;
    MPI_Win win;
    int me, many, unit, *mine, *theirs;
    MPI_Aint bytes;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    MPI_Comm_rank(host, &me);
    MPI_Comm_size(host, &many);
    MPI_Aint want = (me + 1) * (MPI_Aint)sizeof(int);
    OK(MPI_Win_allocate_shared(want, sizeof(int), MPI_INFO_NULL, host, &mine, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    attributes(win, MPI_WIN_FLAVOR_SHARED, mine, want, sizeof(int));
    for (int i = 0; i <= me; i++) mine[i] = 0;
    OK(MPI_Win_fence(0, win));
    int right = (me + 1) % many;
    OK(MPI_Win_shared_query(win, right, &bytes, &unit, &theirs));
    SAME(bytes, (right + 1) * (MPI_Aint)sizeof(int));
    SAME(unit, sizeof(int));
    theirs[right] = 100 + me;
    OK(MPI_Win_fence(0, win));
    SAME(mine[me], 100 + (me + many - 1) % many);
    OK(MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &theirs));
    SAME(bytes, sizeof(int));
    SAME(theirs[0], 100 + many - 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&host));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    kinds();
    hints();
    shared();
    return finish();
}
