/* Passive targets that make no MPI calls: operations on their windows end all the same.
 *
 * A target blocks outside of MPI, in a read from a FIFO, until the origins release it after their
 * operations. So no clock is needed: a target without progress is a run that never ends.
 *
 * Arguments: `multiple` (under MPI_THREAD_MULTIPLE), `calls` (FISHPLATE_PROGRESS=calls: no thread),
 * `unfreed` (MPI_Finalize with a window), `killed` (rank 1 dies while rank 0 is blocked). */
#include "check.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORDS = 64, LONG = 1 << 17 };

/* Memory of a target. */
typedef struct {
    int64_t counter, compared, fetched, put, placed[WORDS], strided[2 * WORDS], far[LONG];
} Memory;

static char fifo[200];
static const char *mode = "";

/* Progress threads of this process; each must have blocked all signals. */
static int threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char path[300], line[200];
        unsigned long long blocked = 0;
        int is_ours = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status)) {
            is_ours |= strcmp(line, "Name:\tfishplate rma\n") == 0;
            sscanf(line, "SigBlk: %llx", &blocked);
        }
        if (status) fclose(status);
        count += is_ours;
        CHECK(!is_ours || (blocked >> (SIGUSR1 - 1) & blocked >> (SIGTERM - 1) & 1), "it blocks %llx", blocked);
    }
    if (folder) closedir(folder);
    return count;
}

/* Waits until so many progress threads exist: a new one gets its name, and an old one leaves the list, some time after the call. */
static void await_threads(int expected) {
    while (threads() != expected) sched_yield();
}

/* Blocks outside of MPI until all origins have released this rank. */
static void block(int origins) {
    int file = open(fifo, O_RDWR);
    for (int i = 0; i < origins; i++) {
        char byte = 0;
        CHECK(read(file, &byte, 1) == 1 && byte == 'x', "the FIFO gave %d", byte);
    }
    close(file);
}

static void release(void) {
    int file = open(fifo, O_WRONLY);
    CHECK(write(file, "x", 1) == 1, "cannot write to the FIFO");
    close(file);
}

/* The value of the info key that tells who makes progress. */
static int says(MPI_Win win, const char *wanted) {
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int length = sizeof value, found = 0;
    MPI_Info info;
    OK(MPI_Win_get_info(win, &info));
    OK(MPI_Info_get_string(info, "fishplate_progress", &length, value, &found));
    OK(MPI_Info_free(&info));
    CHECK(found, "no fishplate_progress");
    return strstr(value, wanted) != NULL;
}

#define AT(member) (base + (MPI_Aint)offsetof(Memory, member))

/* Every kind of operation on the memory at displacement `base` of the target. */
static void operate(MPI_Win win, int target, MPI_Aint base) {
    int64_t one = 1, old = -1, none = 0, seen[WORDS], values[WORDS];
    int64_t *far = malloc(LONG * sizeof *far);
    MPI_Datatype every_second;
    MPI_Request request;
    OK(MPI_Type_vector(WORDS, 1, 2, MPI_INT64_T, &every_second));
    OK(MPI_Type_commit(&every_second));
    for (int i = 0; i < WORDS; i++) values[i] = i + 1;

    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
    OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, AT(counter), MPI_SUM, win));
    OK(MPI_Win_flush(target, win));
    CHECK(old >= 0 && old <= 201 * (size - 2), "the counter was %lld", (long long)old);
    OK(MPI_Put(values, WORDS, MPI_INT64_T, target, AT(placed), WORDS, MPI_INT64_T, win));
    OK(MPI_Win_flush_local(target, win));
    OK(MPI_Get(seen, WORDS, MPI_INT64_T, target, AT(placed), WORDS, MPI_INT64_T, win));
    OK(MPI_Win_unlock(target, win));
    CHECK(memcmp(seen, values, sizeof values) == 0, "the data that were put");

    OK(MPI_Win_lock_all(0, win));
    OK(MPI_Accumulate(values, WORDS, MPI_INT64_T, target, AT(strided), 1, every_second, MPI_SUM, win));
    OK(MPI_Get_accumulate(&one, 1, MPI_INT64_T, &old, 1, MPI_INT64_T, target, AT(fetched), 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_flush_all(win));
    do {
        int64_t mine = old + 1;
        none = old;
        OK(MPI_Compare_and_swap(&mine, &none, &old, MPI_INT64_T, target, AT(compared), win));
        OK(MPI_Win_flush(target, win));
    } while (old != none);
    OK(MPI_Rput(&one, 1, MPI_INT64_T, target, AT(put), 1, MPI_INT64_T, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < LONG; i++) far[i] = i ^ 77;
    OK(MPI_Put(far, LONG, MPI_INT64_T, target, AT(far), LONG, MPI_INT64_T, win));
    /* Enough here, as for the short ones: programs get what they have put without asking for its end at the target. */
    OK(MPI_Win_flush_local(target, win));
    memset(far, 0, LONG * sizeof *far);
    OK(MPI_Rget(far, LONG, MPI_INT64_T, target, AT(far), LONG, MPI_INT64_T, win, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int wrong = 0;
    for (int i = 0; i < LONG; i++) wrong += far[i] != (i ^ 77);
    SAME(wrong, 0);
    /* More operations than a target takes without an acknowledgement. */
    for (int i = 0; i < 200; i++)
        OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, AT(counter), 1, MPI_INT64_T, MPI_SUM, win));
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Type_free(&every_second));
    free(far);
}

/* Each rank is the target of all others once. */
static void passive(MPI_Win win, Memory *memory, int is_dynamic) {
    int is_mapped = says(win, "put=memory"), expected = strcmp(mode, "calls") != 0;
    CHECK(is_mapped || says(win, "accumulate=thread,lock=thread") == expected, "the wrong progress");
    for (int target = 0; target < size && (is_mapped || expected); target++) {
        MPI_Aint base = 0;
        if (is_dynamic) OK(MPI_Get_address(memory, &base));
        OK(MPI_Bcast(&base, 1, MPI_AINT, target, MPI_COMM_WORLD));
        if (rank == target) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
            memset(memory, 0, sizeof *memory);
            MPI_Win_unlock(rank, win);
        }
        OK(MPI_Barrier(MPI_COMM_WORLD));
        if (rank == target) {
            block(size - 1);
            OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
            SAME(memory->counter, 201 * (size - 1));
            SAME(memory->fetched, size - 1);
            SAME(memory->put, 1);
            SAME(memory->placed[WORDS - 1], WORDS);
            for (int i = 0; i < WORDS; i++) SAME(memory->strided[2 * i], (i + 1) * (size - 1));
            SAME(memory->strided[1], 0);
            OK(MPI_Win_unlock(rank, win));
        } else {
            operate(win, target, base);
            release();
        }
        /* Messages go on beside the thread. */
        int sum = 0;
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        SAME(sum, size * (size - 1) / 2);
        OK(MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &sum, 1, MPI_INT, (rank + size - 1) % size, 3,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        SAME(sum, (rank + size - 1) % size);
    }
}

static void kinds(void) {
    Memory *memory = calloc(1, sizeof *memory), *allocated;
    MPI_Win win, other;
    MPI_Info info;
    await_threads(0);
    OK(MPI_Win_create(memory, sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    await_threads(says(win, "=thread"));
    passive(win, memory, 0);
    OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &other));
    OK(MPI_Win_attach(other, memory, sizeof *memory));
    passive(other, memory, 1);
    OK(MPI_Win_free(&win));
    passive(other, memory, 1); /* with the last window that needs the thread */
    OK(MPI_Barrier(MPI_COMM_WORLD));
    await_threads(says(other, "=thread"));
    OK(MPI_Win_detach(other, memory));
    OK(MPI_Win_free(&other));
    await_threads(0);
    OK(MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win));
    passive(win, allocated, 0);
    OK(MPI_Win_free(&win));

    /* Without passive targets nobody needs a thread. */
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "no_locks", "true"));
    OK(MPI_Win_create(memory, sizeof *memory, 1, info, MPI_COMM_WORLD, &win));
    CHECK(!says(win, "thread"), "a thread for a window without locks");
    OK(MPI_Win_free(&win));
    OK(MPI_Info_free(&info));
    OK(MPI_Win_create(memory, sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win));
    CHECK(!says(win, "thread"), "a thread for a window of one rank");
    OK(MPI_Win_free(&win));
    free(memory);
}

int main(int argc, char **argv) {
    int provided;
    if (argc > 1) mode = argv[1];
    MPI_Init_thread(&argc, &argv, strcmp(mode, "multiple") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int64_t word = 0;
    MPI_Win win;
    if (strcmp(mode, "killed") == 0) {
        OK(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        if (rank == 1) {
            OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win));
            OK(MPI_Put(&word, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win));
            OK(MPI_Win_flush(0, win));
            raise(SIGKILL);
        }
        pause();
    }
    if (rank == 0) {
        snprintf(fifo, sizeof fifo, "/tmp/passive-%d-XXXXXX", (int)getpid());
        CHECK(mkdtemp(fifo) != NULL, "no folder %s", fifo);
        strcat(fifo, "/fifo");
        CHECK(mkfifo(fifo, 0600) == 0, "no FIFO %s", fifo);
    }
    OK(MPI_Bcast(fifo, sizeof fifo, MPI_CHAR, 0, MPI_COMM_WORLD));
    kinds();
    if (strcmp(mode, "unfreed") == 0)
        OK(MPI_Win_create(&word, sizeof word, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    if (rank == 0) {
        unlink(fifo);
        *strrchr(fifo, '/') = 0;
        rmdir(fifo);
    }
    MPI_Finalize();
    return verdict();
}
