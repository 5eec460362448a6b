/* Collectives that move data, blocking and nonblocking, MPI_IN_PLACE or not, every root, many
 * counts, on the world and on a communicator with its ranks turned round. */
#include "check.h"

static MPI_Comm comm;
static int me, ranks, nonblocking;

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

/* Element i that rank `from` has for rank `to`. */
static int element(int from, int to, int i) { return from * 1000003 + to * 10007 + i * 3 + 1; }

static void set(int *part, int from, int to, int count) {
    for (int i = 0; i < count; i++) part[i] = element(from, to, i);
}

static void see(const char *what, const int *part, int from, int to, int count) {
    for (int i = 0; i < count; i++)
        if (part[i] != element(from, to, i)) {
            WRONG("%s%s, %d ranks, count %d: part of %d for %d differs at %d", what,
                  nonblocking ? " (nonblocking)" : "", ranks, count, from, to, i);
            return;
        }
}

static void regular(int count) {
    int *one = allocate(sizeof(int) * (count + 1));
    int *all = allocate(sizeof(int) * (size_t)(count * ranks + 1));
    int *more = allocate(sizeof(int) * (size_t)(count * ranks + 1));
    for (int root = 0; root < ranks; root++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            set(one, me == root ? root : 99, 0, count);
            BOTH(MPI_Bcast, MPI_Ibcast, one, count, MPI_INT, root, comm);
            see("Bcast", one, root, 0, count);

            memset(all, 0xee, sizeof(int) * count * ranks);
            set(one, me, root, count);
            if (in_place && me == root) {
                set(all + me * count, me, root, count);
                BOTH(MPI_Gather, MPI_Igather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count,
                     MPI_INT, root, comm);
            } else {
                BOTH(MPI_Gather, MPI_Igather, one, count, MPI_INT, all, count, MPI_INT, root, comm);
            }
            for (int r = 0; r < ranks && me == root; r++)
                see("Gather", all + r * count, r, root, count);

            for (int r = 0; r < ranks; r++) set(all + r * count, root, r, count);
            memset(one, 0xee, sizeof(int) * count);
            if (in_place && me == root) {
                BOTH(MPI_Scatter, MPI_Iscatter, all, count, MPI_INT, MPI_IN_PLACE, 0,
                     MPI_DATATYPE_NULL, root, comm);
                see("Scatter", all + me * count, root, me, count);
            } else {
                BOTH(MPI_Scatter, MPI_Iscatter, all, count, MPI_INT, one, count, MPI_INT, root, comm);
                see("Scatter", one, root, me, count);
            }
        }
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        memset(all, 0xee, sizeof(int) * count * ranks);
        set(one, me, 5, count);
        set(all + me * count, me, 5, count);
        if (in_place)
            BOTH(MPI_Allgather, MPI_Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count,
                 MPI_INT, comm);
        else
            BOTH(MPI_Allgather, MPI_Iallgather, one, count, MPI_INT, all, count, MPI_INT, comm);
        for (int r = 0; r < ranks; r++) see("Allgather", all + r * count, r, 5, count);

        for (int r = 0; r < ranks; r++) set(all + r * count, me, r, count);
        if (in_place)
            BOTH(MPI_Alltoall, MPI_Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count,
                 MPI_INT, comm);
        else
            BOTH(MPI_Alltoall, MPI_Ialltoall, all, count, MPI_INT, more, count, MPI_INT, comm);
        for (int r = 0; r < ranks; r++)
            see("Alltoall", (in_place ? all : more) + r * count, r, me, count);
    }
    free(one);
    free(all);
    free(more);
}

/* Counts that differ, some zero; parts lie backwards with a gap of one element between. */
static int part_count(int r, int count) { return r % 3 == 1 ? 0 : count + r; }

static void irregular(int count) {
    enum { GUARD = 0x77777777 };
    int room = (count + ranks + 1) * ranks + 1;
    int *one = allocate(sizeof(int) * (count + ranks)), *all = allocate(sizeof(int) * room);
    int counts[64], places[64], place = 0;
    for (int r = ranks - 1; r >= 0; r--) {
        counts[r] = part_count(r, count);
        places[r] = place;
        place += counts[r] + 1;
    }
    for (int root = 0; root < ranks; root++) {
        for (int in_place = 0; in_place < 2; in_place++) {
            for (int i = 0; i < room; i++) all[i] = GUARD;
            set(one, me, root, counts[me]);
            if (in_place && me == root) {
                set(all + places[me], me, root, counts[me]);
                BOTH(MPI_Gatherv, MPI_Igatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts,
                     places, MPI_INT, root, comm);
            } else {
                BOTH(MPI_Gatherv, MPI_Igatherv, one, counts[me], MPI_INT, all, counts, places,
                     MPI_INT, root, comm);
            }
            for (int r = 0; r < ranks && me == root; r++) {
                see("Gatherv", all + places[r], r, root, counts[r]);
                SAME(all[places[r] + counts[r]], GUARD);
            }
            for (int r = 0; r < ranks; r++) set(all + places[r], root, r, counts[r]);
            if (in_place && me == root) {
                BOTH(MPI_Scatterv, MPI_Iscatterv, all, counts, places, MPI_INT, MPI_IN_PLACE, 0,
                     MPI_DATATYPE_NULL, root, comm);
            } else {
                BOTH(MPI_Scatterv, MPI_Iscatterv, all, counts, places, MPI_INT, one, counts[me],
                     MPI_INT, root, comm);
                see("Scatterv", one, root, me, counts[me]);
            }
        }
    }
    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < room; i++) all[i] = GUARD;
        set(one, me, 6, counts[me]);
        set(all + places[me], me, 6, counts[me]);
        if (in_place)
            BOTH(MPI_Allgatherv, MPI_Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts,
                 places, MPI_INT, comm);
        else
            BOTH(MPI_Allgatherv, MPI_Iallgatherv, one, counts[me], MPI_INT, all, counts, places,
                 MPI_INT, comm);
        for (int r = 0; r < ranks; r++) {
            see("Allgatherv", all + places[r], r, 6, counts[r]);
            SAME(all[places[r] + counts[r]], GUARD);
        }
    }
    free(one);
    free(all);
}

/* Alltoallv and Alltoallw: what a pair exchanges depends on both; w gives bytes and a type each. */
static void exchange(int count) {
    int sent[64], received[64], from[64], to[64], byte_from[64], byte_to[64];
    MPI_Datatype types[64];
    int out_room = 0, in_room = 0;
    for (int r = 0; r < ranks; r++) {
        sent[r] = (me + r) % 4 == 3 ? 0 : count + (me + r) % 3;
        received[r] = sent[r]; /* the rule is symmetric, as MPI_IN_PLACE needs */
        from[r] = out_room;
        to[r] = in_room;
        byte_from[r] = from[r] * 4;
        byte_to[r] = to[r] * 4;
        out_room += sent[r] + 1;
        in_room += received[r] + 2;
    }
    int *out = allocate(sizeof(int) * out_room), *in = allocate(sizeof(int) * in_room);
    for (int form = 0; form < 4; form++) {
        memset(in, 0xee, sizeof(int) * in_room);
        for (int r = 0; r < ranks; r++) {
            set(out + from[r], me, r, sent[r]);
            if (form % 2) set(in + to[r], me, r, sent[r]);
            types[r] = MPI_INT;
        }
        if (form == 0)
            BOTH(MPI_Alltoallv, MPI_Ialltoallv, out, sent, from, MPI_INT, in, received, to, MPI_INT,
                 comm);
        else if (form == 1)
            BOTH(MPI_Alltoallv, MPI_Ialltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, in,
                 received, to, MPI_INT, comm);
        else if (form == 2)
            BOTH(MPI_Alltoallw, MPI_Ialltoallw, out, sent, byte_from, types, in, received, byte_to,
                 types, comm);
        else
            BOTH(MPI_Alltoallw, MPI_Ialltoallw, MPI_IN_PLACE, NULL, NULL, NULL, in, received,
                 byte_to, types, comm);
        for (int r = 0; r < ranks; r++)
            see(form < 2 ? "Alltoallv" : "Alltoallw", in + to[r], r, me, received[r]);
    }
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const int counts[] = {0, 1, 2, 3, 8, 33, 100, 1000, 4097, 30000};
    MPI_Comm turned;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned));
    for (int which = 0; which < 2; which++) {
        comm = which ? turned : MPI_COMM_WORLD;
        MPI_Comm_rank(comm, &me);
        MPI_Comm_size(comm, &ranks);
        for (nonblocking = 0; nonblocking < 2; nonblocking++) {
            BOTH(MPI_Barrier, MPI_Ibarrier, comm);
            for (unsigned i = 0; i < sizeof counts / sizeof *counts; i++) {
                if (which && counts[i] > 1000) continue;
                regular(counts[i]);
                irregular(counts[i]);
                exchange(counts[i]);
            }
        }
    }
    OK(MPI_Comm_free(&turned));
    return finish();
}
