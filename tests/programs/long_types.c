/* Datatypes at the target whose description is longer than 32 MiB, and a target or an origin without memory for them. */
#include "check.h"
#include <sys/resource.h>
#include <unistd.h>

/* Room for less than a description, and for a description but not for the type. */
enum { BLOCKS = (32 << 20) / 8 + 100, LITTLE = 24 << 20, SOME = 200 << 20 };

static MPI_Win win;
static MPI_Datatype comb;
static unsigned char *memory, *data;

/* Allows the process so much memory beside what it has. */
static void limit(size_t room) {
    struct rlimit now;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld", &pages) == 1, "no statm");
    if (file) fclose(file);
    getrlimit(RLIMIT_AS, &now);
    now.rlim_cur = room ? pages * sysconf(_SC_PAGESIZE) + room : now.rlim_max;
    CHECK(setrlimit(RLIMIT_AS, &now) == 0, "setrlimit");
}

/* Every second byte of the target's memory. */
static void works(int target) {
    if (rank == 0) {
        fill(data, BLOCKS, 7);
        OK(MPI_Put(data, BLOCKS, MPI_BYTE, target, 0, 1, comb, win));
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 0) {
        memset(data, 0, BLOCKS);
        OK(MPI_Get(data, BLOCKS, MPI_BYTE, target, 0, 1, comb, win));
    }
    OK(MPI_Win_fence(0, win));
    if (rank == 0) SAME(wrong(data, BLOCKS, 7), -1);
    if (rank == target) {
        SAME(memory[1], 0xee);
        SAME(memory[2 * BLOCKS - 1], 0xee);
    }
}

static void target_has_no_memory(size_t room) {
    if (rank == 1) limit(room);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        memset(data, 0x55, BLOCKS);
        OK(MPI_Put(data, BLOCKS, MPI_BYTE, 1, 0, 1, comb, win));
        OK(MPI_Put(data, BLOCKS, MPI_BYTE, 1, 0, 1, comb, win));
        FAILS(MPI_Win_fence(0, win), MPI_ERR_NO_MEM);
    } else {
        OK(MPI_Win_fence(0, win));
    }
    if (rank == 1) {
        for (int i = 0; i < 2 * BLOCKS; i++)
            if (memory[i] == 0x55) {
                failed(__FILE__, __LINE__, "byte %d was written", i);
                break;
            }
        limit(0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void origin_has_no_memory(void) {
    if (rank == 0) {
        limit(LITTLE);
        FAILS(MPI_Get(data, BLOCKS, MPI_BYTE, 1, 0, 1, comb, win), MPI_ERR_NO_MEM);
        limit(0);
    }
    OK(MPI_Win_fence(0, win));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    memory = allocate(2 * BLOCKS);
    data = allocate(BLOCKS);
    memset(memory, 0xee, 2 * BLOCKS);
    MPI_Aint *places = malloc(BLOCKS * sizeof *places);
    for (int i = 0; i < BLOCKS; i++) places[i] = 2 * (MPI_Aint)i;
    OK(MPI_Type_create_hindexed_block(BLOCKS, 1, places, MPI_BYTE, &comb));
    OK(MPI_Type_commit(&comb));
    free(places);
    OK(MPI_Win_create(memory, 2 * BLOCKS, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    OK(MPI_Win_fence(0, win));
    if (argc > 1 && !strcmp(argv[1], "target")) target_has_no_memory(LITTLE);
    if (argc > 1 && !strcmp(argv[1], "type")) target_has_no_memory(SOME);
    if (argc > 1 && !strcmp(argv[1], "origin")) origin_has_no_memory();
    works(size - 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Type_free(&comb));
    free(memory);
    free(data);
    return finish();
}
