/* Cartesian topologies: dims_create, coordinates, shift, sub, map, and exchanges along them. */
#include "check.h"

static void dims(int nodes, int n, const int *given, const int *wanted) {
    int seen[8];
    memcpy(seen, given, sizeof(int) * n);
    OK(MPI_Dims_create(nodes, n, seen));
    for (int i = 0; i < n; i++)
        CHECK(seen[i] == wanted[i], "Dims_create(%d, %d): dimension %d is %d, not %d", nodes, n, i,
              seen[i], wanted[i]);
}

static void dimensions(void) {
    dims(6, 2, (int[]){0, 0}, (int[]){3, 2});
    dims(7, 2, (int[]){0, 0}, (int[]){7, 1});
    dims(6, 3, (int[]){0, 3, 0}, (int[]){2, 3, 1});
    dims(64, 3, (int[]){0, 0, 0}, (int[]){4, 4, 4});
    dims(1, 2, (int[]){0, 0}, (int[]){1, 1});
    dims(36, 2, (int[]){0, 0}, (int[]){6, 6});
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_Dims_create(7, 2, (int[]){0, 2}), MPI_ERR_DIMS);
}

/* A grid of 2 by 3, a torus in its second dimension. */
static void grid(void) {
    MPI_Comm comm, row, column;
    int n = -1, kind = -1, sizes[2], periods[2], at[2], me = -1, source, target;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){2, 3}, (int[]){0, 1}, 0, &comm));
    if (rank >= 6) {
        CHECK(comm == MPI_COMM_NULL, "a rank outside the grid got a communicator");
        return;
    }
    OK(MPI_Topo_test(comm, &kind));
    SAME(kind, MPI_CART);
    OK(MPI_Cartdim_get(comm, &n));
    SAME(n, 2);
    OK(MPI_Cart_get(comm, 2, sizes, periods, at));
    CHECK(sizes[0] == 2 && sizes[1] == 3 && periods[0] == 0 && periods[1] == 1, "Cart_get");
    OK(MPI_Comm_rank(comm, &me));
    SAME(me, at[0] * 3 + at[1]); /* row-major */
    int coordinates[2], r = -1;
    OK(MPI_Cart_coords(comm, 4, 2, coordinates));
    CHECK(coordinates[0] == 1 && coordinates[1] == 1, "Cart_coords of 4");
    OK(MPI_Cart_rank(comm, (int[]){1, -1}, &r)); /* wraps */
    SAME(r, 5);

    OK(MPI_Cart_shift(comm, 0, 1, &source, &target));
    SAME(source, at[0] == 0 ? MPI_PROC_NULL : me - 3);
    SAME(target, at[0] == 1 ? MPI_PROC_NULL : me + 3);
    OK(MPI_Cart_shift(comm, 1, -2, &source, &target));
    SAME(source, at[0] * 3 + (at[1] + 2) % 3);
    SAME(target, at[0] * 3 + (at[1] + 1) % 3);
    int got = -1;
    OK(MPI_Sendrecv(&me, 1, MPI_INT, target, 0, &got, 1, MPI_INT, source, 0, comm, MPI_STATUS_IGNORE));
    SAME(got, source);

    OK(MPI_Cart_sub(comm, (int[]){0, 1}, &row));
    OK(MPI_Cart_sub(comm, (int[]){1, 0}, &column));
    OK(MPI_Comm_size(row, &n));
    SAME(n, 3);
    OK(MPI_Comm_rank(row, &r));
    SAME(r, at[1]);
    OK(MPI_Comm_size(column, &n));
    SAME(n, 2);
    OK(MPI_Cart_get(row, 1, sizes, periods, coordinates));
    CHECK(sizes[0] == 3 && periods[0] == 1 && coordinates[0] == at[1], "Cart_get of a row");
    int sum = -1;
    OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, row));
    SAME(sum, at[0] * 9 + 3);

    MPI_Comm twin;
    OK(MPI_Comm_dup(comm, &twin)); /* the topology goes along */
    OK(MPI_Topo_test(twin, &kind));
    SAME(kind, MPI_CART);
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    FAILS(MPI_Cart_rank(comm, (int[]){2, 0}, &r), MPI_ERR_ARG);
    OK(MPI_Comm_free(&twin));
    OK(MPI_Comm_free(&row));
    OK(MPI_Comm_free(&column));
    OK(MPI_Comm_free(&comm));
}

/* A grid with a dimension of size 0 has no points, so no rank is part of it. */
static void no_points(void) {
    const int sizes[][2] = {{0, 2}, {2, 0}, {0, 0}, {0, 100}};
    const int periods[2] = {0, 1};
    for (int i = 0; i < 4; i++)
        for (int reorder = 0; reorder < 2; reorder++) {
            MPI_Comm comm = MPI_COMM_SELF;
            int place = -1;
            OK(MPI_Cart_create(MPI_COMM_WORLD, 2, sizes[i], periods, reorder, &comm));
            CHECK(comm == MPI_COMM_NULL, "a grid of %d by %d has ranks", sizes[i][0], sizes[i][1]);
            OK(MPI_Cart_map(MPI_COMM_WORLD, 2, sizes[i], periods, &place));
            SAME(place, MPI_UNDEFINED);
        }
    MPI_Comm comm;
    int place;
    REFUSED(MPI_Cart_create(MPI_COMM_WORLD, 2, ((int[]){0, -1}), periods, 0, &comm));
    REFUSED(MPI_Cart_map(MPI_COMM_WORLD, 2, ((int[]){-2, -3}), periods, &place));
    /* All ranks have begun the same number of operations on MPI_COMM_WORLD. */
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv) { /* on 6 or more ranks */
    start(&argc, &argv);
    int kind = -1, place = -1;
    MPI_Comm comm;
    OK(MPI_Topo_test(MPI_COMM_WORLD, &kind));
    SAME(kind, MPI_UNDEFINED);
    dimensions();
    grid();
    OK(MPI_Cart_map(MPI_COMM_WORLD, 1, &(int){2}, &(int){0}, &place));
    CHECK(place == MPI_UNDEFINED || (place >= 0 && place < 2), "Cart_map gave %d", place);
    /* No dimensions: one rank. */
    OK(MPI_Cart_create(MPI_COMM_WORLD, 0, NULL, NULL, 0, &comm));
    if (rank == 0) {
        int n = -1;
        OK(MPI_Cartdim_get(comm, &n));
        SAME(n, 0);
        OK(MPI_Comm_free(&comm));
    } else {
        CHECK(comm == MPI_COMM_NULL, "a grid of one rank has another");
    }
    FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, &(int){100}, &(int){0}, 0, &comm), MPI_ERR_ARG);
    no_points();
    return finish();
}
