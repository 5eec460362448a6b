/* CG of the NAS Parallel Benchmarks: the smallest eigenvalue of a sparse symmetric matrix by inverse iteration, each
   step of which solves a system by 25 iterations of conjugate gradients.

   The ranks form a grid of `grid_rows` x `grid_cols` and each has one block of the matrix. A vector is cut into
   `grid_cols` parts; all ranks of a grid column keep the same part. A product with the matrix gives partial sums of the
   grid row's part, which are added up along the row; then each rank swaps parts with its partner in the transposed place. */
#include "kernel.h"

static const struct {
  int order, per_vector, iterations;
  double shift, zeta;
} CLASSES[] = {{1400, 7, 15, 10, 8.5971775078648},
               {7000, 8, 15, 12, 10.362595087124},
               {14000, 11, 15, 20, 17.130235054029},
               {75000, 13, 75, 60, 22.712745482631}};
static const double RCOND = 0.1, TOLERANCE = 1e-10;
enum { INNER_ITERATIONS = 25, TAG_SUM = 1, TAG_SWAP, TAG_DOT };

static int order, grid_rows, grid_cols, grid_row, grid_col, partner;
static int first_row, last_row, first_col, last_col;
/* The block by rows: the elements of row `i` stand at row_start[i] to row_start[i + 1]. */
static int64_t *row_start;
static int *columns;
static double *elements, *partial, *received;

static int part(int number) { return (int)((int64_t)order * number / grid_cols); }

static void lay_out(void) {
  for (grid_cols = 1; grid_cols * grid_cols < ranks; grid_cols *= 2) {}
  grid_rows = ranks / grid_cols;
  int ratio = grid_cols / grid_rows;
  grid_row = rank / grid_cols;
  grid_col = rank % grid_cols;
  partner = grid_col / ratio * grid_cols + grid_row * ratio + grid_col % ratio;
  first_row = part(grid_row * ratio);
  last_row = part((grid_row + 1) * ratio);
  first_col = part(grid_col);
  last_col = part(grid_col + 1);
}

/* A random sparse vector: `wanted` different places, and 0.5 at place `own`. Returns the number of places. */
static int sparse_vector(uint64_t *state, int wanted, int own, int *places, double *values) {
  int power = 1, found = 0;
  while (power < order) power *= 2;
  while (found < wanted) {
    double value = random_next(state);
    int place = (int)(power * random_next(state));
    if (place >= order) continue;
    bool known = false;
    for (int i = 0; i < found && !known; i++) known = places[i] == place;
    if (known) continue;
    places[found] = place;
    values[found++] = value;
  }
  for (int i = 0; i < found; i++)
    if (places[i] == own) {
      values[i] = 0.5;
      return found;
    }
  places[found] = own;
  values[found] = 0.5;
  return found + 1;
}

/* Adds up elements of a row that have the same column. */
static void merge_rows(void) {
  int rows = last_row - first_row, width = last_col - first_col;
  int64_t *place = allocate((size_t)width, sizeof *place), kept = 0;
  for (int i = 0; i < width; i++) place[i] = -1;
  int64_t from = 0;
  for (int row = 0; row < rows; row++) {
    int64_t begin = kept, to = row_start[row + 1];
    for (int64_t i = from; i < to; i++) {
      int64_t *known = &place[columns[i]];
      if (*known >= begin) {
        elements[*known] += elements[i];
      } else {
        *known = kept;
        columns[kept] = columns[i];
        elements[kept++] = elements[i];
      }
    }
    from = to;
    row_start[row + 1] = kept;
  }
  free(place);
}

/* The matrix is the sum of the outer products of `order` sparse vectors with weights that fall from 1 to RCOND, plus
   RCOND - shift on the diagonal. Every rank generates all vectors and keeps what falls into its block. */
static void make_matrix(int per_vector, double shift, uint64_t state) {
  int rows = last_row - first_row, width = per_vector + 1;
  int *places = allocate((size_t)order * (size_t)width, sizeof *places), *counts = allocate((size_t)order, sizeof *counts);
  double *values = allocate((size_t)order * (size_t)width, sizeof *values);
  row_start = allocate((size_t)rows + 2, sizeof *row_start);
  for (int vector = 0; vector < order; vector++) {
    int *place = places + (size_t)vector * (size_t)width;
    int count = counts[vector] = sparse_vector(&state, per_vector, vector, place, values + (size_t)vector * (size_t)width);
    int own = 0;
    for (int i = 0; i < count; i++) own += place[i] >= first_col && place[i] < last_col;
    for (int i = 0; i < count; i++)
      if (place[i] >= first_row && place[i] < last_row) row_start[place[i] - first_row + 2] += own;
  }
  for (int row = 1; row < rows + 1; row++) row_start[row + 1] += row_start[row];
  columns = allocate((size_t)row_start[rows + 1], sizeof *columns);
  elements = allocate((size_t)row_start[rows + 1], sizeof *elements);

  double weight = 1, ratio = pow(RCOND, 1.0 / order);
  for (int vector = 0; vector < order; vector++, weight *= ratio) {
    const int *place = places + (size_t)vector * (size_t)width;
    const double *value = values + (size_t)vector * (size_t)width;
    for (int i = 0; i < counts[vector]; i++) {
      if (place[i] < first_row || place[i] >= last_row) continue;
      int64_t *next = &row_start[place[i] - first_row + 1];
      for (int j = 0; j < counts[vector]; j++) {
        if (place[j] < first_col || place[j] >= last_col) continue;
        bool diagonal = place[i] == vector && place[j] == vector;
        columns[*next] = place[j] - first_col;
        elements[(*next)++] = value[i] * value[j] * weight + (diagonal ? RCOND - shift : 0);
      }
    }
  }
  free(places);
  free(values);
  free(counts);
  merge_rows();
}

static void swap(int peer, const double *out, int out_count, double *in, int in_count, int tag) {
  MPI_Request request;
  MPI_Irecv(in, in_count, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD, &request);
  MPI_Send(out, out_count, MPI_DOUBLE, peer, tag, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* The sum over the grid row, in which the parts of a vector are all different. */
static double sum_of_row(double sum) {
  for (int step = 1; step < grid_cols; step *= 2) {
    double other;
    swap(grid_row * grid_cols + (grid_col ^ step), &sum, 1, &other, 1, TAG_DOT);
    sum += other;
  }
  return sum;
}

static double dot(const double *a, const double *b) {
  double sum = 0;
  for (int i = 0; i < last_col - first_col; i++) sum += a[i] * b[i];
  return sum_of_row(sum);
}

/* result = matrix x vector */
static void multiply(const double *vector, double *result) {
  int rows = last_row - first_row, width = last_col - first_col;
  for (int row = 0; row < rows; row++) {
    double sum = 0;
    for (int64_t i = row_start[row]; i < row_start[row + 1]; i++) sum += elements[i] * vector[columns[i]];
    partial[row] = sum;
  }
  for (int step = 1; step < grid_cols; step *= 2) {
    swap(grid_row * grid_cols + (grid_col ^ step), partial, rows, received, rows, TAG_SUM);
    for (int row = 0; row < rows; row++) partial[row] += received[row];
  }
  int partner_col = partner % grid_cols, start = part(partner_col) - first_row;
  if (partner == rank)
    memcpy(result, partial + start, (size_t)width * sizeof *result);
  else
    swap(partner, partial + start, part(partner_col + 1) - part(partner_col), result, width, TAG_SWAP);
}

/* Solves matrix x z = x approximately. Returns the norm of the residual. */
static double solve(const double *x, double *z, double *p, double *q, double *r) {
  int width = last_col - first_col;
  for (int i = 0; i < width; i++) {
    z[i] = 0;
    p[i] = r[i] = x[i];
  }
  double rho = dot(r, r);
  for (int iteration = 0; iteration < INNER_ITERATIONS; iteration++) {
    multiply(p, q);
    double alpha = rho / dot(p, q);
    for (int i = 0; i < width; i++) {
      z[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    double before = rho;
    rho = dot(r, r);
    double beta = rho / before;
    for (int i = 0; i < width; i++) p[i] = r[i] + beta * p[i];
  }
  multiply(z, q);
  for (int i = 0; i < width; i++) r[i] = x[i] - q[i];
  return sqrt(dot(r, r));
}

int main(int argc, char **argv) {
  int class = start_class(&argc, &argv, "cg", "SWAB");
  int per_vector = CLASSES[class].per_vector, iterations = CLASSES[class].iterations;
  double shift = CLASSES[class].shift;
  order = CLASSES[class].order;
  need_power_of_two("cg", 1024);
  lay_out();
  /* The specification draws one number before the matrix. */
  make_matrix(per_vector, shift, random_skip(RANDOM_SEED, 1));

  size_t width = (size_t)(last_col - first_col), rows = (size_t)(last_row - first_row);
  double *vectors[5];
  for (int i = 0; i < 5; i++) vectors[i] = allocate(width, sizeof(double));
  double *x = vectors[0], *z = vectors[1];
  partial = allocate(rows, sizeof *partial);
  received = allocate(rows, sizeof *received);

  double zeta = 0, norm = 0, began = 0;
  /* Iteration -1 touches the memory and the connections; the time and the result begin after it. */
  for (int iteration = -1; iteration < iterations; iteration++) {
    if (iteration <= 0) {
      for (size_t i = 0; i < width; i++) x[i] = 1;
    }
    if (iteration == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      began = MPI_Wtime();
    }
    norm = solve(x, z, vectors[2], vectors[3], vectors[4]);
    zeta = shift + 1 / dot(x, z);
    double scale = 1 / sqrt(dot(z, z));
    for (size_t i = 0; i < width; i++) x[i] = scale * z[i];
  }
  double seconds = MPI_Wtime() - began;
  if (rank == 0) printf("  residual %.3e\n", norm);
  bool right = verify("zeta", zeta, CLASSES[class].zeta, TOLERANCE);
  double block = per_vector * (per_vector + 1.0);
  double operations = 2.0 * iterations * order * (3 + block + INNER_ITERATIONS * (5 + block) + 3);
  return finish("CG", "SWAB"[class], seconds, operations, right);
}
