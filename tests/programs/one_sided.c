/* Operations on windows: every predefined operation on every kind of element, pairs, derived
 * datatypes, requests, and errors. */
#include "check.h"

enum { COUNT = 9 };

/* One vector of operands of each rank is combined by all ranks; the result is compared with that of
 * MPI_Reduce. */
#define COMBINED(type, mpi_type, op) \
    do { \
        type mine[COUNT], window[COUNT], reduced[COUNT]; \
        MPI_Win win; \
        for (int i = 0; i < COUNT; i++) mine[i] = (type)((rank * 5 + i * 3) % 7 + 1); \
        OK(MPI_Reduce(mine, reduced, COUNT, mpi_type, op, 0, MPI_COMM_WORLD)); \
        memcpy(window, mine, sizeof mine); /* the operands of rank 0 */ \
        OK(MPI_Win_create(window, sizeof window, sizeof(type), MPI_INFO_NULL, MPI_COMM_WORLD, &win)); \
        OK(MPI_Win_fence(0, win)); \
        if (rank > 0) OK(MPI_Accumulate(mine, COUNT, mpi_type, 0, 0, COUNT, mpi_type, op, win)); \
        OK(MPI_Win_fence(0, win)); \
        if (rank == 0) CHECK(memcmp(window, reduced, sizeof window) == 0, #mpi_type " " #op); \
        OK(MPI_Win_free(&win)); \
    } while (0)

#define INTEGERS(type, mpi_type) \
    do { \
        COMBINED(type, mpi_type, MPI_SUM); \
        COMBINED(type, mpi_type, MPI_PROD); \
        COMBINED(type, mpi_type, MPI_MIN); \
        COMBINED(type, mpi_type, MPI_MAX); \
        COMBINED(type, mpi_type, MPI_BAND); \
        COMBINED(type, mpi_type, MPI_BOR); \
        COMBINED(type, mpi_type, MPI_BXOR); \
        COMBINED(type, mpi_type, MPI_LAND); \
        COMBINED(type, mpi_type, MPI_LOR); \
        COMBINED(type, mpi_type, MPI_LXOR); \
    } while (0)

static void operations(void) {
    INTEGERS(int, MPI_INT);
    INTEGERS(unsigned char, MPI_UNSIGNED_CHAR);
    INTEGERS(int64_t, MPI_INT64_T);
    INTEGERS(uint16_t, MPI_UINT16_T);
    INTEGERS(MPI_Aint, MPI_AINT);
    COMBINED(double, MPI_DOUBLE, MPI_SUM);
    COMBINED(double, MPI_DOUBLE, MPI_PROD);
    COMBINED(float, MPI_FLOAT, MPI_MAX);
    COMBINED(unsigned char, MPI_BYTE, MPI_BXOR);
    COMBINED(unsigned char, MPI_C_BOOL, MPI_LOR);
}

static void pairs(void) {
    struct { double value; int place; } mine[3], window[3];
    MPI_Win win;
    memset(mine, 0, sizeof mine), memset(window, 0, sizeof window);
    for (int i = 0; i < 3; i++) {
        mine[i].value = (rank + i) % size, mine[i].place = rank;
        window[i].value = 1000, window[i].place = 1000;
    }
    OK(MPI_Win_create(window, sizeof window, sizeof window[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, 3, MPI_DOUBLE_INT, size - 1, 0, 3, MPI_DOUBLE_INT, MPI_MINLOC, win));
    OK(MPI_Win_fence(0, win));
    for (int i = 0; i < 3 && rank == size - 1; i++) {
        CHECK(window[i].value == 0, "value %g", window[i].value);
        SAME(window[i].place, ((size - i) % size + size) % size);
    }
    OK(MPI_Win_free(&win));
}

/* The upper triangle of a matrix is added to the lower triangle of another rank's. */
static void derived(void) {
    enum { N = 6 };
    int mine[N][N], window[N][N], lengths[N], upper[N], lower[N];
    MPI_Datatype up, down;
    MPI_Win win;
    int total = 0;
    for (int i = 0; i < N; i++) {
        lengths[i] = N - i, upper[i] = i * N + i, lower[i] = (N - 1 - i) * N;
        total += lengths[i];
        for (int j = 0; j < N; j++) mine[i][j] = rank * 100 + i * N + j, window[i][j] = 1;
    }
    OK(MPI_Type_indexed(N, lengths, upper, MPI_INT, &up));
    OK(MPI_Type_indexed(N, lengths, lower, MPI_INT, &down));
    OK(MPI_Type_commit(&up));
    OK(MPI_Type_commit(&down));
    OK(MPI_Win_create(window, sizeof window, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Accumulate(mine, 1, up, (rank + 1) % size, 0, 1, down, MPI_SUM, win));
    OK(MPI_Win_fence(0, win));
    int left = (rank + size - 1) % size;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            int from = N - 1 - i; /* the row of `up` whose data arrived in this row */
            int expected = j < N - from ? 1 + left * 100 + from * N + from + j : 1;
            SAME(window[i][j], expected);
        }
    int result[N * N], packed[N * N];
    memset(result, 0xff, sizeof result);
    for (int i = 0; i < total; i++) packed[i] = i;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win));
    OK(MPI_Get_accumulate(packed, total, MPI_INT, result, total, MPI_INT, rank, 0, 1, down, MPI_REPLACE, win));
    OK(MPI_Win_unlock(rank, win));
    SAME(result[0], 1 + left * 100);
    SAME(result[total], -1);
    SAME(window[N - 1][0], 0);
    SAME(window[0][0], total - 1);
    OK(MPI_Type_free(&up));
    OK(MPI_Type_free(&down));
    OK(MPI_Win_free(&win));
}

static void requests(void) {
    long window[2] = {0, rank}, one = 1, old = -1, read = -1, put = 40 + rank;
    MPI_Request all[4];
    MPI_Win win;
    OK(MPI_Win_create(window, sizeof window, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Win_lock_all(0, win));
    int right = (rank + 1) % size;
    OK(MPI_Rget(&read, 1, MPI_LONG, right, 1, 1, MPI_LONG, win, &all[0]));
    OK(MPI_Wait(&all[0], MPI_STATUS_IGNORE));
    SAME(read, right);
    OK(MPI_Rget_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win, &all[0]));
    OK(MPI_Raccumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win, &all[1]));
    OK(MPI_Rput(&put, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &all[2]));
    OK(MPI_Rget(&put, 1, MPI_LONG, MPI_PROC_NULL, 0, 1, MPI_LONG, win, &all[3]));
    OK(MPI_Waitall(4, all, MPI_STATUSES_IGNORE));
    CHECK(old >= 0 && old < 2 * size, "%ld", old);
    SAME(put, 40 + rank);
    OK(MPI_Win_flush_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Fetch_and_op(NULL, &read, MPI_LONG, 0, 0, MPI_NO_OP, win));
    OK(MPI_Win_flush(0, win));
    SAME(read, 2 * size);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    long compare = 2 * size, swap = -7;
    OK(MPI_Compare_and_swap(&swap, &compare, &old, MPI_LONG, 0, 0, win));
    OK(MPI_Win_flush_local(0, win));
    OK(MPI_Win_unlock_all(win));
    CHECK(old == 2 * size || old == -7, "%ld", old);
    OK(MPI_Win_free(&win));
}

static void nothing(void *in, void *inout, int *count, MPI_Datatype *type) {
    (void)in, (void)inout, (void)count, (void)type;
}

static void refused(void) {
    int window[4] = {0}, value = 1;
    MPI_Win win;
    MPI_Op mine;
    OK(MPI_Win_create(window, sizeof window, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(0, win));
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(&value, 1, MPI_INT, 0, -1, 1, MPI_INT, win), MPI_ERR_DISP);
    FAILS(MPI_Put(&value, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    FAILS(MPI_Put(&value, -1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Put(&value, 1, MPI_DATATYPE_NULL, 0, 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    OK(MPI_Op_create(nothing, 1, &mine));
    FAILS(MPI_Accumulate(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, mine, win), MPI_ERR_OP);
    OK(MPI_Op_free(&mine));
    FAILS(MPI_Fetch_and_op(&value, &value, MPI_FLOAT, 0, 0, MPI_BAND, win), MPI_ERR_OP);
    FAILS(MPI_Win_lock(0, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_fence(1, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    operations();
    pairs();
    derived();
    requests();
    refused();
    return finish();
}
