/* Long vectors of collectives between ranks of one host: blocking, nonblocking and persistent, in place and not,
 * in memory from mmap and on the stack. */
#include "check.h"
#include <sys/mman.h>

enum { MOST = 8, FORMS = 3, ON_STACK = 20000 };

static const MPI_Comm *comm;
static int form, me, members, *ours, *theirs;

/* A collective in the form of this turn. A persistent one is started twice. */
#define CALL(NAME, NONBLOCKING, ...)                                             \
    do {                                                                         \
        MPI_Request request;                                                     \
        if (form == 0) {                                                         \
            OK(MPI_##NAME(__VA_ARGS__, *comm));                                  \
        } else if (form == 1) {                                                  \
            OK(MPI_##NONBLOCKING(__VA_ARGS__, *comm, &request));                 \
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                           \
        } else {                                                                 \
            OK(MPI_##NAME##_init(__VA_ARGS__, *comm, MPI_INFO_NULL, &request));  \
            OK(MPI_Start(&request));                                             \
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));                           \
            OK(MPI_Request_free(&request));                                      \
        }                                                                        \
    } while (0)

/* Element i of the block that a rank gives to another. */
static int value(int from, int to, int i) { return 100003 * from + 1009 * to + 7 * i; }

/* Element i of the sum over all ranks of their blocks for one. */
static int sum(int to, int i) {
    int all = 0;
    for (int from = 0; from < members; from++) all += value(from, to, i);
    return all;
}

static void give(int *to, int receiver, int n) {
    for (int i = 0; i < n; i++) to[i] = value(me, receiver, i);
}

static void expect(const char *what, const int *seen, int from, int to, int n) {
    for (int i = 0; i < n; i++) {
        int wanted = from < 0 ? sum(to, i) : value(from, to, i);
        if (seen[i] == wanted) continue;
        WRONG("%s of %d integers, form %d, %d members: element %d from %d is %d, not %d", what, n, form, members, i, from,
              seen[i], wanted);
        return;
    }
}

static void clear(int n) { memset(theirs, 0xff, sizeof(int) * (size_t)n); }

static void to_and_from_one(int root, int n) {
    for (int in_place = 0; in_place < 2; in_place++) {
        int here = in_place && me == root;
        clear(members * n);
        give(me == root ? theirs : ours, 0, n);
        int *message = me == root ? theirs : ours;
        if (me != root) memset(ours, 0xff, sizeof(int) * (size_t)n);
        CALL(Bcast, Ibcast, message, n, MPI_INT, root);
        expect("bcast", message, root, 0, n);

        clear(members * n);
        give(here ? theirs + root * n : ours, 1, n);
        CALL(Gather, Igather, here ? MPI_IN_PLACE : ours, n, MPI_INT, theirs, n, MPI_INT, root);
        for (int from = 0; me == root && from < members; from++) expect("gather", theirs + from * n, from, 1, n);

        clear(n);
        for (int to = 0; me == root && to < members; to++) give(ours + to * n, to, n);
        CALL(Scatter, Iscatter, ours, n, MPI_INT, here ? MPI_IN_PLACE : theirs, n, MPI_INT, root);
        if (!here) expect("scatter", theirs, root, me, n);

        clear(n);
        give(here ? theirs : ours, 2, n);
        CALL(Reduce, Ireduce, here ? MPI_IN_PLACE : ours, theirs, n, MPI_INT, MPI_SUM, root);
        if (me == root) expect("reduce", theirs, -1, 2, n);
    }
}

static void all_to_all(int n) {
    int counts[MOST];
    for (int i = 0; i < members; i++) counts[i] = i % 3 == 1 ? 0 : n / (1 + i);
    for (int in_place = 0; in_place < 2; in_place++) {
        clear(members * n);
        give(in_place ? theirs + me * n : ours, 3, n);
        CALL(Allgather, Iallgather, in_place ? MPI_IN_PLACE : ours, n, MPI_INT, theirs, n, MPI_INT);
        for (int from = 0; from < members; from++) expect("allgather", theirs + from * n, from, 3, n);

        clear(members * n);
        for (int to = 0; to < members; to++) give((in_place ? theirs : ours) + to * n, to, n);
        CALL(Alltoall, Ialltoall, in_place ? MPI_IN_PLACE : ours, n, MPI_INT, theirs, n, MPI_INT);
        for (int from = 0; from < members; from++) expect("alltoall", theirs + from * n, from, me, n);

        clear(n);
        give(in_place ? theirs : ours, 4, n);
        CALL(Allreduce, Iallreduce, in_place ? MPI_IN_PLACE : ours, theirs, n, MPI_INT, MPI_SUM);
        expect("allreduce", theirs, -1, 4, n);

        clear(members * n);
        for (int to = 0; to < members; to++) give((in_place ? theirs : ours) + to * n, to, n);
        CALL(Reduce_scatter_block, Ireduce_scatter_block, in_place ? MPI_IN_PLACE : ours, theirs, n, MPI_INT, MPI_SUM);
        expect("reduce_scatter_block", theirs, -1, me, n);

        clear(members * n);
        int *at = in_place ? theirs : ours;
        for (int to = 0; to < members; at += counts[to++]) give(at, to, counts[to]);
        CALL(Reduce_scatter, Ireduce_scatter, in_place ? MPI_IN_PLACE : ours, theirs, counts, MPI_INT, MPI_SUM);
        expect("reduce_scatter", theirs, -1, me, counts[me]);
    }
}

static void all_forms(int n) {
    for (form = 0; form < FORMS; form++) {
        to_and_from_one(n % members, n);
        all_to_all(n);
        OK(MPI_Barrier(*comm));
    }
}

static void on_the_stack(void) {
    int first[ON_STACK], second[ON_STACK];
    int *mapped[] = {ours, theirs};
    ours = first;
    theirs = second;
    all_forms(ON_STACK / members);
    ours = mapped[0];
    theirs = mapped[1];
}

static void on(const MPI_Comm *group) {
    comm = group;
    MPI_Comm_rank(*comm, &me);
    MPI_Comm_size(*comm, &members);
    /* The ranks agree on shared buffers after a few calls. */
    for (int i = 0; i < 5; i++) OK(MPI_Barrier(*comm));
    static const int sizes[] = {1, 2048, 33333, 70001};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) all_forms(sizes[i]);
    on_the_stack();
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (size > MOST) return 2;
    size_t bytes = sizeof(int) * MOST * 70001;
    ours = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    theirs = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ours == MAP_FAILED || theirs == MAP_FAILED) return 2;
    MPI_Comm world = MPI_COMM_WORLD, reversed;
    on(&world);
    if (size > 2) {
        OK(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &reversed));
        on(&reversed);
        OK(MPI_Comm_free(&reversed));
    }
    return finish();
}
