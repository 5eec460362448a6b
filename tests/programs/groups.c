/* Groups: sets with an order. Every operation of MPI 7.3. */
#include "check.h"

/* The ranks that a group holds, as ranks of the world's group. */
static void holds(const char *what, MPI_Group group, int count, const int *wanted) {
    MPI_Group world;
    int n = -1, seen[64], own[64];
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_size(group, &n));
    CHECK(n == count, "%s: size %d, not %d", what, n, count);
    for (int i = 0; i < n; i++) own[i] = i;
    OK(MPI_Group_translate_ranks(group, n, own, world, seen));
    for (int i = 0; i < count && i < n; i++)
        CHECK(seen[i] == wanted[i], "%s: member %d is %d, not %d", what, i, seen[i], wanted[i]);
    int me = -1, position = MPI_UNDEFINED;
    for (int i = 0; i < count; i++)
        if (wanted[i] == rank) position = i;
    OK(MPI_Group_rank(group, &me));
    CHECK(me == position, "%s: own rank %d, not %d", what, me, position);
    OK(MPI_Group_free(&world));
}

static void compare(MPI_Group a, MPI_Group b, int wanted) {
    int result = -1;
    OK(MPI_Group_compare(a, b, &result));
    SAME(result, wanted);
}

int main(int argc, char **argv) { /* on 6 ranks */
    start(&argc, &argv);
    MPI_Group world, a, b, c, empty;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    holds("world", world, 6, (int[]){0, 1, 2, 3, 4, 5});

    OK(MPI_Group_incl(world, 3, (int[]){4, 1, 2}, &a));
    holds("incl", a, 3, (int[]){4, 1, 2});
    OK(MPI_Group_excl(world, 3, (int[]){4, 1, 2}, &b));
    holds("excl", b, 3, (int[]){0, 3, 5});
    OK(MPI_Group_free(&b));
    CHECK(b == MPI_GROUP_NULL, "after Group_free");

    OK(MPI_Group_incl(world, 3, (int[]){2, 5, 4}, &b));
    OK(MPI_Group_union(a, b, &c));
    holds("union", c, 4, (int[]){4, 1, 2, 5});
    OK(MPI_Group_free(&c));
    OK(MPI_Group_intersection(a, b, &c));
    holds("intersection", c, 2, (int[]){4, 2});
    OK(MPI_Group_free(&c));
    OK(MPI_Group_difference(a, b, &c));
    holds("difference", c, 1, (int[]){1});
    OK(MPI_Group_free(&c));

    int ranges[2][3] = {{5, 1, -2}, {0, 0, 1}};
    OK(MPI_Group_range_incl(world, 2, ranges, &c));
    holds("range_incl", c, 4, (int[]){5, 3, 1, 0});
    OK(MPI_Group_free(&c));
    OK(MPI_Group_range_excl(world, 2, ranges, &c));
    holds("range_excl", c, 2, (int[]){2, 4});
    OK(MPI_Group_free(&c));

    compare(a, a, MPI_IDENT);
    OK(MPI_Group_incl(world, 3, (int[]){1, 2, 4}, &c));
    compare(a, c, MPI_SIMILAR);
    compare(a, b, MPI_UNEQUAL);
    OK(MPI_Group_free(&c));
    OK(MPI_Group_incl(world, 0, NULL, &empty));
    compare(empty, MPI_GROUP_EMPTY, MPI_IDENT);
    holds("empty", MPI_GROUP_EMPTY, 0, NULL);
    OK(MPI_Group_difference(a, a, &c));
    compare(c, MPI_GROUP_EMPTY, MPI_IDENT);
    if (c != MPI_GROUP_EMPTY) OK(MPI_Group_free(&c));
    if (empty != MPI_GROUP_EMPTY) OK(MPI_Group_free(&empty));

    int asked[] = {0, 1, MPI_PROC_NULL, 2}, answers[4];
    OK(MPI_Group_translate_ranks(a, 4, asked, b, answers));
    SAME(answers[0], 2);
    SAME(answers[1], MPI_UNDEFINED);
    SAME(answers[2], MPI_PROC_NULL);
    SAME(answers[3], 0);

    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_Group_incl(world, 1, (int[]){6}, &c), MPI_ERR_RANK);
    OK(MPI_Group_free(&a));
    OK(MPI_Group_free(&b));
    OK(MPI_Group_free(&world));
    return finish();
}
