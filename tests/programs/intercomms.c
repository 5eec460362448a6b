/* Intercommunicators: create, inquiry, attributes, names, error handlers, info, dup of all kinds, split, create, merge,
 * messages, and errors. Collective operations are elsewhere. */
#include "check.h"

static MPI_Comm group, inter;
static int local_rank, local_size, remote_size, is_first;

static void compare(MPI_Comm a, MPI_Comm b, int wanted) {
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    SAME(result, wanted);
}

/* Each rank exchanges its world rank with its partner, and those without one send to the last of the other group. */
static void talk(MPI_Comm comm) {
    int me, ours, theirs, got, sum = 0, wanted = 0, to;
    MPI_Status status;
    OK(MPI_Comm_rank(comm, &me));
    OK(MPI_Comm_size(comm, &ours));
    OK(MPI_Comm_remote_size(comm, &theirs));
    MPI_Group remote, world;
    OK(MPI_Comm_remote_group(comm, &remote));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MPI_Request request;
    to = me < theirs ? me : theirs - 1;
    OK(MPI_Isend(&rank, 1, MPI_INT, to, 3, comm, &request));
    for (int from = 0; from < theirs; ++from) {
        if ((from < ours ? from : ours - 1) != me) continue;
        int translated;
        OK(MPI_Group_translate_ranks(remote, 1, &from, world, &translated));
        wanted += translated;
        OK(MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
        CHECK(status.MPI_SOURCE >= 0 && status.MPI_SOURCE < theirs, "source %d", status.MPI_SOURCE);
        OK(MPI_Group_translate_ranks(remote, 1, &status.MPI_SOURCE, world, &translated));
        SAME(got, translated);
        sum += got;
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(sum, wanted);
    OK(MPI_Group_free(&remote));
    OK(MPI_Group_free(&world));
}

static void inquiry(void) {
    int value = -1;
    MPI_Group ours, theirs, common;
    OK(MPI_Comm_test_inter(inter, &value));
    SAME(value, 1);
    OK(MPI_Comm_test_inter(group, &value));
    SAME(value, 0);
    OK(MPI_Comm_size(inter, &value));
    SAME(value, local_size);
    OK(MPI_Comm_rank(inter, &value));
    SAME(value, local_rank);
    OK(MPI_Comm_remote_size(inter, &value));
    SAME(value, remote_size);
    OK(MPI_Comm_group(inter, &ours));
    OK(MPI_Comm_remote_group(inter, &theirs));
    OK(MPI_Group_size(theirs, &value));
    SAME(value, remote_size);
    OK(MPI_Group_rank(theirs, &value));
    SAME(value, MPI_UNDEFINED);
    OK(MPI_Group_intersection(ours, theirs, &common));
    SAME(common == MPI_GROUP_EMPTY, 1);
    OK(MPI_Group_free(&ours));
    OK(MPI_Group_free(&theirs));
    compare(inter, inter, MPI_IDENT);
    compare(inter, group, MPI_UNEQUAL);
    OK(MPI_Topo_test(inter, &value));
    SAME(value, MPI_UNDEFINED);
    char name[MPI_MAX_OBJECT_NAME] = "?";
    OK(MPI_Comm_get_name(inter, name, &value));
    CHECK(name[0] == 0, "named %s", name);
    OK(MPI_Comm_set_name(inter, "between"));
    OK(MPI_Comm_get_name(inter, name, &value));
    CHECK(strcmp(name, "between") == 0 && value == 7, "named %s", name);
}

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *new_value, int *flag) {
    (void)comm, (void)key, (void)extra;
    ++copies;
    *(void **)new_value = (char *)value + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    ++deletions;
    return MPI_SUCCESS;
}

static void duplicates(void) {
    int key, flag, ranks[2] = {10, 0};
    void *value;
    MPI_Info info;
    MPI_Comm twins[4];
    MPI_Request requests[2];
    OK(MPI_Comm_create_keyval(copy, delete, &key, NULL));
    OK(MPI_Comm_set_attr(inter, key, &ranks[0]));
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_assert_no_any_source", "true"));
    OK(MPI_Comm_dup(inter, &twins[0]));
    OK(MPI_Comm_dup_with_info(inter, info, &twins[1]));
    OK(MPI_Comm_idup(inter, &twins[2], &requests[0]));
    OK(MPI_Comm_idup_with_info(inter, info, &twins[3], &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    SAME(copies, 4);
    for (int at = 0; at < 4; ++at) {
        compare(inter, twins[at], MPI_CONGRUENT);
        OK(MPI_Comm_get_attr(twins[at], key, &value, &flag));
        CHECK(flag && (char *)value == (char *)&ranks[0] + 1, "attribute of %d", at);
        MPI_Info used;
        char text[8] = "";
        int length = sizeof text;
        OK(MPI_Comm_get_info(twins[at], &used));
        OK(MPI_Info_get_string(used, "mpi_assert_no_any_source", &length, text, &flag));
        SAME(flag, at % 2);
        OK(MPI_Info_free(&used));
        if (at % 2 == 0) talk(twins[at]);
    }
    OK(MPI_Comm_free(&twins[0]));
    OK(MPI_Comm_disconnect(&twins[1]));
    OK(MPI_Comm_free(&twins[2]));
    OK(MPI_Comm_disconnect(&twins[3]));
    SAME(deletions, 4);
    OK(MPI_Comm_delete_attr(inter, key));
    OK(MPI_Comm_free_keyval(&key));
    OK(MPI_Info_free(&info));
}

static void parts(void) {
    MPI_Comm part;
    int value;
    /* Rank 0 of each group on one colour, the others on colours of their group alone. */
    OK(MPI_Comm_split(inter, local_rank == 0 ? 0 : 1 + is_first, 0, &part));
    CHECK((part != MPI_COMM_NULL) == (local_rank == 0), "a part of rank %d", local_rank);
    if (part != MPI_COMM_NULL) {
        OK(MPI_Comm_remote_size(part, &value));
        SAME(value, 1);
        talk(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_split(inter, 7, -rank, &part));
    OK(MPI_Comm_rank(part, &value));
    SAME(value, local_size - 1 - local_rank);
    compare(inter, part, local_size == 1 && remote_size == 1 ? MPI_CONGRUENT : MPI_SIMILAR);
    talk(part);
    OK(MPI_Comm_free(&part));
    MPI_Group ours, last;
    OK(MPI_Comm_group(inter, &ours));
    value = local_size - 1;
    OK(MPI_Group_incl(ours, 1, &value, &last));
    OK(MPI_Comm_create(inter, last, &part));
    CHECK((part != MPI_COMM_NULL) == (local_rank == value), "a part of rank %d", local_rank);
    if (part != MPI_COMM_NULL) {
        talk(part);
        OK(MPI_Comm_free(&part));
    }
    OK(MPI_Comm_create(inter, is_first ? MPI_GROUP_EMPTY : ours, &part));
    CHECK(part == MPI_COMM_NULL, "one group is empty");
    FAILS(MPI_Comm_create_group(inter, ours, 0, &part), MPI_ERR_COMM);
    OK(MPI_Group_free(&last));
    OK(MPI_Group_free(&ours));
}

/* The group that passes true comes last, and each group keeps its order. */
static void merges(void) {
    for (int high = 0; high < 2; ++high) {
        MPI_Comm merged;
        int place, all, inter_too = -1;
        OK(MPI_Intercomm_merge(inter, is_first == high, &merged));
        OK(MPI_Comm_test_inter(merged, &inter_too));
        SAME(inter_too, 0);
        OK(MPI_Comm_rank(merged, &place));
        OK(MPI_Comm_size(merged, &all));
        SAME(all, local_size + remote_size);
        SAME(place, local_rank + (is_first == high ? remote_size : 0));
        OK(MPI_Barrier(merged));
        OK(MPI_Comm_free(&merged));
    }
}

static void errors(void) {
    MPI_Comm made = MPI_COMM_SELF;
    MPI_Group none;
    MPI_Errhandler handler;
    int value, dims = 1, periods = 0;
    OK(MPI_Comm_get_errhandler(inter, &handler));
    SAME(handler == MPI_ERRORS_RETURN, 1);
    OK(MPI_Errhandler_free(&handler));
    FAILS(MPI_Comm_remote_size(MPI_COMM_WORLD, &value), MPI_ERR_COMM);
    FAILS(MPI_Comm_remote_group(group, &none), MPI_ERR_COMM);
    FAILS(MPI_Comm_test_inter(MPI_COMM_NULL, &value), MPI_ERR_COMM);
    FAILS(MPI_Intercomm_merge(group, 0, &made), MPI_ERR_COMM);
    CHECK(made == MPI_COMM_NULL, "a failed call leaves a communicator");
    FAILS(MPI_Intercomm_create(inter, 0, MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_COMM);
    FAILS(MPI_Cart_create(inter, 1, &dims, &periods, 0, &made), MPI_ERR_COMM);
    FAILS(MPI_Cart_map(inter, 1, &dims, &periods, &value), MPI_ERR_COMM);
    FAILS(MPI_Dist_graph_create_adjacent(inter, 0, &dims, &dims, 0, &dims, &dims, MPI_INFO_NULL, 0, &made), MPI_ERR_COMM);
    FAILS(MPI_Neighbor_allgather(&value, 1, MPI_INT, &dims, 1, MPI_INT, inter), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Send(&value, 1, MPI_INT, remote_size, 0, inter), MPI_ERR_RANK);
    FAILS(MPI_Recv(&value, 1, MPI_INT, remote_size, 0, inter, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    /* What the leader alone must get right fails on its whole group. */
    int is_leader = local_rank == local_size - 1, other = is_leader ? size : -17;
    FAILS(MPI_Intercomm_create(group, local_size - 1, MPI_COMM_WORLD, other, 0, &made), MPI_ERR_RANK);
    FAILS(MPI_Intercomm_create(group, local_size - 1, is_leader ? MPI_COMM_NULL : inter, 0, 0, &made), MPI_ERR_COMM);
    FAILS(MPI_Intercomm_create(group, local_size - 1, MPI_COMM_WORLD, 0, is_leader ? -1 : 0, &made), MPI_ERR_TAG);
    FAILS(MPI_Intercomm_create(group, local_size, MPI_COMM_WORLD, 0, 0, &made), MPI_ERR_RANK);
    FAILS(MPI_Intercomm_create(MPI_COMM_SELF, 0, MPI_COMM_SELF, 0, 0, &made), MPI_ERR_COMM);
}

/* Ranks wait for messages that nobody sends. */
static void deadlock(void) {
    int got;
    OK(MPI_Comm_set_name(inter, "between"));
    OK(MPI_Comm_set_errhandler(inter, MPI_ERRORS_ARE_FATAL));
    MPI_Recv(&got, 1, MPI_INT, is_first ? remote_size - 1 : MPI_ANY_SOURCE, 5, inter, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    int first = (size + 1) / 2;
    is_first = rank < first;
    OK(MPI_Comm_split(MPI_COMM_WORLD, is_first, 0, &group));
    OK(MPI_Comm_rank(group, &local_rank));
    OK(MPI_Comm_size(group, &local_size));
    remote_size = size - local_size;
    /* The leaders are the last rank of the first group and the first rank of the second. */
    int leader = is_first ? local_size - 1 : 0, other = is_first ? first : first - 1;
    OK(MPI_Intercomm_create(group, leader, MPI_COMM_WORLD, local_rank == leader ? other : -9, 11, &inter));
    if (argc > 1) {
        deadlock();
        return finish();
    }
    inquiry();
    talk(inter);
    duplicates();
    parts();
    merges();
    errors();
    OK(MPI_Comm_free(&inter));
    CHECK(inter == MPI_COMM_NULL, "after Comm_free");
    OK(MPI_Comm_free(&group));
    return finish();
}
