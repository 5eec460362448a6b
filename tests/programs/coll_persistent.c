/* Persistent collectives: initialized once, started often, several at once and in different orders;
 * their data changes between starts. */
#include "check.h"

enum { ROUNDS = 20, EACH = 300, MOST = 8, KINDS = 17 };

static int counts[MOST], places[MOST], byte_places[MOST];
static MPI_Datatype types[MOST];
static int one[KINDS][EACH], all_out[KINDS][MOST * EACH], all_in[KINDS][MOST * EACH];
static MPI_Request requests[KINDS];

/* What rank `from` gives in a round for element i. */
static int value(int from, int round, int i) { return 1000 * from + 7 * round + i; }

static void initialize(int root) {
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Request *next = requests;
    OK(MPI_Barrier_init(world, MPI_INFO_NULL, next++));
    OK(MPI_Bcast_init(one[1], EACH, MPI_INT, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Gather_init(one[2], EACH, MPI_INT, all_in[2], EACH, MPI_INT, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Gatherv_init(one[3], counts[rank], MPI_INT, all_in[3], counts, places, MPI_INT, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Scatter_init(all_out[4], EACH, MPI_INT, one[4], EACH, MPI_INT, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Scatterv_init(all_out[5], counts, places, MPI_INT, one[5], counts[rank], MPI_INT, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Allgather_init(one[6], EACH, MPI_INT, all_in[6], EACH, MPI_INT, world, MPI_INFO_NULL, next++));
    OK(MPI_Allgatherv_init(one[7], counts[rank], MPI_INT, all_in[7], counts, places, MPI_INT, world, MPI_INFO_NULL, next++));
    OK(MPI_Alltoall_init(all_out[8], EACH, MPI_INT, all_in[8], EACH, MPI_INT, world, MPI_INFO_NULL, next++));
    int same[MOST];
    for (int i = 0; i < size; i++) same[i] = EACH;
    int even[MOST];
    for (int i = 0; i < size; i++) even[i] = i * EACH;
    OK(MPI_Alltoallv_init(all_out[9], same, even, MPI_INT, all_in[9], same, even, MPI_INT, world, MPI_INFO_NULL, next++));
    OK(MPI_Alltoallw_init(all_out[10], same, byte_places, types, all_in[10], same, byte_places, types, world, MPI_INFO_NULL, next++));
    OK(MPI_Reduce_init(one[11], all_in[11], EACH, MPI_INT, MPI_SUM, root, world, MPI_INFO_NULL, next++));
    OK(MPI_Allreduce_init(one[12], all_in[12], EACH, MPI_INT, MPI_MAX, world, MPI_INFO_NULL, next++));
    OK(MPI_Reduce_scatter_init(all_out[13], all_in[13], counts, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, next++));
    OK(MPI_Reduce_scatter_block_init(all_out[14], all_in[14], EACH, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, next++));
    OK(MPI_Scan_init(one[15], all_in[15], EACH, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, next++));
    OK(MPI_Exscan_init(one[16], all_in[16], EACH, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, next++));
    /* The arrays were read by the calls. */
    memset(same, 0xff, sizeof same);
    memset(even, 0xff, sizeof even);
}

static void give(int round) {
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < EACH; i++) one[kind][i] = value(rank, round, i);
        for (int i = 0; i < size * EACH; i++) all_out[kind][i] = value(rank, round, i);
        memset(all_in[kind], 0xff, sizeof all_in[kind]);
    }
}

static void expect(int kind, int round, const int *seen, int from, int first, int n) {
    for (int i = 0; i < n; i++)
        if (seen[i] != value(from, round, first + i)) {
            WRONG("kind %d, round %d: element %d from %d is %d, not %d", kind, round, i, from, seen[i],
                  value(from, round, first + i));
            return;
        }
}

/* A sum of what the ranks `from` to `to` - 1 gave. */
static void expect_sum(int kind, int round, const int *seen, int from, int to, int first, int n) {
    for (int i = 0; i < n; i++) {
        int sum = 0;
        for (int r = from; r < to; r++) sum += value(r, round, first + i);
        if (seen[i] != sum) {
            WRONG("kind %d, round %d: element %d is %d, not %d", kind, round, i, seen[i], sum);
            return;
        }
    }
}

static void check(int round, int root) {
    expect(1, round, one[1], root, 0, EACH);
    for (int r = 0; r < size; r++) {
        if (rank == root) {
            expect(2, round, all_in[2] + r * EACH, r, 0, EACH);
            expect(3, round, all_in[3] + places[r], r, 0, counts[r]);
        }
        expect(6, round, all_in[6] + r * EACH, r, 0, EACH);
        expect(7, round, all_in[7] + places[r], r, 0, counts[r]);
        for (int kind = 8; kind <= 10; kind++)
            expect(kind, round, all_in[kind] + r * EACH, r, rank * EACH, EACH);
    }
    expect(4, round, one[4], root, rank * EACH, EACH);
    expect(5, round, one[5], root, places[rank], counts[rank]);
    if (rank == root) expect_sum(11, round, all_in[11], 0, size, 0, EACH);
    expect(12, round, all_in[12], size - 1, 0, EACH);
    expect_sum(13, round, all_in[13], 0, size, places[rank], counts[rank]);
    expect_sum(14, round, all_in[14], 0, size, rank * EACH, EACH);
    expect_sum(15, round, all_in[15], 0, rank + 1, 0, EACH);
    if (rank > 0) expect_sum(16, round, all_in[16], 0, rank, 0, EACH);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int r = 0, at = 0; r < size; at += counts[r], r++) {
        counts[r] = 20 * r + 1;
        places[r] = at;
        byte_places[r] = r * EACH * (int)sizeof(int);
        types[r] = MPI_INT;
    }
    int root = size - 1;
    initialize(root);
    for (int round = 0; round < ROUNDS; round++) {
        give(round);
        /* Initialization was in one order; starts are in different ones. */
        if (round % 3 == 0) {
            OK(MPI_Startall(KINDS, requests));
        } else {
            for (int i = 0; i < KINDS; i++) {
                int kind = (rank + round) % 2 ? i : KINDS - 1 - i;
                OK(MPI_Start(&requests[kind]));
            }
        }
        if (round % 2) {
            OK(MPI_Waitall(KINDS, requests, MPI_STATUSES_IGNORE));
        } else {
            for (int i = 0; i < KINDS; i++) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        }
        check(round, root);
        /* Others overtake them between starts. */
        int sum = 0;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        SAME(sum, size * (size - 1) / 2);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Request request;
    FAILS(MPI_Bcast_init(one[0], 1, MPI_INT, size, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_ROOT);
    for (int i = 0; i < KINDS; i++) {
        OK(MPI_Request_free(&requests[i]));
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d was not freed", i);
    }
    return finish();
}
