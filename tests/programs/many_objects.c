/* Many living objects of one kind: they can be made and freed, and messages beside them are right.
 *
 * Arguments: a kind, or `all`; their number. With `measure` behind these, rank 0 prints the seconds that making and freeing take, the memory
 * that the objects take at a rank, and half the time of a ping-pong of a byte before they are made and while they live. */
#include "check.h"

#include <unistd.h>

enum { PINGS = 2000, REPEATS = 5, TAG = 7 };

/* Any object, by its kind. */
typedef union {
    MPI_Comm comm;
    MPI_Win win;
    MPI_Request request;
    MPI_File file;
    MPI_Datatype type;
    MPI_Group group;
} Object;

static char memory[64], in[64], path[256];
static MPI_Group everybody;

static void make_comm(Object *one, int i) { (void)i; OK(MPI_Comm_dup(MPI_COMM_WORLD, &one->comm)); }
static void make_part(Object *one, int i) { OK(MPI_Comm_split(MPI_COMM_WORLD, i % 2, 0, &one->comm)); }
static void free_comm(Object *one) { OK(MPI_Comm_free(&one->comm)); }

static void make_window(Object *one, int i) {
    (void)i;
    OK(MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &one->win));
}
static void make_own_window(Object *one, int i) {
    (void)i;
    char *base;
    OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &one->win));
}
static void free_window(Object *one) { OK(MPI_Win_free(&one->win)); }

static void make_receive(Object *one, int i) {
    (void)i;
    OK(MPI_Irecv(in, 1, MPI_CHAR, (rank + 1) % size, TAG, MPI_COMM_WORLD, &one->request));
}
static void end_receive(Object *one) {
    OK(MPI_Cancel(&one->request));
    OK(MPI_Wait(&one->request, MPI_STATUS_IGNORE));
}

static void make_persistent(Object *one, int i) {
    (void)i;
    OK(MPI_Recv_init(in, 1, MPI_CHAR, (rank + 1) % size, TAG, MPI_COMM_WORLD, &one->request));
}
static void make_bcast(Object *one, int i) {
    (void)i;
    OK(MPI_Bcast_init(in, 1, MPI_CHAR, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &one->request));
}
static void free_request(Object *one) { OK(MPI_Request_free(&one->request)); }

static void make_file(Object *one, int i) {
    (void)i;
    OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &one->file));
}
static void close_file(Object *one) { OK(MPI_File_close(&one->file)); }

static void make_type(Object *one, int i) { OK(MPI_Type_contiguous(i + 1, MPI_INT, &one->type)); }
static void free_type(Object *one) { OK(MPI_Type_free(&one->type)); }

static void make_group(Object *one, int i) {
    int first = i % size;
    OK(MPI_Group_incl(everybody, 1, &first, &one->group));
}
static void free_group(Object *one) { OK(MPI_Group_free(&one->group)); }

static const struct {
    const char *name;
    void (*make)(Object *one, int i);
    void (*end)(Object *one);
} KINDS[] = {
    {"comm", make_comm, free_comm},       {"part", make_part, free_comm},
    {"window", make_window, free_window}, {"own-window", make_own_window, free_window},
    {"receive", make_receive, end_receive}, {"persistent", make_persistent, free_request},
    {"bcast", make_bcast, free_request},  {"file", make_file, close_file},
    {"type", make_type, free_type},       {"group", make_group, free_group},
};

/* Kilobytes of this process. */
static long resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    if (file != NULL) fclose(file);
    return pages * 4;
}

/* Microseconds of a message of one byte between the first two ranks: the best of several runs. */
static double ping(int pings) {
    double best = 1e9;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double begin = MPI_Wtime();
        for (int i = 0; i < pings && rank < 2 && size > 1; i++) {
            char byte = (char)i, seen = -1;
            if (rank == 0) OK(MPI_Send(&byte, 1, MPI_CHAR, 1, 0, MPI_COMM_WORLD));
            OK(MPI_Recv(&seen, 1, MPI_CHAR, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (rank == 1) OK(MPI_Send(&byte, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD));
            if (seen != byte) WRONG("message %d is %d", i, seen);
        }
        double micros = (MPI_Wtime() - begin) * 1e6 / (2 * pings);
        if (micros < best) best = micros;
    }
    return best;
}

static void run(size_t kind, int count, int measures) {
    Object *all = calloc((size_t)count + 1, sizeof *all);
    int pings = measures ? PINGS : 10;
    double before = ping(pings);
    long memory_before = resident();
    double begin = MPI_Wtime();
    for (int i = 0; i < count; i++) KINDS[kind].make(&all[i], i);
    double made = MPI_Wtime() - begin;
    long kilobytes = resident() - memory_before;
    double beside = ping(pings);
    begin = MPI_Wtime();
    for (int i = 0; i < count; i++) KINDS[kind].end(&all[i]);
    double freed = MPI_Wtime() - begin;
    if (measures && rank == 0)
        fprintf(stderr, "%-10s %6d: made in %7.3f s, freed in %7.3f s, %6ld kB, message %.2f -> %.2f us\n", KINDS[kind].name, count, made,
                freed, kilobytes, before, beside);
    free(all);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *wanted = argc > 1 ? argv[1] : "all", *folder = getenv("TMPDIR");
    int count = argc > 2 ? atoi(argv[2]) : 100, measures = argc > 3;
    int job = (int)getpid();
    OK(MPI_Bcast(&job, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(path, sizeof path, "%s/many-objects-%d", folder ? folder : "/tmp", job);
    OK(MPI_Comm_group(MPI_COMM_WORLD, &everybody));
    for (size_t kind = 0; kind < sizeof KINDS / sizeof *KINDS; kind++)
        if (!strcmp(wanted, "all") || !strcmp(wanted, KINDS[kind].name)) run(kind, count, measures);
    OK(MPI_Group_free(&everybody));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0 && access(path, F_OK) == 0) OK(MPI_File_delete(path, MPI_INFO_NULL));
    return finish();
}
