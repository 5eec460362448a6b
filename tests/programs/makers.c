/* A call that makes a communicator or a window fails on all ranks if it fails on one, with one class.
 *
 * Each maker is called with each failure on each rank alone, and then on all ranks from one on, where the class is that of the lowest.
 * A rank that waits for one that has left is a hang. After each failure the maker works. */
#include "check.h"

/* A class that no maker gives by itself. */
enum { OF_CALLBACK = MPI_ERR_QUOTA };

typedef int Maker(int fails);

static MPI_Comm of;
static MPI_Info bad_info;
static int key, copies, deletions;
/* This rank's call was made to fail. */
static int failing;
static int before[2];

static void done(MPI_Comm *comm) {
    if (*comm != MPI_COMM_NULL) OK(MPI_Comm_free(comm));
}

static int no_place(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int code = MPI_Comm_dup(of, fails ? NULL : &new);
    if (!code) done(&new);
    return code;
}

static int callback(MPI_Comm comm, int its_key, void *state, void *value, void *copy, int *flag) {
    (void)comm, (void)its_key, (void)state;
    if (*(int *)value) return OF_CALLBACK;
    *(void **)copy = value;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int deleted(MPI_Comm comm, int its_key, void *value, void *state) {
    (void)comm, (void)its_key, (void)state, (void)value;
    deletions++;
    return MPI_SUCCESS;
}

static int duplicate(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    static int value;
    value = fails;
    OK(MPI_Comm_set_attr(of, key, &value));
    int code = MPI_Comm_dup(of, &new);
    OK(MPI_Comm_delete_attr(of, key));
    if (!code) done(&new);
    return code;
}

static int duplicate_later(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    MPI_Request request = MPI_REQUEST_NULL;
    static int value;
    value = fails;
    OK(MPI_Comm_set_attr(of, key, &value));
    int code = MPI_Comm_idup(of, &new, &request);
    if (!code) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    OK(MPI_Comm_delete_attr(of, key));
    if (!code) done(&new);
    return code;
}

static int with_info(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int code = MPI_Comm_dup_with_info(of, fails ? bad_info : MPI_INFO_NULL, &new);
    if (!code) done(&new);
    return code;
}

static int of_group(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    MPI_Group group;
    OK(MPI_Comm_group(of, &group));
    int code = MPI_Comm_create(of, fails ? MPI_GROUP_NULL : group, &new);
    OK(MPI_Group_free(&group));
    if (!code) done(&new);
    return code;
}

static int by_color(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int code = MPI_Comm_split(of, fails ? -5 : rank % 2, 0, &new);
    if (!code) done(&new);
    return code;
}

static int by_type(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int code = MPI_Comm_split_type(of, fails ? 12345 : MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &new);
    if (!code) done(&new);
    return code;
}

static int grid(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int dims[1] = {fails ? size + 1 : size}, periods[1] = {0};
    int code = MPI_Cart_create(of, 1, dims, periods, 0, &new);
    if (!code) done(&new);
    return code;
}

static int part_of_grid(int fails) {
    MPI_Comm all = MPI_COMM_NULL, new = MPI_COMM_NULL;
    int dims[2] = {size, 1}, periods[2] = {0, 0}, remain[2] = {1, 0};
    OK(MPI_Cart_create(of, 2, dims, periods, 0, &all));
    OK(MPI_Comm_set_errhandler(all, MPI_ERRORS_RETURN));
    int code = MPI_Cart_sub(all, remain, fails ? NULL : &new);
    if (!code) done(&new);
    done(&all);
    return code;
}

static int graph(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int index[1] = {0}, edges[1] = {0};
    int code = MPI_Graph_create(of, fails ? -1 : 1, index, edges, 0, &new);
    if (!code) done(&new);
    return code;
}

static int edges_anywhere(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int source[1] = {rank}, degree[1] = {1}, target[1] = {fails ? size : 0}, weight[1] = {1};
    int code = MPI_Dist_graph_create(of, 1, source, degree, target, weight, MPI_INFO_NULL, 0, &new);
    if (!code) done(&new);
    return code;
}

static int own_edges(int fails) {
    MPI_Comm new = MPI_COMM_NULL;
    int source[1] = {(rank + size - 1) % size}, target[1] = {(rank + 1) % size}, weight[1] = {fails ? -1 : 1};
    int code = MPI_Dist_graph_create_adjacent(of, 1, source, weight, 1, target, weight, MPI_INFO_NULL, 0, &new);
    if (!code) done(&new);
    return code;
}

/* Both groups fail: the leaders tell each other. Whom a leader with wrong arguments means is not known, so no leader fails. */
static int between(int fails) {
    MPI_Comm half = MPI_COMM_NULL, new = MPI_COMM_NULL;
    if (size < 2) return fails ? MPI_ERR_ARG : MPI_SUCCESS;
    int upper = rank >= size / 2, own, halves;
    OK(MPI_Comm_split(of, upper, 0, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(half, &own));
    OK(MPI_Comm_size(half, &halves));
    if (own == halves - 1) failing = fails = 0;
    int code = MPI_Intercomm_create(half, halves - 1, of, upper ? size / 2 - 1 : size - 1, 3, fails ? NULL : &new);
    if (!code) done(&new);
    done(&half);
    return code;
}

static int merged(int fails) {
    MPI_Comm half = MPI_COMM_NULL, inter = MPI_COMM_NULL, new = MPI_COMM_NULL;
    if (size < 2) return fails ? MPI_ERR_ARG : MPI_SUCCESS;
    int upper = rank >= size / 2;
    OK(MPI_Comm_split(of, upper, 0, &half));
    OK(MPI_Intercomm_create(half, 0, of, upper ? 0 : size / 2, 3, &inter));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN));
    int code = MPI_Intercomm_merge(inter, upper, fails ? NULL : &new);
    if (!code) done(&new);
    done(&inter);
    done(&half);
    return code;
}

static int window(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    int code = MPI_Win_create(before, sizeof before, fails ? -1 : 1, MPI_INFO_NULL, of, &win);
    if (!code) OK(MPI_Win_free(&win));
    return code;
}

static int window_of_info(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Info freed = bad_info;
    int code = MPI_Win_create(before, sizeof before, 1, fails ? freed : MPI_INFO_NULL, of, &win);
    if (!code) OK(MPI_Win_free(&win));
    return code;
}

static int own_window(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    int *base;
    int code = MPI_Win_allocate(fails ? (MPI_Aint)1 << 60 : 64, 1, MPI_INFO_NULL, of, &base, &win);
    if (!code) OK(MPI_Win_free(&win));
    return code;
}

static int own_window_of_size(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    int *base;
    int code = MPI_Win_allocate(fails ? -5 : 64, 1, MPI_INFO_NULL, of, &base, &win);
    if (!code) OK(MPI_Win_free(&win));
    return code;
}

static int shared_window(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm here = MPI_COMM_NULL;
    int *base;
    OK(MPI_Comm_split_type(of, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here));
    int beside;
    OK(MPI_Comm_size(here, &beside));
    OK(MPI_Comm_set_errhandler(here, MPI_ERRORS_RETURN));
    int code = MPI_SUCCESS;
    if (beside == size) code = MPI_Win_allocate_shared(fails ? -5 : 64, 1, MPI_INFO_NULL, here, &base, &win);
    else code = MPI_Win_create(before, 4, fails ? 0 : 1, MPI_INFO_NULL, of, &win);
    if (!code && win != MPI_WIN_NULL) OK(MPI_Win_free(&win));
    done(&here);
    return code;
}

static int dynamic_window(int fails) {
    MPI_Win win = MPI_WIN_NULL;
    int code = MPI_Win_create_dynamic(MPI_INFO_NULL, of, fails ? NULL : &win);
    if (!code) OK(MPI_Win_free(&win));
    return code;
}

static const struct {
    const char *name;
    Maker *make;
} MAKERS[] = {
    {"MPI_Comm_dup, NULL", no_place},
    {"MPI_Comm_dup, callback", duplicate},
    {"MPI_Comm_idup, callback", duplicate_later},
    {"MPI_Comm_dup_with_info", with_info},
    {"MPI_Comm_create", of_group},
    {"MPI_Comm_split", by_color},
    {"MPI_Comm_split_type", by_type},
    {"MPI_Cart_create", grid},
    {"MPI_Cart_sub", part_of_grid},
    {"MPI_Graph_create", graph},
    {"MPI_Dist_graph_create", edges_anywhere},
    {"MPI_Dist_graph_create_adjacent", own_edges},
    {"MPI_Intercomm_create", between},
    {"MPI_Intercomm_merge", merged},
    {"MPI_Win_create, disp_unit", window},
    {"MPI_Win_create, info", window_of_info},
    {"MPI_Win_allocate, memory", own_window},
    {"MPI_Win_allocate, size", own_window_of_size},
    {"MPI_Win_allocate_shared", shared_window},
    {"MPI_Win_create_dynamic", dynamic_window},
};

/* The class on all ranks; it must be one, and an error only if some rank failed. */
static void check(size_t maker, int fails) {
    const char *name = MAKERS[maker].name;
    failing = fails;
    int class = MPI_SUCCESS, range[2], any = 0, code = MAKERS[maker].make(fails);
    if (code) OK(MPI_Error_class(code, &class));
    int mine[2] = {class, -class};
    OK(MPI_Allreduce(mine, range, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    OK(MPI_Allreduce(&failing, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    CHECK(range[0] == -range[1], "%s: classes %d to %d", name, -range[1], range[0]);
    CHECK((class != MPI_SUCCESS) == any, "%s: class %d, %d fail", name, class, any);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &of));
    OK(MPI_Comm_set_errhandler(of, MPI_ERRORS_RETURN));
    OK(MPI_Comm_create_keyval(callback, deleted, &key, NULL));
    OK(MPI_Info_create(&bad_info));
    OK(MPI_Info_set(bad_info, "mpi_assert_no_any_tag", "perhaps"));
    OK(MPI_Info_set(bad_info, "accumulate_ops", "whatever"));
    for (size_t maker = 0; maker < sizeof MAKERS / sizeof *MAKERS; maker++) {
        if (argc > 1 && rank == 0) fprintf(stderr, "%s\n", MAKERS[maker].name);
        for (int culprit = 0; culprit < 2 * size; culprit++) {
            int fails = culprit < size ? rank == culprit : rank >= culprit - size;
            check(maker, fails);
            check(maker, 0);
        }
    }
    /* What was copied before a failure is deleted again, and so is each attribute of the original. */
    CHECK(deletions >= copies, "%d copies, %d deletions", copies, deletions);
    OK(MPI_Info_free(&bad_info));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Comm_free(&of));
    return finish();
}
