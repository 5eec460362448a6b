/* Ranks lock their own part of a window while others hold that lock and read the part.
 *
 * No message of a peer tells a rank of the grant of its own lock: its own step does, so a wait must ask again after each step. On a
 * modelled machine nothing else ends such a wait.
 *
 * Argument: a number from which lengths and targets follow. */
#include "check.h"

/* Most reads are so short that the target sends their words at once; the others are fetched. */
enum { SHORT = 480, MOST = 7500, READS = 2, EPOCHS = 600 };

static int64_t part[MOST], seen[READS][MOST];
static int changes;

/* Numbers that are the same on every machine, and differ between ranks. */
static unsigned below(unsigned limit) {
    static uint64_t steps;
    uint64_t mixed = (++steps * 64 + (unsigned)rank) * 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9u;
    return (unsigned)(mixed >> 33) % limit;
}

/* The owner of a part changes all its words, one after the other, under its own lock. */
static void change(MPI_Win win) {
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win));
    changes++;
    for (int i = 0; i < MOST; i++) part[i] = changes;
    OK(MPI_Win_unlock(rank, win));
}

/* Reads the first words of a part several times. */
static void look(MPI_Win win, int target, MPI_Aint at) {
    int counts[READS], reads = 1 + (int)below(READS);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    for (int i = 0; i < reads; i++) {
        counts[i] = 1 + (int)below(below(3) ? SHORT : MOST);
        OK(MPI_Get(seen[i], counts[i], MPI_INT64_T, target, at, counts[i], MPI_INT64_T, win));
    }
    OK(MPI_Win_unlock(target, win));
    for (int i = 0; i < reads; i++) {
        int same = 0;
        while (same < counts[i] && seen[i][same] == seen[0][0]) same++;
        CHECK(same == counts[i], "rank %d, read %d: %d of %d words", target, i, same, counts[i]);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--) below(2);
    MPI_Win win;
    MPI_Aint own, at[64];
    /* Devices do not reach a dynamic window, so its target takes part in each access. */
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_attach(win, part, sizeof part));
    OK(MPI_Get_address(part, &own));
    OK(MPI_Allgather(&own, 1, MPI_AINT, at, 1, MPI_AINT, MPI_COMM_WORLD));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = (int)below(4); i > 0; i--) {
            int target = (int)below((unsigned)size);
            if (target == rank) change(win);
            else look(win, target, at[target]);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_Win_detach(win, part));
    OK(MPI_Win_free(&win));
    return finish();
}
