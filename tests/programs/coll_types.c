/* Collectives with derived datatypes: columns of matrices, gaps, and send and receive types that
 * differ though their signatures match. */
#include "check.h"

enum { ROWS = 40, COLUMNS = 24 };
static int matrix[ROWS][COLUMNS];

static int cell(int r, int i, int j) { return r * 1000000 + i * 1000 + j; }

static void reset(void) {
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) matrix[i][j] = cell(rank, i, j);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Datatype column, next_column;
    OK(MPI_Type_vector(ROWS, 1, COLUMNS, MPI_INT, &column));
    OK(MPI_Type_create_resized(column, 0, sizeof(int), &next_column));
    OK(MPI_Type_commit(&next_column));
    OK(MPI_Type_free(&column));
    int *lines = allocate(sizeof(int) * (size_t)ROWS * size);

    for (int root = 0; root < size; root++) {
        /* Two columns broadcast; the others stay. */
        reset();
        OK(MPI_Bcast(&matrix[0][3], 2, next_column, root, MPI_COMM_WORLD));
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < COLUMNS; j++)
                SAME(matrix[i][j], cell(j == 3 || j == 4 ? root : rank, i, j));

        /* A column of each becomes a row at the root, and a row a column. */
        reset();
        OK(MPI_Gather(&matrix[0][5], 1, next_column, lines, ROWS, MPI_INT, root, MPI_COMM_WORLD));
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i < ROWS; i++) SAME(lines[r * ROWS + i], cell(r, i, 5));
        int line[ROWS];
        for (int i = 0; i < ROWS; i++) line[i] = cell(rank, i, 77);
        OK(MPI_Gather(line, ROWS, MPI_INT, matrix, 1, next_column, root, MPI_COMM_WORLD));
        for (int r = 0; r < size && rank == root; r++)
            for (int i = 0; i < ROWS; i++) SAME(matrix[i][r], cell(r, i, 77));

        reset();
        OK(MPI_Scatter(matrix, 1, next_column, line, ROWS, MPI_INT, root, MPI_COMM_WORLD));
        for (int i = 0; i < ROWS; i++) SAME(line[i], cell(root, i, rank));
    }

    reset();
    OK(MPI_Allgather(&matrix[0][1], 1, next_column, lines, ROWS, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS; i++) SAME(lines[r * ROWS + i], cell(r, i, 1));

    reset();
    OK(MPI_Alltoall(matrix, 1, next_column, lines, ROWS, MPI_INT, MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < ROWS; i++) SAME(lines[r * ROWS + i], cell(r, i, rank));

    reset();
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, matrix, 1, next_column, MPI_COMM_WORLD));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            SAME(matrix[i][j], j < size ? cell(j, i, rank) : cell(rank, i, j));

    /* Alltoallw: a column to even ranks, single ints to odd ones. */
    int counts[64], places[64], in_counts[64], in_places[64];
    MPI_Datatype out_types[64], in_types[64];
    for (int r = 0; r < size; r++) {
        counts[r] = r % 2 ? 2 : 1;
        places[r] = r * (int)sizeof(int);
        out_types[r] = r % 2 ? MPI_INT : next_column;
        in_counts[r] = rank % 2 ? 2 : ROWS;
        in_places[r] = r * ROWS * (int)sizeof(int);
        in_types[r] = MPI_INT;
    }
    reset();
    OK(MPI_Alltoallw(matrix, counts, places, out_types, lines, in_counts, in_places, in_types,
                     MPI_COMM_WORLD));
    for (int r = 0; r < size; r++)
        for (int i = 0; i < in_counts[r]; i++)
            SAME(lines[r * ROWS + i], rank % 2 ? cell(r, 0, rank + i) : cell(r, i, rank));

    OK(MPI_Type_free(&next_column));
    free(lines);
    return finish();
}
