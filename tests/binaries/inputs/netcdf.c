// One netCDF file of all ranks: each writes its rows of an array, all read the whole, and an attribute holds their number.
#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 1000
#define ROWS 16

static void check(int code, int line) {
    if (code == NC_NOERR)
        return;
    fprintf(stderr, "line %d: %s\n", line, nc_strerror(code));
    MPI_Abort(MPI_COMM_WORLD, 1);
}
#define CHECK(call) check(call, __LINE__)

static double value(size_t row, size_t column) {
    return (double)row + (double)column / COLUMNS;
}

// Writes the file, reads it and returns the number of wrong values.
static int tried(const char *path, int rank, int ranks) {
    int file, dimensions[2], variable, number = 0, wrong = 0;
    size_t start[2] = {(size_t)rank * ROWS, 0}, count[2] = {ROWS, COLUMNS}, rows = (size_t)ranks * ROWS;
    double *values = malloc(rows * COLUMNS * sizeof *values);
    CHECK(nc_create_par(path, NC_NETCDF4 | NC_CLOBBER, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    CHECK(nc_def_dim(file, "row", rows, &dimensions[0]));
    CHECK(nc_def_dim(file, "column", COLUMNS, &dimensions[1]));
    CHECK(nc_def_var(file, "values", NC_DOUBLE, 2, dimensions, &variable));
    CHECK(nc_put_att_int(file, NC_GLOBAL, "ranks", NC_INT, 1, &ranks));
    CHECK(nc_enddef(file));
    CHECK(nc_var_par_access(file, variable, NC_COLLECTIVE));
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLUMNS; column++)
            values[row * COLUMNS + column] = value(start[0] + row, column);
    CHECK(nc_put_vara_double(file, variable, start, count, values));
    CHECK(nc_close(file));

    CHECK(nc_open_par(path, NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
    CHECK(nc_inq_varid(file, "values", &variable));
    CHECK(nc_get_att_int(file, NC_GLOBAL, "ranks", &number));
    CHECK(nc_get_var_double(file, variable, values));
    CHECK(nc_close(file));
    for (size_t row = 0; row < rows; row++)
        for (size_t column = 0; column < COLUMNS; column++)
            wrong += values[row * COLUMNS + column] != value(row, column);
    free(values);
    return wrong + (number != ranks);
}

int main(int argc, char **argv) {
    int rank, ranks, wrong, all;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    wrong = tried("values.nc", rank, ranks);
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks have written and read one file, %d values are wrong\n", ranks, all);
    return MPI_Finalize();
}
