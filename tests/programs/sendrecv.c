/* Sendrecv and Sendrecv_replace, with contiguous and with scattered data. */
#include "check.h"

enum { MOST = 200000 };

static void plain(int right, int left) {
    unsigned char *out = allocate(MOST), *in = allocate(MOST);
    for (int bytes = 0; bytes <= MOST; bytes = bytes * 3 + 1) {
        MPI_Status status;
        fill(out, bytes, rank);
        OK(MPI_Sendrecv(out, bytes, MPI_BYTE, right, 3, in, MOST, MPI_BYTE, left, 3, MPI_COMM_WORLD,
                        &status));
        SAME(count_of(&status, MPI_BYTE), bytes);
        SAME(wrong(in, bytes, left), -1);
        OK(MPI_Sendrecv_replace(out, bytes, MPI_BYTE, right, 4, left, MPI_ANY_TAG, MPI_COMM_WORLD,
                                &status));
        SAME(status.MPI_TAG, 4);
        SAME(wrong(out, bytes, left), -1);
    }
    free(out);
    free(in);
}

/* Columns of a matrix out, rows in; then the columns are replaced in place. */
static void scattered(int right, int left) {
    enum { ROWS = 120, COLUMNS = 50 };
    static int matrix[ROWS][COLUMNS], line[ROWS];
    MPI_Datatype column;
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column));
    OK(MPI_Type_commit(&column));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) matrix[i][j] = rank * 1000000 + i * 1000 + j;
    OK(MPI_Sendrecv(&matrix[0][7], 1, column, right, 1, line, ROWS, MPI_INT, left, 1,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS; i++) SAME(line[i], left * 1000000 + i * 1000 + 7);
    OK(MPI_Sendrecv_replace(&matrix[0][9], 1, column, right, 2, left, 2, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            SAME(matrix[i][j], (j == 9 ? left : rank) * 1000000 + i * 1000 + j);
    OK(MPI_Type_free(&column));
}

/* The ends of a line of ranks have MPI_PROC_NULL on one side. */
static void line_of_ranks(void) {
    int up = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, down = rank ? rank - 1 : MPI_PROC_NULL;
    int out = rank, in = -7;
    MPI_Status status;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, up, 0, &in, 1, MPI_INT, down, 0, MPI_COMM_WORLD, &status));
    SAME(in, rank ? rank - 1 : -7);
    OK(MPI_Sendrecv_replace(&out, 1, MPI_INT, down, 0, up, 0, MPI_COMM_WORLD, &status));
    SAME(out, rank + 1 < size ? rank + 1 : rank);
}

/* The nonblocking forms of MPI 4. */
static void nonblocking(int right, int left) {
    int out = rank, in = -1;
    MPI_Request request;
    OK(MPI_Isendrecv(&out, 1, MPI_INT, right, 0, &in, 1, MPI_INT, left, 0, MPI_COMM_WORLD,
                     &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(in, left);
    OK(MPI_Isendrecv_replace(&out, 1, MPI_INT, right, 0, left, 0, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    SAME(out, left);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    plain(right, left);
    plain(left, right);
    plain(rank, rank);
    scattered(right, left);
    line_of_ranks();
    nonblocking(right, left);
    return finish();
}
