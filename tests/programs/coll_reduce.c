/* Reductions against a serial computation: Reduce, Allreduce, Scan, Exscan, Reduce_scatter and
 * Reduce_scatter_block, blocking and not, MPI_IN_PLACE or not, with a predefined operation, a user's
 * commutative one and a user's that is associative but not commutative. */
#include "check.h"

static MPI_Comm comm;
static int me, ranks, nonblocking;
static MPI_Datatype map_type;

#define BOTH(blocking_call, nonblocking_call, ...) \
    do { \
        if (nonblocking) { \
            MPI_Request request_; \
            OK(nonblocking_call(__VA_ARGS__, &request_)); \
            OK(MPI_Wait(&request_, MPI_STATUS_IGNORE)); \
        } else { \
            OK(blocking_call(__VA_ARGS__)); \
        } \
    } while (0)

/* A map x -> a x + b modulo a prime. Composing maps is associative and depends on their order. */
typedef struct { int a, b; } map;
enum { PRIME = 30011 };

static map compose(map first, map second) {
    return (map){(int)((long)first.a * second.a % PRIME),
                 (int)(((long)first.b * second.a + second.b) % PRIME)};
}

static void user_compose(void *in, void *inout, int *count, MPI_Datatype *type) {
    CHECK(*type == map_type, "the operation sees another datatype than the caller's");
    for (int i = 0; i < *count; i++)
        ((map *)inout)[i] = compose(((map *)in)[i], ((map *)inout)[i]);
}

static map add(map first, map second) {
    return (map){(first.a + second.a) % PRIME, (first.b + second.b) % PRIME};
}

static void user_add(void *in, void *inout, int *count, MPI_Datatype *type) {
    CHECK(*type == map_type, "the operation sees another datatype than the caller's");
    for (int i = 0; i < *count; i++) ((map *)inout)[i] = add(((map *)in)[i], ((map *)inout)[i]);
}

/* MPI_SUM of pairs of int, as twice the count of ints. */
static map sum(map first, map second) { return (map){first.a + second.a, first.b + second.b}; }

static map given(int r, int i) { return (map){(r * 31 + i * 7 + 2) % PRIME, (r * 17 + i + 5) % PRIME}; }

static map (*serial)(map, map);
static const char *name;

/* Element i reduced over ranks first..last. */
static map reduced(int first, int last, int i) {
    map value = given(first, i);
    for (int r = first + 1; r <= last; r++) value = serial(value, given(r, i));
    return value;
}

static void see(const char *what, const map *part, int last, int start, int count) {
    for (int i = 0; i < count; i++) {
        map wanted = reduced(0, last, start + i);
        if (part[i].a != wanted.a || part[i].b != wanted.b) {
            WRONG("%s%s by %s, %d ranks, count %d: element %d is (%d,%d), not (%d,%d)", what,
                  nonblocking ? " (nonblocking)" : "", name, ranks, count, i, part[i].a, part[i].b,
                  wanted.a, wanted.b);
            return;
        }
    }
}

/* In place, only the result is written: the buffer behind it stays unchanged. */
static void untouched(const char *what, const map *buffer, int from, int to) {
    for (int i = from; i < to; i++)
        if (buffer[i].a != given(me, i).a || buffer[i].b != given(me, i).b) {
            WRONG("%s%s in place, %d ranks: element %d behind the result of %d has changed", what,
                  nonblocking ? " (nonblocking)" : "", ranks, i, from);
            return;
        }
}

static void reductions(int count, int units, MPI_Datatype type, MPI_Op op) {
    int n = count * units, total = count * ranks;
    map *mine = allocate(sizeof(map) * (size_t)(total + ranks * ranks + 1));
    map *result = allocate(sizeof(map) * (size_t)(total + ranks * ranks + 1));
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < total + ranks * ranks; i++) mine[i] = given(me, i);
#define FROM (in_place ? memcpy(result, mine, sizeof(map) * (total + ranks * ranks)), MPI_IN_PLACE : (void *)mine)
        void *from;
        for (int root = 0; root < ranks; root++) {
            memset(result, 0xee, sizeof(map) * count);
            from = in_place && me == root ? FROM : mine;
            BOTH(MPI_Reduce, MPI_Ireduce, from, result, n, type, op, root, comm);
            if (me == root) see("Reduce", result, ranks - 1, 0, count);
        }
        from = FROM;
        BOTH(MPI_Allreduce, MPI_Iallreduce, from, result, n, type, op, comm);
        see("Allreduce", result, ranks - 1, 0, count);
        from = FROM;
        BOTH(MPI_Scan, MPI_Iscan, from, result, n, type, op, comm);
        see("Scan", result, me, 0, count);
        from = FROM;
        BOTH(MPI_Exscan, MPI_Iexscan, from, result, n, type, op, comm);
        if (me > 0) see("Exscan", result, me - 1, 0, count);
        from = FROM;
        BOTH(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, from, result, n, type, op, comm);
        see("Reduce_scatter_block", result, ranks - 1, me * count, count);
        if (in_place) untouched("Reduce_scatter_block", result, count, total);
        int counts[64], place = 0, own = 0;
        for (int r = 0; r < ranks; r++) {
            int part = r % 3 == 1 ? 0 : count + r % 2;
            if (r < me) place += part;
            if (r == me) own = part;
            counts[r] = part * units;
        }
        from = FROM;
        BOTH(MPI_Reduce_scatter, MPI_Ireduce_scatter, from, result, counts, type, op, comm);
        see("Reduce_scatter", result, ranks - 1, place, own);
        if (in_place) untouched("Reduce_scatter", result, own, total);
    }
    free(mine);
    free(result);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const int counts[] = {0, 1, 2, 3, 7, 64, 500, 3000, 9000};
    MPI_Comm turned;
    MPI_Op composing, adding;
    int commutes = -1;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned));
    OK(MPI_Type_contiguous(2, MPI_INT, &map_type));
    OK(MPI_Type_commit(&map_type));
    OK(MPI_Op_create(user_compose, 0, &composing));
    OK(MPI_Op_create(user_add, 1, &adding));
    OK(MPI_Op_commutative(composing, &commutes));
    SAME(commutes, 0);
    OK(MPI_Op_commutative(adding, &commutes));
    SAME(commutes, 1);
    for (int which = 0; which < 2; which++) {
        comm = which ? turned : MPI_COMM_WORLD;
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &ranks);
        for (nonblocking = 0; nonblocking < 2; nonblocking++) {
            for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
                if (which && counts[i] > 500) continue;
                serial = sum, name = "MPI_SUM";
                reductions(counts[i], 2, MPI_INT, MPI_SUM);
                serial = add, name = "a commutative user operation";
                reductions(counts[i], 1, map_type, adding);
                serial = compose, name = "a non-commutative user operation";
                reductions(counts[i], 1, map_type, composing);
            }
        }
    }
    OK(MPI_Op_free(&composing));
    OK(MPI_Op_free(&adding));
    CHECK(composing == MPI_OP_NULL, "after Op_free");
    OK(MPI_Type_free(&map_type));
    OK(MPI_Comm_free(&turned));
    return finish();
}
