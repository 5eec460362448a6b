/* Derived datatypes between ranks, small and large: sent scattered and received as a line, sent as a
 * line and received scattered, and with different layouts on both sides. */
#include "check.h"

static int value(int i) { return i * 7 + 3; }

/* `blocks` blocks of `length` ints every `stride`; `mode` picks who is scattered. */
static void vectors(int blocks, int length, int stride) {
    MPI_Datatype vector;
    int n = blocks * length, span = blocks * stride;
    int *line = allocate(sizeof(int) * n), *wide = allocate(sizeof(int) * span);
    OK(MPI_Type_vector(blocks, length, stride, MPI_INT, &vector));
    OK(MPI_Type_commit(&vector));
    for (int mode = 0; mode < 3; mode++) {
        if (rank == 1) {
            for (int i = 0; i < n; i++) line[i] = value(i);
            for (int i = 0; i < span; i++) wide[i] = -5;
            for (int i = 0; i < n; i++) wide[i / length * stride + i % length] = value(i);
            if (mode == 1) OK(MPI_Send(line, n, MPI_INT, 0, 0, MPI_COMM_WORLD));
            else OK(MPI_Send(wide, 1, vector, 0, 0, MPI_COMM_WORLD));
        } else if (rank == 0) {
            MPI_Status status;
            for (int i = 0; i < span; i++) wide[i] = -9;
            if (mode == 0) {
                OK(MPI_Recv(line, n, MPI_INT, 1, 0, MPI_COMM_WORLD, &status));
                SAME(count_of(&status, MPI_INT), n);
                for (int i = 0; i < n; i++) SAME(line[i], value(i));
            } else {
                OK(MPI_Recv(wide, 1, vector, 1, 0, MPI_COMM_WORLD, &status));
                SAME(count_of(&status, vector), 1);
                for (int i = 0; i < span; i++) {
                    int inside = i % stride < length;
                    SAME(wide[i], inside ? value(i / stride * length + i % stride) : -9);
                }
            }
        }
    }
    OK(MPI_Type_free(&vector));
    free(line);
    free(wide);
}

/* Rows on one side, columns on the other: a transposition by one message. */
static void transposition(int rows, int columns) {
    MPI_Datatype column, all;
    int *matrix = allocate(sizeof(int) * rows * columns);
    OK(MPI_Type_vector(rows, 1, columns, MPI_INT, &column));
    OK(MPI_Type_create_hvector(columns, 1, sizeof(int), column, &all));
    OK(MPI_Type_commit(&all));
    if (rank == 1) {
        for (int i = 0; i < rows * columns; i++) matrix[i] = value(i);
        OK(MPI_Ssend(matrix, 1, all, 0, 1, MPI_COMM_WORLD));
    } else if (rank == 0) {
        OK(MPI_Recv(matrix, rows * columns, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int j = 0; j < columns; j++)
            for (int i = 0; i < rows; i++) SAME(matrix[j * rows + i], value(i * columns + j));
    }
    OK(MPI_Type_free(&column));
    OK(MPI_Type_free(&all));
    free(matrix);
}

/* Absolute addresses from MPI_BOTTOM; the type is freed while the transfer is on its way. */
static void bottom(void) {
    int *a = allocate(sizeof(int) * 3), *b = allocate(sizeof(int) * 40000);
    const int lengths[] = {3, 40000};
    MPI_Aint places[2];
    MPI_Datatype type;
    MPI_Request request;
    OK(MPI_Get_address(a, &places[0]));
    OK(MPI_Get_address(b, &places[1]));
    OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < 3; i++) a[i] = rank == 1 ? i + 1 : 0;
    for (int i = 0; i < 40000; i++) b[i] = rank == 1 ? i + 4 : 0;
    if (rank == 1) {
        OK(MPI_Isend(MPI_BOTTOM, 1, type, 0, 2, MPI_COMM_WORLD, &request));
    } else if (rank == 0) {
        OK(MPI_Irecv(MPI_BOTTOM, 1, type, 1, 2, MPI_COMM_WORLD, &request));
    }
    OK(MPI_Type_free(&type));
    if (rank < 2) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int i = 0; i < 3 && rank == 0; i++) SAME(a[i], i + 1);
    for (int i = 0; i < 40000 && rank == 0; i++) SAME(b[i], i + 4);
    free(a);
    free(b);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    vectors(1, 1, 1);
    vectors(10, 1, 3);
    vectors(100, 3, 4);
    vectors(1000, 2, 2);
    vectors(30000, 1, 2);
    vectors(500, 600, 700);
    vectors(3, 100000, 100001);
    transposition(3, 5);
    transposition(300, 200);
    bottom();
    return finish();
}
