/* The speed of files by IOR's patterns and a few more: one pattern in one run, by any MPI library.
 *
 *     speed PATTERN FILE REPETITIONS [HINT=VALUE ...]
 *
 * Rank 0 prints `name value` lines: medians of the repetitions, of which the first is dropped. Bandwidths
 * are MB/s of all ranks together, other values seconds or shares. All data are read back and compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MiB = 1 << 20, MOST = 1000 };

static int rank, size, repetitions;
static const char *path;
static MPI_Info info;

static void fail(const char *what) {
    fprintf(stderr, "speed: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

#define OK(call) do { if ((call) != MPI_SUCCESS) fail(#call); } while (0)

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double median(double *all, int count) {
    qsort(all, count, sizeof *all, by_value);
    return count % 2 ? all[count / 2] : (all[count / 2 - 1] + all[count / 2]) / 2;
}

/* Rank 0 prints the median of the times of the slowest ranks, as a bandwidth if bytes were moved. */
static void report(const char *name, double *times, double bytes) {
    double slowest[MOST];
    OK(MPI_Reduce(times, slowest, repetitions + 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD));
    if (rank) return;
    double time = median(slowest + 1, repetitions);
    printf("%s %.9g\n", name, bytes > 0 ? bytes / time / 1e6 : time);
}

static void paint(unsigned char *memory, size_t count, int seed) {
    for (size_t i = 0; i < count; i++) memory[i] = (unsigned char)(i * 7 + i / 251 + seed * 31 + rank * 13);
}

static void verify(const unsigned char *memory, size_t count, int seed) {
    for (size_t i = 0; i < count; i++)
        if (memory[i] != (unsigned char)(i * 7 + i / 251 + seed * 31 + rank * 13)) fail("the data differ");
}

/* A pattern: accesses of one transfer each, at offsets of the rank's view. */
struct pattern {
    MPI_File file;
    size_t transfer, count;
    /* The offset of an access, by its number. */
    MPI_Offset first, step;
    int collective;
};

static void write_all(struct pattern *p, const unsigned char *memory) {
    for (size_t i = 0; i < p->count; i++) {
        MPI_Offset at = p->first + (MPI_Offset)i * p->step;
        const unsigned char *from = memory + i * p->transfer;
        if (p->collective) OK(MPI_File_write_at_all(p->file, at, from, (int)p->transfer, MPI_BYTE, MPI_STATUS_IGNORE));
        else OK(MPI_File_write_at(p->file, at, from, (int)p->transfer, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

static void read_all(struct pattern *p, unsigned char *memory) {
    for (size_t i = 0; i < p->count; i++) {
        MPI_Offset at = p->first + (MPI_Offset)i * p->step;
        unsigned char *to = memory + i * p->transfer;
        if (p->collective) OK(MPI_File_read_at_all(p->file, at, to, (int)p->transfer, MPI_BYTE, MPI_STATUS_IGNORE));
        else OK(MPI_File_read_at(p->file, at, to, (int)p->transfer, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

static void measure(struct pattern *p) {
    size_t bytes = p->transfer * p->count;
    unsigned char *memory = malloc(bytes), *room = malloc(bytes);
    double writes[MOST], reads[MOST], syncs[MOST];
    if (!memory || !room) fail("no memory");
    memset(room, 1, bytes);
    for (int round = 0; round <= repetitions; round++) {
        paint(memory, bytes, round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        write_all(p, memory);
        writes[round] = MPI_Wtime() - start;
        start = MPI_Wtime();
        OK(MPI_File_sync(p->file));
        syncs[round] = MPI_Wtime() - start;
    }
    for (int round = 0; round <= repetitions; round++) {
        memset(room, 0, bytes);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        read_all(p, room);
        reads[round] = MPI_Wtime() - start;
    }
    verify(room, bytes, repetitions);
    report("write", writes, (double)bytes * size);
    report("read", reads, (double)bytes * size);
    report("sync", syncs, 0);
    free(memory);
    free(room);
}

static MPI_File opened(MPI_Comm comm, const char *name) {
    MPI_File file;
    OK(MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, info, &file));
    return file;
}

/* A file for each rank, in transfers of 1 MiB. */
static void easy(void) {
    char name[1000];
    snprintf(name, sizeof name, "%s.%d", path, rank);
    struct pattern p = {opened(MPI_COMM_SELF, name), MiB, 32, 0, MiB, 0};
    measure(&p);
    OK(MPI_File_close(&p.file));
}

/* One file, in transfers of 47,008 bytes, of which each rank has one in turn. */
static void hard(int collective) {
    enum { TRANSFER = 47008 };
    struct pattern p = {opened(MPI_COMM_WORLD, path), TRANSFER, 700, (MPI_Offset)rank * TRANSFER,
                        (MPI_Offset)size * TRANSFER, collective};
    measure(&p);
    OK(MPI_File_close(&p.file));
}

/* One file, of which each rank has a part of its own, in transfers of 256 KiB. */
static void segmented(void) {
    struct pattern p = {opened(MPI_COMM_WORLD, path), MiB / 4, 128, (MPI_Offset)rank * 32 * MiB, MiB / 4, 0};
    measure(&p);
    OK(MPI_File_close(&p.file));
}

/* Tiles of a matrix whose rows have `row` bytes in each tile; two tiles side by side. */
static void tile(int row, int collective) {
    int across = size % 2 ? 1 : 2, down = size / across, rows = 16 * MiB / row;
    int all[] = {rows * down, row * across}, own[] = {rows, row};
    int start[] = {rank / across * rows, rank % across * row};
    MPI_Datatype type;
    OK(MPI_Type_create_subarray(2, all, own, start, MPI_ORDER_C, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    struct pattern p = {opened(MPI_COMM_WORLD, path), 16 * MiB, 1, 0, 0, collective};
    OK(MPI_File_set_view(p.file, 0, MPI_BYTE, type, "native", info));
    measure(&p);
    OK(MPI_File_close(&p.file));
    OK(MPI_Type_free(&type));
}

/* Records of some bytes, of which each rank has one in turn; collective calls move 1 MiB of each rank. */
static void records(int bytes) {
    MPI_Datatype record, type;
    OK(MPI_Type_contiguous(bytes, MPI_BYTE, &record));
    OK(MPI_Type_create_resized(record, 0, (MPI_Aint)bytes * size, &type));
    OK(MPI_Type_commit(&type));
    struct pattern p = {opened(MPI_COMM_WORLD, path), MiB, 8, 0, MiB, 1};
    OK(MPI_File_set_view(p.file, (MPI_Offset)rank * bytes, MPI_BYTE, type, "native", info));
    measure(&p);
    OK(MPI_File_close(&p.file));
    OK(MPI_Type_free(&type));
    OK(MPI_Type_free(&record));
}

static double compute(double seconds) {
    volatile double sum = 1;
    double start = MPI_Wtime();
    while (MPI_Wtime() - start < seconds)
        for (int i = 0; i < 200; i++) sum = sum * 0.999999 + 1e-6;
    return MPI_Wtime() - start;
}

/* A nonblocking write of 64 MiB beside computing for as long as it takes alone: the share of its time
 * that is hidden, by the procedure of the OSU benchmarks. */
static void overlap(void) {
    size_t bytes = 64 * MiB;
    unsigned char *memory = malloc(bytes);
    double alone[MOST], shares[MOST], both[MOST];
    MPI_File file = opened(MPI_COMM_WORLD, path);
    MPI_Offset at = (MPI_Offset)rank * bytes;
    MPI_Request request;
    if (!memory) fail("no memory");
    for (int round = 0; round <= repetitions; round++) {
        paint(memory, bytes, round);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        OK(MPI_File_iwrite_at(file, at, memory, (int)bytes, MPI_BYTE, &request));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        alone[round] = MPI_Wtime() - start;
        double pure = alone[round];
        OK(MPI_Barrier(MPI_COMM_WORLD));
        start = MPI_Wtime();
        OK(MPI_File_iwrite_at(file, at, memory, (int)bytes, MPI_BYTE, &request));
        double computed = compute(pure);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        both[round] = MPI_Wtime() - start;
        double share = 1 - (both[round] - computed) / pure;
        /* The least share of a rank counts, as the greatest of its complement. */
        shares[round] = 1 - (share < 0 ? 0 : share > 1 ? 1 : share);
    }
    OK(MPI_File_read_at(file, at, memory, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    verify(memory, bytes, repetitions);
    report("alone", alone, 0);
    report("beside", both, 0);
    report("shown", shares, 0);
    OK(MPI_File_close(&file));
    free(memory);
}

/* Opening and closing of one file by all ranks. */
static void open_close(void) {
    double opens[MOST], closes[MOST];
    MPI_File keep = opened(MPI_COMM_WORLD, path);
    for (int round = 0; round <= repetitions; round++) {
        MPI_File file;
        OK(MPI_Barrier(MPI_COMM_WORLD));
        double start = MPI_Wtime();
        OK(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, info, &file));
        opens[round] = MPI_Wtime() - start;
        start = MPI_Wtime();
        OK(MPI_File_close(&file));
        closes[round] = opens[round] + MPI_Wtime() - start;
    }
    report("open", opens, 0);
    report("open_close", closes, 0);
    OK(MPI_File_close(&keep));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    if (argc < 4 || (repetitions = atoi(argv[3])) < 1 || repetitions >= MOST) fail("see the head of speed.c");
    path = argv[2];
    MPI_Info_create(&info);
    for (int at = 4; at < argc; at++) {
        char *value = strchr(argv[at], '=');
        if (!value) fail("a hint is KEY=VALUE");
        *value = 0;
        MPI_Info_set(info, argv[at], value + 1);
    }
    const char *pattern = argv[1];
    const char *number = strchr(pattern, ':');
    int bytes = number ? atoi(number + 1) : 0;
    if (!strcmp(pattern, "easy")) easy();
    else if (!strcmp(pattern, "hard")) hard(0);
    else if (!strcmp(pattern, "hard-all")) hard(1);
    else if (!strcmp(pattern, "segmented")) segmented();
    else if (!strncmp(pattern, "tile:", 5)) tile(bytes, 0);
    else if (!strncmp(pattern, "tile-all:", 9)) tile(bytes, 1);
    else if (!strncmp(pattern, "records:", 8)) records(bytes);
    else if (!strcmp(pattern, "overlap")) overlap();
    else if (!strcmp(pattern, "open")) open_close();
    else fail("the pattern is unknown");
    MPI_Info_free(&info);
    return MPI_Finalize();
}
