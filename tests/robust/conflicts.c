/* One-sided programs with an error each, and their right neighbours, by name; three ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;
static long *base, one = 1, other[4];
static MPI_Win win;

static void put(int at) { MPI_Put(&one, 1, MPI_LONG, 1, at, 1, MPI_LONG, win); }
static void get(int at) { MPI_Get(other, 1, MPI_LONG, 1, at, 1, MPI_LONG, win); }
static void accumulate(int at, MPI_Op op) { MPI_Accumulate(&one, 1, MPI_LONG, 1, at, 1, MPI_LONG, op, win); }
static void fence(void) { MPI_Win_fence(0, win); }
static void token(int from, int to) {
    if (rank == from) MPI_Send(NULL, 0, MPI_BYTE, to, 9, MPI_COMM_WORLD);
    if (rank == to) MPI_Recv(NULL, 0, MPI_BYTE, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void fences(const char *what) {
    int between = strstr(what, "apart") != NULL;
    fence();
    if (strstr(what, "put-put")) {
        if (rank == 0) put(0);
        if (between) fence();
        if (rank == 2) put(0);
    } else if (strstr(what, "put-get")) {
        if (rank == 0) put(0);
        if (between) fence();
        if (rank == 2) get(0);
    } else if (strstr(what, "operations")) {
        if (rank == 0) accumulate(0, MPI_SUM);
        if (rank == 2) accumulate(0, between ? MPI_SUM : MPI_MAX);
    } else if (strstr(what, "types")) {
        if (rank == 0) accumulate(0, MPI_SUM);
        double value = 1;
        if (rank == 2 && between) accumulate(0, MPI_SUM);
        if (rank == 2 && !between) MPI_Accumulate(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, MPI_SUM, win);
    } else if (strstr(what, "strided")) {
        /* Even words and odd ones. */
        MPI_Datatype second;
        long words[8] = {0};
        MPI_Type_vector(8, 1, 2, MPI_LONG, &second);
        MPI_Type_commit(&second);
        if (rank != 1) MPI_Put(words, 8, MPI_LONG, 1, between && rank == 0, 1, second, win);
        MPI_Type_free(&second);
    } else if (strstr(what, "receive")) {
        /* The target receives into its window. */
        if (rank == 0) put(3);
        if (rank == 2) MPI_Send(&one, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(base + 3 + between, 1, MPI_LONG, 2, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strstr(what, "send")) {
        if (rank == 0 && between) get(3);
        if (rank == 0 && !between) put(3);
        if (rank == 1) MPI_Send(base + 3, 1, MPI_LONG, 2, 0, MPI_COMM_WORLD);
        if (rank == 2) MPI_Recv(&one, 1, MPI_LONG, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        abort();
    }
    fence();
}

static void locks(const char *what) {
    if (rank == 1) return;
    MPI_Win_lock(strstr(what, "exclusive") ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 1, 0, win);
    put(5);
    MPI_Win_unlock(1, win);
}

/* Two puts of one origin, with a flush between or without. */
static void flushes(const char *what) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        put(2);
        if (strstr(what, "apart")) MPI_Win_flush(1, win);
        put(2);
    }
    MPI_Win_unlock_all(win);
}

/* The second rank puts after the first has told it that its own put is done. */
static void told(void) {
    MPI_Win_lock_all(0, win);
    if (rank == 0) {
        put(2);
        MPI_Win_flush(1, win);
    }
    token(0, 2);
    if (rank == 2) put(2);
    MPI_Win_unlock_all(win);
}

static void exposures(const char *what) {
    int twice = strstr(what, "apart") != NULL;
    MPI_Group world, target, origins;
    int ranks[] = {0, 2, 1};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, ranks + 2, &target);
    for (int turn = 0; turn <= twice; turn++) {
        MPI_Group_incl(world, twice ? 1 : 2, ranks + turn, &origins);
        if (rank == 1) {
            MPI_Win_post(origins, 0, win);
            MPI_Win_wait(win);
        } else if (!twice || rank == ranks[turn]) {
            MPI_Win_start(target, 0, win);
            put(1);
            MPI_Win_complete(win);
        }
        MPI_Group_free(&origins);
    }
    MPI_Group_free(&target);
    MPI_Group_free(&world);
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(32 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (!strncmp(what, "fence", 5)) fences(what);
    else if (!strncmp(what, "lock", 4)) locks(what);
    else if (!strncmp(what, "flush", 5)) flushes(what);
    else if (!strncmp(what, "exposure", 8)) exposures(what);
    else if (!strcmp(what, "told")) told();
    else abort();
    MPI_Win_free(&win);
    MPI_Finalize();
    return 0;
}
