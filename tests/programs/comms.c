/* Communicators: dup, idup, split, split_type, create, create_group, compare, names; that messages
 * stay within theirs, and that many can be made and freed. */
#include "check.h"

static void compare(MPI_Comm a, MPI_Comm b, int wanted) {
    int result = -1;
    OK(MPI_Comm_compare(a, b, &result));
    SAME(result, wanted);
}

/* The sum of the members' world ranks, by a collective on the communicator. */
static int members(MPI_Comm comm) {
    int sum = -1;
    OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm));
    return sum;
}

static int on_one_host(void) {
    char own[MPI_MAX_PROCESSOR_NAME] = "", first[MPI_MAX_PROCESSOR_NAME];
    int length, same, all;
    OK(MPI_Get_processor_name(own, &length));
    memcpy(first, own, sizeof own);
    OK(MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD));
    same = strcmp(own, first) == 0;
    OK(MPI_Allreduce(&same, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD));
    return all;
}

static void copies(void) {
    MPI_Comm twin, other, nonblocking;
    MPI_Request request;
    int inter = -1;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    compare(twin, MPI_COMM_WORLD, MPI_CONGRUENT);
    compare(twin, twin, MPI_IDENT);
    OK(MPI_Comm_dup_with_info(twin, MPI_INFO_NULL, &other));
    OK(MPI_Comm_idup(twin, &nonblocking, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    compare(nonblocking, other, MPI_CONGRUENT);
    OK(MPI_Comm_test_inter(twin, &inter));
    SAME(inter, 0);
    /* The same tag and peer on two communicators: each message is heard on its own. */
    int a = 1, b = 2, right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Request sends[2];
    OK(MPI_Isend(&a, 1, MPI_INT, right, 0, twin, &sends[0]));
    OK(MPI_Isend(&b, 1, MPI_INT, right, 0, other, &sends[1]));
    int from_other = 0, from_twin = 0;
    OK(MPI_Recv(&from_other, 1, MPI_INT, left, MPI_ANY_TAG, other, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&from_twin, 1, MPI_INT, MPI_ANY_SOURCE, 0, twin, MPI_STATUS_IGNORE));
    OK(MPI_Waitall(2, sends, MPI_STATUSES_IGNORE));
    CHECK(from_other == 2 && from_twin == 1, "messages changed communicators");
    OK(MPI_Comm_free(&other));
    OK(MPI_Comm_free(&nonblocking));
    /* Freed while a receive is pending: it still completes. */
    MPI_Comm kept = twin;
    int got = -1;
    OK(MPI_Irecv(&got, 1, MPI_INT, left, 5, kept, &request));
    OK(MPI_Isend(&rank, 1, MPI_INT, right, 5, kept, &sends[0]));
    OK(MPI_Comm_free(&twin));
    CHECK(twin == MPI_COMM_NULL, "after Comm_free");
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&sends[0], MPI_STATUS_IGNORE));
    SAME(got, left);
}

static void splits(void) {
    MPI_Comm half, none, shared;
    int me = -1, ranks = -1, sum = 0, order = 0;
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half));
    OK(MPI_Comm_rank(half, &me));
    OK(MPI_Comm_size(half, &ranks));
    for (int r = rank % 2; r < size; r += 2) {
        sum += r;
        order += r > rank; /* turned round: the larger ones come first */
    }
    SAME(me, order);
    SAME(ranks, (size + 1 - rank % 2) / 2);
    SAME(members(half), sum);
    if (size > 1) compare(half, MPI_COMM_WORLD, MPI_UNEQUAL);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 3, 0, &none));
    CHECK((none == MPI_COMM_NULL) == (rank == 0), "who has MPI_UNDEFINED gets no communicator");
    if (rank) {
        SAME(members(none), size * (size - 1) / 2);
        OK(MPI_Comm_rank(none, &me));
        SAME(me, rank - 1); /* equal keys keep the order */
        OK(MPI_Comm_free(&none));
    }
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared));
    compare(shared, MPI_COMM_WORLD, on_one_host() ? MPI_CONGRUENT : MPI_UNEQUAL);
    OK(MPI_Comm_free(&shared));
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, 0, MPI_INFO_NULL, &shared));
    CHECK(shared == MPI_COMM_NULL, "split_type by MPI_UNDEFINED");
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &half));
    compare(half, MPI_COMM_WORLD, size > 1 ? MPI_SIMILAR : MPI_CONGRUENT);
    OK(MPI_Comm_free(&half));
}

static void from_groups(void) {
    MPI_Group world, some, back;
    MPI_Comm comm;
    int list[64], n = 0, result = -1;
    for (int r = size - 1; r >= 0; r -= 2) list[n++] = r;
    int inside = (size - 1 - rank) % 2 == 0;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_incl(world, n, list, &some));
    OK(MPI_Comm_create(MPI_COMM_WORLD, some, &comm));
    CHECK((comm != MPI_COMM_NULL) == inside, "Comm_create gave a communicator to the wrong ranks");
    for (int way = 0; way < 2; way++) {
        if (inside) {
            OK(MPI_Comm_group(comm, &back));
            OK(MPI_Group_compare(back, some, &result));
            SAME(result, MPI_IDENT);
            OK(MPI_Group_free(&back));
            int sum = 0;
            for (int i = 0; i < n; i++) sum += list[i];
            SAME(members(comm), sum);
            OK(MPI_Comm_free(&comm));
            /* Only the members call this one. */
            if (way == 0) OK(MPI_Comm_create_group(MPI_COMM_WORLD, some, 7, &comm));
        }
    }
    OK(MPI_Group_free(&some));
    OK(MPI_Group_free(&world));
}

static void names(void) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = -1;
    MPI_Comm twin;
    OK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length));
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && length == 14, "'%s', %d", name, length);
    OK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length));
    CHECK(strcmp(name, "MPI_COMM_SELF") == 0, "'%s'", name);
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &twin));
    OK(MPI_Comm_get_name(twin, name, &length));
    CHECK(length == 0 && name[0] == 0, "a duplicate is named '%s'", name);
    OK(MPI_Comm_set_name(twin, "twin"));
    OK(MPI_Comm_get_name(twin, name, &length));
    CHECK(strcmp(name, "twin") == 0 && length == 4, "'%s'", name);
    OK(MPI_Comm_free(&twin));
}

/* Contexts are given back: far more communicators in all than could live at once. */
static void many(void) {
    for (int i = 0; i < 3000; i++) {
        MPI_Comm comm;
        OK(MPI_Comm_split(MPI_COMM_WORLD, i % 2 ? 0 : rank % 2, 0, &comm));
        OK(MPI_Comm_free(&comm));
        if (failures) return;
    }
    MPI_Comm alive[100];
    for (int i = 0; i < 100; i++) OK(MPI_Comm_dup(i ? alive[i - 1] : MPI_COMM_WORLD, &alive[i]));
    for (int i = 0; i < 100; i++) SAME(members(alive[i]), size * (size - 1) / 2);
    for (int i = 0; i < 100; i++) OK(MPI_Comm_free(&alive[i]));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    copies();
    splits();
    from_groups();
    names();
    many();
    return finish();
}
