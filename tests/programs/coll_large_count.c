/* The large-count forms of the collectives: counts are MPI_Count, displacements MPI_Aint. */
#include "check.h"

enum { COUNT = 300, MOST = 16 };
static int one[COUNT], all[COUNT * MOST], more[COUNT * MOST];
static MPI_Count counts[MOST];
static MPI_Aint places[MOST], byte_places[MOST];
static MPI_Datatype types[MOST];

static int element(int from, int to, int i) { return from * 100000 + to * 1000 + i; }

static void set(int *part, int from, int to) {
    for (int i = 0; i < COUNT; i++) part[i] = element(from, to, i);
}

static void see(const char *what, const int *part, int from, int to) {
    for (int i = 0; i < COUNT; i++)
        if (part[i] != element(from, to, i)) {
            WRONG("%s: part of %d for %d differs at %d: %d", what, from, to, i, part[i]);
            return;
        }
}

static void wait(MPI_Request *request) { OK(MPI_Wait(request, MPI_STATUS_IGNORE)); }

/* Every rank's part is in `all`, made for rank `to`. */
static void see_all(const char *what, int to) {
    for (int r = 0; r < size; r++) see(what, all + r * COUNT, r, to);
    memset(all, 0xee, sizeof all);
}

static void gathering(MPI_Comm comm) {
    MPI_Request request;
    set(one, rank, 0);
    OK(MPI_Gather_c(one, COUNT, MPI_INT, all, COUNT, MPI_INT, 0, comm));
    if (rank == 0) see_all("Gather_c", 0);
    OK(MPI_Igather_c(one, COUNT, MPI_INT, all, COUNT, MPI_INT, 0, comm, &request));
    wait(&request);
    if (rank == 0) see_all("Igather_c", 0);
    OK(MPI_Gatherv_c(one, COUNT, MPI_INT, all, counts, places, MPI_INT, 0, comm));
    if (rank == 0) see_all("Gatherv_c", 0);
    OK(MPI_Igatherv_c(one, COUNT, MPI_INT, all, counts, places, MPI_INT, 0, comm, &request));
    wait(&request);
    if (rank == 0) see_all("Igatherv_c", 0);
    OK(MPI_Allgather_c(one, COUNT, MPI_INT, all, COUNT, MPI_INT, comm));
    see_all("Allgather_c", 0);
    OK(MPI_Iallgather_c(one, COUNT, MPI_INT, all, COUNT, MPI_INT, comm, &request));
    wait(&request);
    see_all("Iallgather_c", 0);
    OK(MPI_Allgatherv_c(one, COUNT, MPI_INT, all, counts, places, MPI_INT, comm));
    see_all("Allgatherv_c", 0);
    OK(MPI_Iallgatherv_c(one, COUNT, MPI_INT, all, counts, places, MPI_INT, comm, &request));
    wait(&request);
    see_all("Iallgatherv_c", 0);
}

static void scattering(MPI_Comm comm) {
    MPI_Request request;
    for (int way = 0; way < 6; way++) {
        for (int r = 0; r < size; r++) set(all + r * COUNT, 0, r);
        memset(one, 0xee, sizeof one);
        request = MPI_REQUEST_NULL;
        switch (way) {
        case 0: OK(MPI_Scatter_c(all, COUNT, MPI_INT, one, COUNT, MPI_INT, 0, comm)); break;
        case 1: OK(MPI_Iscatter_c(all, COUNT, MPI_INT, one, COUNT, MPI_INT, 0, comm, &request)); break;
        case 2: OK(MPI_Scatterv_c(all, counts, places, MPI_INT, one, COUNT, MPI_INT, 0, comm)); break;
        case 3: OK(MPI_Iscatterv_c(all, counts, places, MPI_INT, one, COUNT, MPI_INT, 0, comm, &request)); break;
        default:
            if (rank == 0) set(one, 0, rank);
            if (way == 4) OK(MPI_Bcast_c(one, COUNT, MPI_INT, 0, comm));
            else OK(MPI_Ibcast_c(one, COUNT, MPI_INT, 0, comm, &request));
        }
        wait(&request);
        see("Scatter_c, Scatterv_c, Bcast_c", one, 0, way < 4 ? rank : 0);
    }
}

static void exchanges(MPI_Comm comm) {
    MPI_Request request;
    for (int way = 0; way < 6; way++) {
        for (int r = 0; r < size; r++) set(more + r * COUNT, rank, r);
        request = MPI_REQUEST_NULL;
        switch (way) {
        case 0: OK(MPI_Alltoall_c(more, COUNT, MPI_INT, all, COUNT, MPI_INT, comm)); break;
        case 1: OK(MPI_Ialltoall_c(more, COUNT, MPI_INT, all, COUNT, MPI_INT, comm, &request)); break;
        case 2: OK(MPI_Alltoallv_c(more, counts, places, MPI_INT, all, counts, places, MPI_INT, comm)); break;
        case 3: OK(MPI_Ialltoallv_c(more, counts, places, MPI_INT, all, counts, places, MPI_INT, comm, &request)); break;
        case 4: OK(MPI_Alltoallw_c(more, counts, byte_places, types, all, counts, byte_places, types, comm)); break;
        default: OK(MPI_Ialltoallw_c(more, counts, byte_places, types, all, counts, byte_places, types, comm, &request));
        }
        wait(&request);
        see_all("Alltoall_c, Alltoallv_c, Alltoallw_c", rank);
    }
}

/* A user's operation with a large-count signature. */
static void add_c(void *in, void *inout, MPI_Count *count, MPI_Datatype *type) {
    CHECK(*type == MPI_INT, "another type");
    for (MPI_Count i = 0; i < *count; i++) ((int *)inout)[i] += ((int *)in)[i];
}

static void reductions(MPI_Comm comm, MPI_Op op) {
    for (int way = 0; way < 13; way++) {
        MPI_Request request = MPI_REQUEST_NULL;
        int first = 0, last = size - 1, number = COUNT, offset = 0;
        for (int i = 0; i < COUNT * size; i++) more[i] = rank + i, all[i] = -1;
        switch (way) {
        case 0: OK(MPI_Reduce_c(more, all, COUNT, MPI_INT, op, 0, comm)); break;
        case 1: OK(MPI_Ireduce_c(more, all, COUNT, MPI_INT, op, 0, comm, &request)); break;
        case 2: OK(MPI_Allreduce_c(more, all, COUNT, MPI_INT, op, comm)); break;
        case 3: OK(MPI_Iallreduce_c(more, all, COUNT, MPI_INT, op, comm, &request)); break;
        case 4: OK(MPI_Reduce_scatter_c(more, all, counts, MPI_INT, op, comm)); break;
        case 5: OK(MPI_Ireduce_scatter_c(more, all, counts, MPI_INT, op, comm, &request)); break;
        case 6: OK(MPI_Reduce_scatter_block_c(more, all, COUNT, MPI_INT, op, comm)); break;
        case 7: OK(MPI_Ireduce_scatter_block_c(more, all, COUNT, MPI_INT, op, comm, &request)); break;
        case 8: OK(MPI_Scan_c(more, all, COUNT, MPI_INT, op, comm)); break;
        case 9: OK(MPI_Iscan_c(more, all, COUNT, MPI_INT, op, comm, &request)); break;
        case 10: OK(MPI_Exscan_c(more, all, COUNT, MPI_INT, op, comm)); break;
        case 11: OK(MPI_Iexscan_c(more, all, COUNT, MPI_INT, op, comm, &request)); break;
        default: /* the sum of two equal parts, as if two ranks had them */
            memcpy(all, more, sizeof all);
            OK(MPI_Reduce_local_c(more, all, COUNT, MPI_INT, op));
        }
        wait(&request);
        if (way < 2 && rank != 0) continue;
        if (way >= 4 && way < 8) offset = rank * COUNT;
        if (way >= 8) last = way < 10 ? rank : rank - 1;
        if (way >= 10 && way < 12 && rank == 0) continue;
        if (way == 12) first = last = rank;
        for (int i = 0; i < number; i++) {
            int wanted = 0;
            for (int r = first; r <= last; r++) wanted += r + offset + i;
            if (way == 12) wanted *= 2;
            if (all[i] != wanted) {
                WRONG("reduction %d: element %d is %d, not %d", way, i, all[i], wanted);
                break;
            }
        }
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Op op;
    for (int r = 0; r < size; r++) {
        counts[r] = COUNT;
        places[r] = r * COUNT;
        byte_places[r] = places[r] * (MPI_Aint)sizeof(int);
        types[r] = MPI_INT;
    }
    OK(MPI_Op_create_c(add_c, 1, &op));
    gathering(MPI_COMM_WORLD);
    scattering(MPI_COMM_WORLD);
    exchanges(MPI_COMM_WORLD);
    reductions(MPI_COMM_WORLD, MPI_SUM);
    reductions(MPI_COMM_WORLD, op);
    OK(MPI_Op_free(&op));
    return finish();
}
