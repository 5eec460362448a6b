/* Heat in a square plate whose upper edge is hot: Jacobi's method on N x N points, over a grid of ranks.
   Each step exchanges the edges of the ranks' blocks with four neighbours and adds up the change. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int block(int points, int parts, int part) { return points / parts + (part < points % parts); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int points = argc > 1 ? atoi(argv[1]) : 1024, steps = argc > 2 ? atoi(argv[2]) : 100;
  int size, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, place[2], up, down, left, right;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  if (points < dims[0] || steps < 1) {
    fprintf(stderr, "usage: heat [POINTS [STEPS]], with at least one point a rank\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, place);
  MPI_Cart_shift(grid, 0, 1, &up, &down);
  MPI_Cart_shift(grid, 1, 1, &left, &right);

  /* A block has a border of one point on each side: row i, column j is at [i * wide + j]. */
  int rows = block(points, dims[0], place[0]), columns = block(points, dims[1], place[1]), wide = columns + 2;
  double *now = calloc((size_t)(rows + 2) * wide, sizeof *now), *next = calloc((size_t)(rows + 2) * wide, sizeof *next);
  if (!now || !next) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int j = 0; j < wide && up == MPI_PROC_NULL; j++) now[j] = next[j] = 100;
  MPI_Datatype column;
  MPI_Type_vector(rows, 1, wide, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);

  double start = MPI_Wtime(), change = 0;
  for (int step = 0; step < steps; step++) {
    MPI_Request edges[8];
    MPI_Irecv(now + 1, columns, MPI_DOUBLE, up, 0, grid, &edges[0]);
    MPI_Irecv(now + (rows + 1) * wide + 1, columns, MPI_DOUBLE, down, 0, grid, &edges[1]);
    MPI_Irecv(now + wide, 1, column, left, 0, grid, &edges[2]);
    MPI_Irecv(now + wide + columns + 1, 1, column, right, 0, grid, &edges[3]);
    MPI_Isend(now + wide + 1, columns, MPI_DOUBLE, up, 0, grid, &edges[4]);
    MPI_Isend(now + rows * wide + 1, columns, MPI_DOUBLE, down, 0, grid, &edges[5]);
    MPI_Isend(now + wide + 1, 1, column, left, 0, grid, &edges[6]);
    MPI_Isend(now + wide + columns, 1, column, right, 0, grid, &edges[7]);
    MPI_Waitall(8, edges, MPI_STATUSES_IGNORE);

    double own = 0;
    for (int i = 1; i <= rows; i++)
      for (int j = 1; j <= columns; j++) {
        int at = i * wide + j;
        next[at] = (now[at - wide] + now[at + wide] + now[at - 1] + now[at + 1]) / 4;
        own += fabs(next[at] - now[at]);
      }
    MPI_Allreduce(&own, &change, 1, MPI_DOUBLE, MPI_SUM, grid);
    double *old = now;
    now = next, next = old;
  }
  double seconds = MPI_Wtime() - start;
  if (rank == 0) printf("%d x %d points, %d steps: the last changed them by %.6f in all, %.6f s\n", points, points, steps, change, seconds);

  MPI_Type_free(&column);
  MPI_Comm_free(&grid);
  free(now), free(next);
  MPI_Finalize();
  return 0;
}
