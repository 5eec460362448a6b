/* Patterns with which other libraries have read and written wrong bytes, counted wrongly or hung: ranks with nothing to do, one rank with
 * an involved datatype among plain ones, chunks, random pieces, the end of a file inside an etype, an error of one rank. All of it with
 * several hints. */
#include "check.h"
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

static char name[128];
static MPI_Info hints;

static MPI_File opened(void) {
    MPI_File file = MPI_FILE_NULL;
    OK(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, hints, &file));
    return file;
}

/* The first bytes of the file, as a rank alone reads them after all have written. */
static unsigned char *bytes_of(MPI_File file, int bytes) {
    unsigned char *all = allocate(bytes);
    MPI_Status status;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    memset(all, 0xEE, bytes);
    OK(MPI_File_read_at(file, 0, all, bytes, MPI_BYTE, &status));
    SAME(count_of(&status, MPI_BYTE), bytes);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    return all;
}

/* The lower half of the ranks, one rank, or none has data; in turn, so that nothing of an earlier call helps. In every second turn those
 * without data use their own pointer, as PnetCDF's ranks do, while the others give an offset. */
static void nothing(void) {
    enum { BYTES = 6000 };
    unsigned char out[BYTES], in[BYTES];
    MPI_Status status;
    MPI_File file = opened();
    for (int turn = 0; turn < size + 2; turn++) {
        int has = turn < size ? rank == turn : turn == size && rank < (size + 1) / 2;
        int bytes = has ? BYTES - turn : 0;
        MPI_Offset at = (MPI_Offset)(turn * size + rank) * BYTES;
        fill(out, BYTES, turn * size + rank);
        if (has || turn % 2) OK(MPI_File_write_at_all(file, at, has ? out : NULL, bytes, MPI_BYTE, &status));
        else OK(MPI_File_write_all(file, NULL, 0, MPI_BYTE, &status));
        SAME(count_of(&status, MPI_BYTE), bytes);
        /* Those who had nothing to write read, and the others do not. */
        int from = turn < size ? turn : 0, reads = turn <= size && !has;
        memset(in, 0, BYTES);
        OK(MPI_File_sync(file));
        MPI_Offset place = (MPI_Offset)(turn * size + from) * BYTES;
        if (reads || turn % 2) OK(MPI_File_read_at_all(file, place, in, reads ? BYTES - turn : 0, MPI_BYTE, &status));
        else OK(MPI_File_read_all(file, NULL, 0, MPI_BYTE, &status));
        SAME(count_of(&status, MPI_BYTE), reads ? BYTES - turn : 0);
        if (reads) SAME(wrong(in, BYTES - turn, turn * size + from), -1);
    }
    OK(MPI_File_close(&file));
}

/* One rank reads and writes many pieces of file and memory, the others one. */
static void one_involved(void) {
    enum { PIECES = 40, BYTES = 4096 };
    unsigned char out[BYTES], in[BYTES];
    int lengths[PIECES], places[PIECES], spread[PIECES], total = 0;
    MPI_Datatype of_file, of_memory;
    MPI_File file = opened();
    for (int i = 0; i < PIECES; i++) {
        lengths[i] = 1 + i % 7;
        places[i] = 90 * i + i * i % 5;
        spread[i] = 95 * (i % 2 ? PIECES - i : i);
        total += lengths[i];
    }
    OK(MPI_Type_indexed(PIECES, lengths, places, MPI_BYTE, &of_file));
    OK(MPI_Type_indexed(PIECES, lengths, spread, MPI_BYTE, &of_memory));
    OK(MPI_Type_commit(&of_file));
    OK(MPI_Type_commit(&of_memory));
    fill(out, BYTES, 1);
    if (rank == 0) OK(MPI_File_write_at(file, 0, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    int involved = rank == size - 1;
    OK(MPI_File_set_view(file, 0, MPI_BYTE, involved ? of_file : MPI_BYTE, "native", MPI_INFO_NULL));
    memset(in, 0, BYTES);
    OK(MPI_File_read_at_all(file, 0, in, involved ? 1 : BYTES, involved ? of_memory : MPI_BYTE, MPI_STATUS_IGNORE));
    if (!involved) SAME(wrong(in, BYTES, 1), -1);
    for (int i = 0; involved && i < PIECES; i++) CHECK(memcmp(in + spread[i], out + places[i], lengths[i]) == 0, "piece %d", i);
    /* Now it writes its pieces, between which the next rank's bytes are. */
    memset(in, 0xAB, BYTES);
    OK(MPI_File_write_at_all(file, 0, in, involved ? 1 : 0, involved ? of_memory : MPI_BYTE, MPI_STATUS_IGNORE));
    unsigned char *all = bytes_of(file, BYTES);
    for (int i = 0; i < PIECES; i++) memset(out + places[i], 0xAB, lengths[i]);
    CHECK(memcmp(all, out, BYTES) == 0, "pieces that one rank writes");
    free(all);
    OK(MPI_Type_free(&of_file));
    OK(MPI_Type_free(&of_memory));
    OK(MPI_File_close(&file));
}

/* An array of ROWS × COLUMNS shorts in chunks of HIGH × WIDE, each of which is contiguous in the file; the chunks' order is not the
 * array's, and those at the edges are not full. */
enum { ROWS = 37, COLUMNS = 29, HIGH = 8, WIDE = 7, DOWN = 5, ACROSS = 5, CHUNK = HIGH * WIDE * (int)sizeof(short) };

static int chunk_place(int down, int across) { return (7 * (down * ACROSS + across) % (DOWN * ACROSS)) * CHUNK; }

/* The rows and columns [from, to) of the array, as types of the file and of the memory that holds the whole array. */
static void slab(const int from[2], const int to[2], MPI_Datatype *of_file, MPI_Datatype *of_memory) {
    const int whole[2] = {ROWS, COLUMNS}, chunk[2] = {HIGH, WIDE};
    MPI_Datatype file_types[DOWN * ACROSS], memory_types[DOWN * ACROSS];
    MPI_Aint places[DOWN * ACROSS], zeros[DOWN * ACROSS];
    int ones[DOWN * ACROSS], count = 0;
    /* By the place in the file, as filetypes ask for. */
    for (int place = 0; place < DOWN * ACROSS * CHUNK; place += CHUNK)
        for (int number = 0; number < DOWN * ACROSS; number++) {
            int at[2] = {number / ACROSS * HIGH, number % ACROSS * WIDE}, begin[2], sizes[2], inside[2], empty = 0;
            if (chunk_place(number / ACROSS, number % ACROSS) != place) continue;
            for (int i = 0; i < 2; i++) {
                int end = to[i] < at[i] + chunk[i] ? to[i] : at[i] + chunk[i];
                begin[i] = from[i] > at[i] ? from[i] : at[i];
                sizes[i] = end - begin[i];
                inside[i] = begin[i] - at[i];
                empty |= sizes[i] <= 0;
            }
            if (empty) continue;
            OK(MPI_Type_create_subarray(2, chunk, sizes, inside, MPI_ORDER_C, MPI_SHORT, &file_types[count]));
            OK(MPI_Type_create_subarray(2, whole, sizes, begin, MPI_ORDER_C, MPI_SHORT, &memory_types[count]));
            places[count] = place;
            zeros[count] = 0;
            ones[count++] = 1;
        }
    OK(MPI_Type_create_struct(count, ones, places, file_types, of_file));
    OK(MPI_Type_create_struct(count, ones, zeros, memory_types, of_memory));
    OK(MPI_Type_commit(of_file));
    OK(MPI_Type_commit(of_memory));
    for (int i = 0; i < count; i++) {
        OK(MPI_Type_free(&file_types[i]));
        OK(MPI_Type_free(&memory_types[i]));
    }
}

static void chunks(void) {
    short array[ROWS][COLUMNS], seen[ROWS][COLUMNS];
    MPI_Datatype of_file, of_memory;
    MPI_File file = opened();
    int from[2] = {ROWS * rank / size, 0}, to[2] = {ROWS * (rank + 1) / size, COLUMNS};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) array[i][j] = (short)(1000 * (i % 30) + j + 1);
    OK(MPI_File_set_size(file, DOWN * ACROSS * CHUNK));
    slab(from, to, &of_file, &of_memory);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, of_file, "native", MPI_INFO_NULL));
    OK(MPI_File_write_at_all(file, 0, array, 1, of_memory, MPI_STATUS_IGNORE));
    OK(MPI_Type_free(&of_file));
    OK(MPI_Type_free(&of_memory));
    unsigned char *all = bytes_of(file, DOWN * ACROSS * CHUNK);
    for (int i = 0; i < DOWN * HIGH; i++)
        for (int j = 0; j < ACROSS * WIDE; j++) {
            short value, wanted = i < ROWS && j < COLUMNS ? array[i][j] : 0;
            memcpy(&value, all + chunk_place(i / HIGH, j / WIDE) + (i % HIGH * WIDE + j % WIDE) * (int)sizeof(short), sizeof value);
            CHECK(value == wanted, "%d, not %d, in row %d and column %d", value, wanted, i, j);
        }
    free(all);
    /* Others read: columns, which reach into each other. */
    from[0] = 0, to[0] = ROWS;
    from[1] = COLUMNS * rank / size / 2, to[1] = COLUMNS * (rank + 1) / size;
    slab(from, to, &of_file, &of_memory);
    OK(MPI_File_set_view(file, 0, MPI_BYTE, of_file, "native", MPI_INFO_NULL));
    memset(seen, 0, sizeof seen);
    OK(MPI_File_read_all(file, seen, 1, of_memory, MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) SAME(seen[i][j], j >= from[1] && j < to[1] ? array[i][j] : 0);
    OK(MPI_Type_free(&of_file));
    OK(MPI_Type_free(&of_memory));
    OK(MPI_File_close(&file));
}

static unsigned next_random(unsigned *state) { return *state = *state * 1664525u + 1013904223u, *state >> 16; }

/* Pieces of random lengths, dealt to the ranks at random, with gaps; each way of writing gives the same file, and each way of reading the
 * same bytes. */
static void random_pieces(unsigned seed) {
    enum { PIECES = 60, MOST = 40 };
    int lengths[PIECES], places[PIECES], count = 0, bytes = 0, mine = 0;
    unsigned char out[PIECES * MOST], in[PIECES * MOST];
    unsigned state = seed;
    MPI_Datatype type;
    MPI_File file = opened();
    unsigned char *wanted = allocate(PIECES * MOST * 2);
    memset(wanted, 0, PIECES * MOST * 2);
    for (int i = 0; i < PIECES; i++) {
        int length = 1 + (int)(next_random(&state) % MOST), owner = (int)(next_random(&state) % (unsigned)size);
        for (int j = 0; j < length; j++) wanted[bytes + j] = byte_at(bytes + j, seed);
        if (owner == rank) {
            memcpy(out + mine, wanted + bytes, length);
            lengths[count] = length;
            places[count++] = bytes;
            mine += length;
        }
        bytes += length + (next_random(&state) % 3 ? 0 : (int)(next_random(&state) % MOST));
    }
    OK(MPI_Type_indexed(count, lengths, places, MPI_BYTE, &type));
    OK(MPI_Type_commit(&type));
    for (int way = 0; way < 4; way++) {
        MPI_Request request;
        OK(MPI_File_set_size(file, 0));
        OK(MPI_File_set_size(file, bytes));
        /* A type without bytes is no filetype. */
        OK(MPI_File_set_view(file, 0, MPI_BYTE, count && way ? type : MPI_BYTE, "native", MPI_INFO_NULL));
        for (int way_in = 0; way_in < 2; way_in++) {
            memset(in, 0, sizeof in);
            for (int i = 0, done = 0; way == 0 && i < count; done += lengths[i++]) {
                if (!way_in) OK(MPI_File_write_at(file, places[i], out + done, lengths[i], MPI_BYTE, MPI_STATUS_IGNORE));
                else OK(MPI_File_read_at(file, places[i], in + done, lengths[i], MPI_BYTE, MPI_STATUS_IGNORE));
            }
            if (way == 1 && !way_in) OK(MPI_File_write(file, out, mine, MPI_BYTE, MPI_STATUS_IGNORE));
            else if (way == 1) OK(MPI_File_read_at(file, 0, in, mine, MPI_BYTE, MPI_STATUS_IGNORE));
            if (way == 2 && !way_in) OK(MPI_File_write_all(file, out, mine, MPI_BYTE, MPI_STATUS_IGNORE));
            else if (way == 2) OK(MPI_File_read_at_all(file, 0, in, mine, MPI_BYTE, MPI_STATUS_IGNORE));
            if (way == 3) {
                if (!way_in) OK(MPI_File_iwrite_at_all(file, 0, out, mine, MPI_BYTE, &request));
                else OK(MPI_File_iread_at_all(file, 0, in, mine, MPI_BYTE, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            }
            if (way_in) CHECK(memcmp(in, out, mine) == 0, "read in way %d with seed %u", way, seed);
        }
        unsigned char *all = bytes_of(file, bytes);
        CHECK(memcmp(all, wanted, bytes) == 0, "written in way %d with seed %u", way, seed);
        free(all);
    }
    free(wanted);
    OK(MPI_Type_free(&type));
    OK(MPI_File_close(&file));
}

/* The file ends inside an etype, and in the view's gap: each form of reading gives the bytes that are there, and tells their number. */
static void ends(void) {
    enum { ETYPES = 9, ETYPE = 12, LEFT = 7, MOST = 20 };
    unsigned char all[ETYPES * ETYPE + LEFT], in[MOST * ETYPE];
    MPI_Datatype etype, spaced, filetype;
    MPI_File file = opened();
    MPI_Status status;
    OK(MPI_Type_contiguous(ETYPE, MPI_BYTE, &etype));
    OK(MPI_Type_commit(&etype));
    OK(MPI_Type_create_resized(etype, 0, 2 * ETYPE, &filetype));
    OK(MPI_Type_create_resized(etype, 0, ETYPE, &spaced));
    OK(MPI_Type_commit(&filetype));
    OK(MPI_Type_commit(&spaced));
    fill(all, sizeof all, 3);
    if (rank == 0) OK(MPI_File_write_at(file, 0, all, sizeof all, MPI_BYTE, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int gaps = 0; gaps < 2; gaps++)
        for (int form = 0; form < 6; form++) {
            MPI_Request request;
            /* With gaps there are five etypes, 0, 2, 4, 6 and 8, and the etype that is cut is in a gap. */
            int wanted = gaps ? 5 * ETYPE : (int)sizeof all, got = -1;
            OK(MPI_File_set_view(file, 0, etype, gaps ? filetype : spaced, "native", MPI_INFO_NULL));
            memset(in, 0xEE, sizeof in);
            switch (form) {
            case 0: OK(MPI_File_read_at(file, 0, in, MOST, etype, &status)); break;
            case 1: OK(MPI_File_read_at_all(file, 0, in, MOST, etype, &status)); break;
            case 2: OK(MPI_File_read_all(file, in, MOST, etype, &status)); break;
            case 3:
                OK(MPI_File_iread_at(file, 0, in, MOST, etype, &request));
                OK(MPI_Wait(&request, &status));
                break;
            case 4:
                OK(MPI_File_iread_at_all(file, 0, in, MOST, etype, &request));
                OK(MPI_Wait(&request, &status));
                break;
            case 5:
                OK(MPI_File_read_at_all_begin(file, 0, in, MOST, etype));
                OK(MPI_File_read_at_all_end(file, in, &status));
                break;
            }
            OK(MPI_Get_elements(&status, MPI_BYTE, &got));
            /* Whole etypes, or all bytes: a library may do either. */
            CHECK(got == wanted || got == wanted / ETYPE * ETYPE, "%d bytes in form %d with gaps %d", got, form, gaps);
            for (int i = 0; i < got; i++) {
                int place = gaps ? i / ETYPE * 2 * ETYPE + i % ETYPE : i;
                CHECK(in[i] == all[place], "byte %d in form %d with gaps %d", i, form, gaps);
            }
            for (int i = got; i < MOST * ETYPE; i++) CHECK(in[i] == 0xEE, "byte %d of the rest in form %d with gaps %d", i, form, gaps);
            /* Nothing is left behind the last etype. */
            OK(MPI_File_read_at_all(file, 10, in, 1, etype, &status));
            OK(MPI_Get_elements(&status, MPI_BYTE, &got));
            SAME(got, 0);
            OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    OK(MPI_Type_free(&etype));
    OK(MPI_Type_free(&spaced));
    OK(MPI_Type_free(&filetype));
    OK(MPI_File_close(&file));
}

/* One rank may not write so far: either all ranks of a call have an error, or none, and the file works on. */
static void one_limited(int limited) {
    enum { BYTES = 3000 };
    unsigned char out[BYTES];
    int failures_here, ranks_with_error;
    struct rlimit before, small = {BYTES, BYTES};
    MPI_File file = opened();
    MPI_Datatype column;
    fill(out, BYTES, rank);
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    OK(MPI_Type_vector(BYTES, 1, size, MPI_BYTE, &column));
    OK(MPI_Type_commit(&column));
    for (int form = 0; form < 3; form++) {
        if (rank == limited) setrlimit(RLIMIT_FSIZE, &small);
        OK(MPI_File_set_view(file, form == 2 ? 2 * BYTES + rank : 0, MPI_BYTE, form == 2 ? column : MPI_BYTE, "native", MPI_INFO_NULL));
        MPI_Offset at = form == 2 ? 0 : (MPI_Offset)(rank + 2) * BYTES;
        if (form == 1) {
            MPI_Request request;
            OK(MPI_File_iwrite_at_all(file, at, out, BYTES, MPI_BYTE, &request));
            failures_here = MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        } else failures_here = MPI_File_write_at_all(file, at, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE) != MPI_SUCCESS;
        if (rank == limited) setrlimit(RLIMIT_FSIZE, &before);
        OK(MPI_Allreduce(&failures_here, &ranks_with_error, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        CHECK(ranks_with_error == 0 || ranks_with_error == size, "%d ranks have an error in form %d", ranks_with_error, form);
        /* Each rank's bytes are in one run: nobody else writes them without being told to. */
        if (hints == MPI_INFO_NULL && form < 2) SAME(ranks_with_error, size);
        OK(MPI_File_write_at_all(file, at, out, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    unsigned char *all = bytes_of(file, (2 + size) * BYTES);
    for (int i = 0; i < size * BYTES; i++) SAME(all[2 * BYTES + i], byte_at(i / size, i % size));
    free(all);
    OK(MPI_Type_free(&column));
    OK(MPI_File_close(&file));
}

/* Ranks write all over each other in atomic mode, with gaps: each call has happened as a whole, before another or after it. */
static void atomic_overlaps(void) {
    enum { COUNT = 500, STRIDE = 3 };
    unsigned char out[COUNT];
    MPI_Datatype every;
    MPI_File file = opened();
    OK(MPI_Type_create_resized(MPI_BYTE, 0, STRIDE, &every));
    OK(MPI_Type_commit(&every));
    for (int together = 0; together < 2; together++) {
        OK(MPI_File_set_size(file, COUNT * STRIDE));
        OK(MPI_File_set_atomicity(file, 1));
        OK(MPI_File_set_view(file, 0, MPI_BYTE, every, "native", MPI_INFO_NULL));
        memset(out, 10 + rank, COUNT);
        if (together) OK(MPI_File_write_at_all(file, 0, out, COUNT, MPI_BYTE, MPI_STATUS_IGNORE));
        else OK(MPI_File_write_at(file, 0, out, COUNT, MPI_BYTE, MPI_STATUS_IGNORE));
        unsigned char *all = bytes_of(file, COUNT * STRIDE);
        for (int i = 0; i < (COUNT - 1) * STRIDE + 1; i++) SAME(all[i], i % STRIDE ? 0 : all[0]);
        CHECK(all[0] >= 10 && all[0] < 10 + size, "%d", all[0]);
        free(all);
    }
    OK(MPI_Type_free(&every));
    OK(MPI_File_close(&file));
}

static const char *const sets[][4][2] = {
    {{NULL}},
    {{"romio_cb_write", "enable"}, {"romio_cb_read", "enable"}, {"cb_nodes", "2"}, {"cb_buffer_size", "512"}},
    {{"romio_ds_write", "enable"}, {"romio_ds_read", "enable"}, {"ind_wr_buffer_size", "300"}, {"romio_cb_write", "disable"}},
    {{"romio_ds_write", "disable"}, {"romio_ds_read", "disable"}, {"romio_cb_write", "disable"}, {"romio_cb_read", "disable"}},
};

int main(int argc, char **argv) {
    start(&argc, &argv);
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fishplate-file-patterns-%d", folder ? folder : "/tmp", (int)getpid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (size_t set = 0; set < sizeof sets / sizeof sets[0]; set++) {
        hints = MPI_INFO_NULL;
        if (sets[set][0][0]) {
            OK(MPI_Info_create(&hints));
            for (int i = 0; i < 4; i++) OK(MPI_Info_set(hints, sets[set][i][0], sets[set][i][1]));
        }
        int before = failures;
        nothing();
        one_involved();
        chunks();
        for (unsigned seed = 1; seed <= 8; seed++) random_pieces(seed);
        ends();
        for (int limited = 0; limited < size; limited++) one_limited(limited);
        atomic_overlaps();
        if (failures > before) fprintf(stderr, "rank %d: failures with hints %zu\n", rank, set);
        if (hints != MPI_INFO_NULL) OK(MPI_Info_free(&hints));
    }
    return finish();
}
