/* Chapter 14 from end to end: modes, views, all forms of reads and writes, pointers, hints, sizes,
 * representations, partial counts at the end of a file, ranks with nothing to do. */
#include "check.h"
#include <dirent.h>
#include <unistd.h>

static char name[128];

static MPI_File opened(int mode) {
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file));
    return file;
}

static void count_is(const MPI_Status *status, MPI_Datatype type, int wanted) {
    int count = -1;
    MPI_Get_count(status, type, &count);
    SAME(count, wanted);
}

/* Each rank writes and reads its own integers by every form of call. */
static void forms(void) {
    enum { N = 5 };
    int out[N], in[N];
    MPI_Status status;
    MPI_Request request;
    MPI_Offset place;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_set_view(file, 8, MPI_INT, MPI_INT, "native", MPI_INFO_NULL));
    for (int form = 0; form < 14; form++) {
        MPI_Offset at = (MPI_Offset)(form * size + rank) * N;
        for (int i = 0; i < N; i++) out[i] = form * 1000 + rank * 100 + i;
        memset(in, 0, sizeof in);
        OK(MPI_File_seek(file, at, MPI_SEEK_SET));
        OK(MPI_File_seek_shared(file, (MPI_Offset)form * size * N, MPI_SEEK_SET));
        request = MPI_REQUEST_NULL;
        switch (form) {
        case 0: OK(MPI_File_write_at(file, at, out, N, MPI_INT, &status)); break;
        case 1: OK(MPI_File_write(file, out, N, MPI_INT, &status)); break;
        case 2: OK(MPI_File_write_at_all(file, at, out, N, MPI_INT, &status)); break;
        case 3: OK(MPI_File_write_all(file, out, N, MPI_INT, &status)); break;
        case 4: OK(MPI_File_write_ordered(file, out, N, MPI_INT, &status)); break;
        case 5: OK(MPI_File_iwrite_at(file, at, out, N, MPI_INT, &request)); break;
        case 6: OK(MPI_File_iwrite(file, out, N, MPI_INT, &request)); break;
        case 7: OK(MPI_File_iwrite_at_all(file, at, out, N, MPI_INT, &request)); break;
        case 8: OK(MPI_File_iwrite_all(file, out, N, MPI_INT, &request)); break;
        case 9:
            OK(MPI_File_write_at_all_begin(file, at, out, N, MPI_INT));
            OK(MPI_File_write_at_all_end(file, out, &status));
            break;
        case 10:
            OK(MPI_File_write_all_begin(file, out, N, MPI_INT));
            OK(MPI_File_write_all_end(file, out, &status));
            break;
        case 11:
            OK(MPI_File_write_ordered_begin(file, out, N, MPI_INT));
            OK(MPI_File_write_ordered_end(file, out, &status));
            break;
        case 12: OK(MPI_File_write_at_all_c(file, at, out, N, MPI_INT, &status)); break;
        case 13: OK(MPI_File_write_at_c(file, at, out, N, MPI_INT, &status)); break;
        }
        if (form >= 5 && form <= 8) OK(MPI_Wait(&request, &status));
        count_is(&status, MPI_INT, N);
        OK(MPI_File_sync(file));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_File_seek(file, at, MPI_SEEK_SET));
        OK(MPI_File_seek_shared(file, (MPI_Offset)form * size * N, MPI_SEEK_SET));
        switch (form) {
        case 0: OK(MPI_File_read_at(file, at, in, N, MPI_INT, &status)); break;
        case 1: OK(MPI_File_read(file, in, N, MPI_INT, &status)); break;
        case 2: OK(MPI_File_read_at_all(file, at, in, N, MPI_INT, &status)); break;
        case 3: OK(MPI_File_read_all(file, in, N, MPI_INT, &status)); break;
        case 4: OK(MPI_File_read_ordered(file, in, N, MPI_INT, &status)); break;
        case 5: OK(MPI_File_iread_at(file, at, in, N, MPI_INT, &request)); break;
        case 6: OK(MPI_File_iread(file, in, N, MPI_INT, &request)); break;
        case 7: OK(MPI_File_iread_at_all(file, at, in, N, MPI_INT, &request)); break;
        case 8: OK(MPI_File_iread_all(file, in, N, MPI_INT, &request)); break;
        case 9:
            OK(MPI_File_read_at_all_begin(file, at, in, N, MPI_INT));
            OK(MPI_File_read_at_all_end(file, in, &status));
            break;
        case 10:
            OK(MPI_File_read_all_begin(file, in, N, MPI_INT));
            OK(MPI_File_read_all_end(file, in, &status));
            break;
        case 11:
            OK(MPI_File_read_ordered_begin(file, in, N, MPI_INT));
            OK(MPI_File_read_ordered_end(file, in, &status));
            break;
        case 12: OK(MPI_File_read_at_all_c(file, at, in, N, MPI_INT, &status)); break;
        case 13: OK(MPI_File_read_at_c(file, at, in, N, MPI_INT, &status)); break;
        }
        if (form >= 5 && form <= 8) OK(MPI_Wait(&request, &status));
        count_is(&status, MPI_INT, N);
        CHECK(memcmp(in, out, sizeof in) == 0, "form %d", form);
        OK(MPI_File_get_position(file, &place));
        CHECK(place == at || place == at + N, "position %lld in form %d", (long long)place, form);
        OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    OK(MPI_File_close(&file));
    CHECK(file == MPI_FILE_NULL, "closed");
    CHECK(access(name, F_OK) != 0, "deleted on close");
}

/* Ranks share a pointer: all records are there once. */
static void shared_pointer(void) {
    enum { RECORDS = 20 };
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    int record[4], seen[64] = {0};
    MPI_Offset place;
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "internal", MPI_INFO_NULL));
    for (int i = 0; i < RECORDS; i++) {
        for (int j = 0; j < 4; j++) record[j] = rank * RECORDS + i;
        MPI_Request request;
        if (i % 2) OK(MPI_File_write_shared(file, record, 4, MPI_INT, MPI_STATUS_IGNORE));
        else {
            OK(MPI_File_iwrite_shared(file, record, 4, MPI_INT, &request));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    }
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_get_position_shared(file, &place));
    SAME(place, size * RECORDS * 4);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_seek_shared(file, -4 * RECORDS * size, MPI_SEEK_CUR));
    int *mine = calloc(size * RECORDS, sizeof *mine), *all = calloc(size * RECORDS, sizeof *all);
    for (int i = 0; i < RECORDS; i++) {
        OK(MPI_File_read_shared(file, record, 4, MPI_INT, MPI_STATUS_IGNORE));
        CHECK(record[0] == record[3] && record[0] >= 0 && record[0] < size * RECORDS, "torn record %d", record[0]);
        mine[record[0]]++;
    }
    OK(MPI_Allreduce(mine, all, size * RECORDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < size * RECORDS; i++) SAME(all[i], 1);
    free(mine);
    free(all);
    /* Ordered, with another length on each rank. */
    OK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    for (int i = 0; i <= rank; i++) seen[i] = 100 * rank + i;
    OK(MPI_File_write_ordered(file, seen, rank + 1, MPI_INT, MPI_STATUS_IGNORE));
    int got = -1;
    OK(MPI_File_read_at_all(file, rank * (rank + 1) / 2 + rank, &got, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(got, 100 * rank + rank);
    OK(MPI_File_close(&file));
}

/* Columns of a matrix, one for each rank; some ranks have nothing to do. */
static void views(void) {
    MPI_Datatype column, resized, etype, filetype;
    MPI_Status status;
    MPI_Offset disp, offset, bytes;
    char rep[MPI_MAX_DATAREP_STRING];
    int data[6] = {0}, in[12];
    MPI_Aint extent;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_Type_vector(1, 1, size, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, (MPI_Aint)(size * sizeof(int)), &resized));
    OK(MPI_Type_commit(&resized));
    OK(MPI_File_set_view(file, 4 * rank, MPI_INT, resized, "native", MPI_INFO_NULL));
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&resized));
    OK(MPI_File_get_view(file, &disp, &etype, &filetype, rep));
    SAME(disp, 4 * rank);
    CHECK(etype == MPI_INT && strcmp(rep, "native") == 0, "etype and %s", rep);
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_get_byte_offset(file, 3, &bytes));
    SAME(bytes, 4 * rank + 3 * 4 * size);
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    SAME(extent, sizeof(long));
    for (int i = 0; i < 6; i++) data[i] = 10 * i + rank;
    OK(MPI_File_write_all(file, data, rank % 2 ? 0 : 6, MPI_INT, &status));
    count_is(&status, MPI_INT, rank % 2 ? 0 : 6);
    OK(MPI_File_write_at_all(file, 0, data, rank % 2 ? 6 : 0, MPI_INT, &status));
    OK(MPI_File_get_size(file, &bytes));
    SAME(bytes, 6 * 4 * size);
    /* Behind the end nothing is read, and the rest of memory stays. */
    for (int i = 0; i < 12; i++) in[i] = -1;
    OK(MPI_File_read_at_all(file, 2, in, 12, MPI_INT, &status));
    count_is(&status, MPI_INT, 4);
    for (int i = 0; i < 12; i++) SAME(in[i], i < 4 ? 10 * (i + 2) + rank : -1);
    OK(MPI_File_read_at_all(file, 100, in, 12, MPI_INT, &status));
    count_is(&status, MPI_INT, 0);
    OK(MPI_File_seek(file, -2, MPI_SEEK_END));
    OK(MPI_File_get_position(file, &offset));
    SAME(offset, 4);
    OK(MPI_File_read(file, in, 1, MPI_INT, &status));
    SAME(in[0], 40 + rank);
    FAILS(MPI_File_seek(file, -100, MPI_SEEK_CUR), MPI_ERR_ARG);
    /* The file is cut; what is behind its end is gone. */
    OK(MPI_File_set_size(file, 4 * size));
    OK(MPI_File_preallocate(file, 8 * size));
    OK(MPI_File_get_size(file, &bytes));
    SAME(bytes, 8 * size);
    OK(MPI_File_read_at_all(file, 0, in, 3, MPI_INT, &status));
    count_is(&status, MPI_INT, 2);
    CHECK(in[0] == rank && in[1] == 0, "%d %d", in[0], in[1]);
    OK(MPI_File_close(&file));
}

/* The portable representation: big-endian, with sizes of its own. */
static void external32(void) {
    long longs[3] = {1, -2, 3 + rank}, in[3] = {0};
    unsigned char raw[12];
    MPI_Aint extent;
    MPI_Offset bytes;
    MPI_Status status;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_File_set_view(file, 0, MPI_LONG, MPI_LONG, "external32", MPI_INFO_NULL));
    OK(MPI_File_get_type_extent(file, MPI_LONG, &extent));
    SAME(extent, 4);
    OK(MPI_File_write_at_all(file, 3 * rank, longs, 3, MPI_LONG, &status));
    count_is(&status, MPI_LONG, 3);
    OK(MPI_File_get_size(file, &bytes));
    SAME(bytes, 12 * size);
    OK(MPI_File_read_at_all(file, 3 * rank, in, 3, MPI_LONG, &status));
    count_is(&status, MPI_LONG, 3);
    CHECK(memcmp(in, longs, sizeof in) == 0, "%ld %ld %ld", in[0], in[1], in[2]);
    OK(MPI_File_read_at_all(file, 3 * size - 2, in, 3, MPI_LONG, &status));
    count_is(&status, MPI_LONG, 2);
    SAME(in[0], -2);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 12 * rank, raw, 12, MPI_BYTE, &status));
    const unsigned char wanted[12] = {0, 0, 0, 1, 255, 255, 255, 254, 0, 0, 0, (unsigned char)(3 + rank)};
    CHECK(memcmp(raw, wanted, 12) == 0, "bytes of external32");
    OK(MPI_File_close(&file));
}

/* A representation of the program's own: each int has eight bytes, negated. */
static int extent_of(MPI_Datatype type, MPI_Aint *extent, void *state) {
    int bytes;
    ++*(int *)state;
    MPI_Type_size(type, &bytes);
    *extent = 2 * bytes;
    return MPI_SUCCESS;
}

static int written(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state) {
    ++*(int *)state;
    if (type != MPI_INT) return MPI_ERR_TYPE;
    for (int i = 0; i < count; i++) ((long long *)file)[i] = -(long long)((int *)user)[position + i];
    return MPI_SUCCESS;
}

static int taken(void *user, MPI_Datatype type, int count, void *file, MPI_Offset position, void *state) {
    ++*(int *)state;
    if (type != MPI_INT) return MPI_ERR_TYPE;
    for (int i = 0; i < count; i++) ((int *)user)[position + i] = (int)-((long long *)file)[i];
    return MPI_SUCCESS;
}

static void registered(void) {
    static int calls;
    int data[4], in[4] = {0};
    long long raw;
    MPI_Offset bytes;
    MPI_Status status;
    MPI_File file = opened(MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    OK(MPI_Register_datarep("negated", taken, written, extent_of, &calls));
    FAILS(MPI_Register_datarep("negated", taken, written, extent_of, &calls), MPI_ERR_DUP_DATAREP);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "unknown", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_DATAREP);
    OK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "negated", MPI_INFO_NULL));
    for (int i = 0; i < 4; i++) data[i] = 10 * rank + i;
    OK(MPI_File_write_at_all(file, 4 * rank, data, 4, MPI_INT, &status));
    OK(MPI_File_get_size(file, &bytes));
    SAME(bytes, 32 * size);
    OK(MPI_File_read_at_all(file, 4 * rank, in, 4, MPI_INT, &status));
    count_is(&status, MPI_INT, 4);
    CHECK(memcmp(in, data, sizeof in) == 0, "through the representation");
    FAILS(MPI_File_write_at_all(file, 0, data, 2, MPI_UNSIGNED, &status), MPI_ERR_CONVERSION);
    CHECK(calls > 2, "%d calls of the functions", calls);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_at_all(file, 32 * rank + 8, &raw, 8, MPI_BYTE, &status));
    SAME(raw, -(10 * rank + 1));
    OK(MPI_File_close(&file));
}

static void facts(void) {
    MPI_Info info, used;
    MPI_Group group, world;
    char value[64];
    int flag, result, amode, length = sizeof value;
    MPI_File file;
    char prefixed[160];
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "cb_buffer_size", "1048576"));
    OK(MPI_Info_set(info, "no_such_hint", "1"));
    snprintf(prefixed, sizeof prefixed, "ufs:%s", name);
    OK(MPI_File_open(MPI_COMM_WORLD, prefixed, MPI_MODE_CREATE | MPI_MODE_WRONLY, info, &file));
    OK(MPI_Info_free(&info));
    OK(MPI_File_get_info(file, &used));
    OK(MPI_Info_get_string(used, "cb_buffer_size", &length, value, &flag));
    CHECK(flag && strcmp(value, "1048576") == 0, "cb_buffer_size");
    OK(MPI_Info_get_string(used, "no_such_hint", &length, value, &flag));
    CHECK(!flag, "an ignored hint is absent");
    OK(MPI_Info_free(&used));
    OK(MPI_File_get_group(file, &group));
    OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    OK(MPI_Group_compare(group, world, &result));
    SAME(result, MPI_IDENT);
    OK(MPI_Group_free(&group));
    OK(MPI_Group_free(&world));
    OK(MPI_File_get_amode(file, &amode));
    SAME(amode, MPI_MODE_CREATE | MPI_MODE_WRONLY);
    OK(MPI_File_set_atomicity(file, 1));
    OK(MPI_File_get_atomicity(file, &flag));
    SAME(flag, 1);
    CHECK(MPI_File_fromint(MPI_File_toint(file)) == file, "a file as an integer");
    OK(MPI_File_write_ordered(file, "abc", 3, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_File_close(&file));
    /* Pointers of a file that is appended to begin at its end. */
    MPI_Offset place;
    file = opened(MPI_MODE_APPEND | MPI_MODE_RDWR);
    OK(MPI_File_get_position(file, &place));
    SAME(place, 3 * size);
    OK(MPI_File_get_position_shared(file, &place));
    SAME(place, 3 * size);
    OK(MPI_File_close(&file));
    /* A sequential file has the shared pointer only. */
    file = opened(MPI_MODE_RDONLY | MPI_MODE_SEQUENTIAL);
    char byte;
    FAILS(MPI_File_read_at(file, 0, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_UNSUPPORTED_OPERATION);
    OK(MPI_File_set_view(file, MPI_DISPLACEMENT_CURRENT, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    OK(MPI_File_read_ordered(file, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    SAME(byte, "abc"[rank % 3]);
    OK(MPI_File_close(&file));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == 0) OK(MPI_File_delete(name, MPI_INFO_NULL));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    /* One rank alone. */
    snprintf(prefixed, sizeof prefixed, "%s.%d", name, rank);
    OK(MPI_File_open(MPI_COMM_SELF, prefixed, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                     MPI_INFO_NULL, &file));
    OK(MPI_File_write_shared(file, &rank, 1, MPI_INT, MPI_STATUS_IGNORE));
    OK(MPI_File_get_position_shared(file, &place));
    SAME(place, sizeof rank);
    OK(MPI_File_close(&file));
}

/* Threads of this process that access files. */
static int workers(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *task; tasks && (task = readdir(tasks));) {
        char path[300], text[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *comm = fopen(path, "r");
        if (!comm) continue;
        if (fgets(text, sizeof text, comm)) count += !strncmp(text, "fishplate files", 15);
        fclose(comm);
    }
    if (tasks) closedir(tasks);
    return count;
}

/* The number of workers once those that have ended are gone: the kernel lists a thread a moment longer than a join of it waits. */
static int workers_left(void) {
    for (int tries = 0; tries < 5000 && workers() > 0; tries++) usleep(1000);
    return workers();
}

/* A thread exists from the first nonblocking access on, until its last file is closed. A request
 * that is freed ends with the file at the latest, and cancelling it changes nothing. */
static void worker(int wanted) {
    MPI_File files[2];
    MPI_Request request;
    MPI_Status status;
    int out = rank + 1, in = 0, cancelled = 1;
    for (int i = 0; i < 2; i++) files[i] = opened(MPI_MODE_CREATE | MPI_MODE_RDWR);
    OK(MPI_File_write_at_all(files[0], 4 * rank, &out, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(workers(), 0);
    OK(MPI_File_iwrite_at(files[0], 4 * rank, &out, 1, MPI_INT, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    SAME(workers(), wanted);
    OK(MPI_Test_cancelled(&status, &cancelled));
    SAME(cancelled, 0);
    OK(MPI_File_iread_at(files[1], 4 * rank, &in, 1, MPI_INT, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(in, out);
    out = 100 + rank;
    OK(MPI_File_iwrite_at(files[1], 4 * rank, &out, 1, MPI_INT, &request));
    OK(MPI_Request_free(&request));
    OK(MPI_File_close(&files[1]));
    OK(MPI_File_read_at(files[0], 4 * rank, &in, 1, MPI_INT, MPI_STATUS_IGNORE));
    SAME(in, out);
    OK(MPI_File_close(&files[0]));
    SAME(workers_left(), 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fishplate-files-%d", folder ? folder : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    forms();
    shared_pointer();
    views();
    external32();
    registered();
    facts();
    worker(argc > 1 ? 0 : 1);
    return finish();
}
