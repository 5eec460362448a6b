/* Solves a dense system of linear equations by LU with partial pivoting, with the data layout and the steps of HPL.

   The matrix of order N, with the right side as its last column, is dealt out in blocks of NB x NB to a grid of P x Q
   ranks. Each step factors a panel of NB columns in one column of ranks, sends it along the rows, swaps the rows of the
   rest and updates it. The next panel is updated, factored and sent first (look-ahead of depth 1), so that it travels
   while the rest is updated.

   With --skeleton nothing is computed and no matrix is kept, while all messages have their sizes and partners. On a
   modelled machine the computing takes the time that follows from the rates of --gflops. */
#define _GNU_SOURCE
#include "hpl_folded.h"
#include "hpl_panel.h"
#include "hpl_swap.h"

/* Parts in which the rest is updated, with a poll after each. */
enum { PARTS = 8 };
static const double THRESHOLD = 16, EPSILON = 0x1p-53;

/* ---- Panels on their course ---- */

/* Begins to send the panel along the rows of ranks. */
static void begin_send(Panel *panel) {
  int size = panel->width + panel->width * panel->width + panel->width * panel->rows;
  TIMED(MPI_Ibcast, panel->message, size, MPI_DOUBLE, col_owner(panel->first), row_comm, &panel->arrival);
}

static void end_send(Panel *panel) {
  TIMED(MPI_Wait, &panel->arrival, MPI_STATUS_IGNORE);
  if (!skeleton) return;
  uint64_t state = random_skip(RANDOM_SEED, (uint64_t)panel->first);
  for (int j = 0; j < panel->width; j++) {
    int row = panel->first + j;
    panel->pivots[j] = row + (int)((order - row) * random_next(&state));
  }
}

/* Gives the library a turn to forward the next panel. The probe never finds a message. */
static void poll(void) {
  int found;
  TIMED(MPI_Iprobe, MPI_ANY_SOURCE, MPI_ANY_TAG, idle_comm, &found, MPI_STATUS_IGNORE);
}

/* ---- Update ---- */

/* Updates `cols` own columns from `col` on: in `parts` parts, with a poll after each. */
static void update(const Panel *panel, int col, int cols, int parts) {
  if (cols == 0) return;
  swap_rows(panel, col, cols);
  int width = panel->width;
  for (int part = 0; part < parts; part++) {
    int from = (int)((long)cols * part / parts), count = (int)((long)cols * (part + 1) / parts) - from;
    charge(TRIANGLE, (double)width * width * count);
    charge(PRODUCT, 2.0 * panel->rows * width * count);
    if (!skeleton) {
      View came_up = {upper + from, (size_t)cols, 1}, square = {panel->square, (size_t)width, 1};
      View below = {panel->below, 1, (size_t)panel->rows};
      solve_lower(width, count, square, came_up);
      if (row_owner(panel->first) == grid_row)
        for (int j = 0; j < width; j++)
          store_row(part_of(came_up, j, 0).at, rows_before(panel->first) + j, col + from, count);
      subtract_product(panel->rows, count, width, below, came_up, own_part(local_rows - panel->rows, col + from));
    }
    if (parts > 1) poll();
  }
}

static void factor_matrix(Panel panels[2]) {
  place_panel(&panels[0], 0);
  if (col_owner(0) == grid_col) factor(&panels[0]);
  begin_send(&panels[0]);
  for (int first = 0, k = 0; first < order; first += block, k++) {
    Panel *panel = &panels[k % 2], *next = &panels[(k + 1) % 2];
    int end = first + panel->width, col = cols_before(end);
    end_send(panel);
    if (end < order) {
      place_panel(next, end);
      if (col_owner(end) == grid_col) {
        update(panel, col, next->width, 1);
        factor(next);
        col += next->width;
      }
      begin_send(next);
    }
    update(panel, col, local_cols - col, PARTS);
  }
}

/* Solves with the upper triangle, from the last block to the first. `x` gets the own columns' part of the solution;
   `sums` are the own columns' parts of the products with it. */
static void substitute_back(double *x, double *sums, double *piece) {
  for (int first = (order - 1) / block * block; first >= 0; first -= block) {
    int width = smaller(block, order - first), row = rows_before(first), col = cols_before(first);
    bool in_row = row_owner(first) == grid_row, in_col = col_owner(first) == grid_col;
    if (in_row) {
      for (int i = 0; i < width && !skeleton; i++)
        piece[i] = (col_owner(order) == grid_col ? *element(row + i, local_cols - 1) : 0) - sums[row + i];
      TIMED(MPI_Reduce, in_col ? MPI_IN_PLACE : piece, piece, width, MPI_DOUBLE, MPI_SUM, col_owner(first), row_comm);
    }
    if (in_row && in_col) {
      charge(TRIANGLE, (double)width * width);
      for (int i = width - 1; i >= 0 && !skeleton; i--) {
        for (int k = i + 1; k < width; k++) piece[i] -= *element(row + i, col + k) * piece[k];
        piece[i] /= *element(row + i, col + i);
      }
    }
    if (!in_col) continue;
    TIMED(MPI_Bcast, piece, width, MPI_DOUBLE, row_owner(first), col_comm);
    charge(TRIANGLE, 2.0 * width * row);
    for (int k = 0; k < width && !skeleton; k++) {
      const double *column = element(0, col + k);
      x[col + k] = piece[k];
      for (int i = 0; i < row; i++) sums[i] += column[i] * piece[k];
    }
  }
}

/* ---- The matrix, and the test of the solution ---- */

/* Elements in (-0.5, 0.5), each from its place, so that every grid of ranks has the same matrix. */
static void fill_matrix(void) {
  /* An odd distance between columns: with a power of two they would depend on each other. */
  uint64_t distance = (uint64_t)order | 1, state = 0;
  for (int col = 0; col < local_cols; col++)
    for (int row = 0; row < local_rows; row++) {
      if (row % block == 0) state = random_skip(RANDOM_SEED, (uint64_t)global_col(col) * distance + (uint64_t)global_row(row));
      *element(row, col) = random_next(&state) - 0.5;
    }
}

/* HPL's scaled residual: |Ax - b| / (eps (|A| |x| + |b|) N) with the largest row sums and elements as norms. */
static double scaled_residual(const double *x) {
  fill_matrix();
  bool has_right_side = col_owner(order) == grid_col;
  double *sums = allocate(2 * (size_t)local_rows, sizeof *sums), *sizes = sums + local_rows;
  enum { RESIDUAL, MATRIX, SOLUTION, RIGHT_SIDE, NORMS };
  double norms[NORMS] = {0};
  for (int col = 0; col < local_cols - has_right_side; col++) {
    norms[SOLUTION] = fmax(norms[SOLUTION], fabs(x[col]));
    for (int row = 0; row < local_rows; row++) {
      sums[row] += *element(row, col) * x[col];
      sizes[row] += fabs(*element(row, col));
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, sums, 2 * local_rows, MPI_DOUBLE, MPI_SUM, row_comm);
  for (int row = 0; row < local_rows; row++) {
    norms[MATRIX] = fmax(norms[MATRIX], sizes[row]);
    if (!has_right_side) continue;
    double right_side = *element(row, local_cols - 1);
    norms[RIGHT_SIDE] = fmax(norms[RIGHT_SIDE], fabs(right_side));
    norms[RESIDUAL] = fmax(norms[RESIDUAL], fabs(sums[row] - right_side));
  }
  MPI_Allreduce(MPI_IN_PLACE, norms, NORMS, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  free(sums);
  return norms[RESIDUAL] / (EPSILON * (norms[MATRIX] * norms[SOLUTION] + norms[RIGHT_SIDE]) * order);
}

/* ---- The program ---- */

static void set_place(int own) {
  grid_row = own / grid_cols;
  grid_col = own % grid_cols;
  local_rows = rows_before(order);
  local_cols = cols_before(order + 1);
}

static void set_up(Panel panels[2]) {
  TIMED(MPI_Comm_split, MPI_COMM_WORLD, grid_row, grid_col, &row_comm);
  TIMED(MPI_Comm_split, MPI_COMM_WORLD, grid_col, grid_row, &col_comm);
  TIMED(MPI_Comm_dup, MPI_COMM_WORLD, &idle_comm);
  TIMED(MPI_Type_contiguous, HEAD + 2 * block, MPI_DOUBLE, &search_type);
  TIMED(MPI_Type_commit, &search_type);
  TIMED(MPI_Op_create, keep_larger, 1, &search_op);
  size_t width = (size_t)block, rows = (size_t)local_rows, cols = (size_t)local_cols;
  void *(*buffer)(size_t, size_t) = skeleton ? allocate_folded : allocate;
  for (int i = 0; i < 2; i++) panels[i].message = buffer(width + width * width + width * rows, sizeof(double));
  search = allocate(HEAD + 2 * width, sizeof *search);
  double **buffers[] = {&leaving, &going_down, &arriving, &upper};
  for (int i = 0; i < (skeleton ? 3 : 4); i++) *buffers[i] = buffer(width * cols, sizeof(double));
  int **lists[] = {&up, &down_to, &down_from};
  for (int i = 0; i < 3; i++) *lists[i] = allocate(width, sizeof(int));
  int **tables[] = {&counts, &places, &gather_counts, &gather_places};
  for (int i = 0; i < 4; i++) *tables[i] = allocate((size_t)grid_rows, sizeof(int));
  slot_of_row = allocate((size_t)order, sizeof *slot_of_row);
  for (int i = 0; i < order; i++) slot_of_row[i] = -1;
  if (skeleton) return;
  matrix = allocate(rows * cols, sizeof *matrix);
  fill_matrix();
}

/* Factors and solves. Returns the seconds of the slowest rank, on rank 0. */
static double solve(Panel panels[2], double *x) {
  double *sums = allocate((size_t)local_rows, sizeof *sums);
  double *piece = allocate((size_t)block, sizeof *piece);
  TIMED(MPI_Barrier, MPI_COMM_WORLD);
  double began = MPI_Wtime(), longest = 0;
  factor_matrix(panels);
  substitute_back(x, sums, piece);
  pass_time();
  double seconds = MPI_Wtime() - began;
  TIMED(MPI_Reduce, &seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  free(sums);
  free(piece);
  return longest;
}

static const char USAGE[] =
    "usage: hpl N NB P Q                                 factor, solve and verify on P x Q ranks\n"
    "       hpl N NB P Q --skeleton [--gflops X[,Y[,Z]]] only the messages, and on a modelled machine the time of computing.\n"
    "                                                    X, Y and Z are each rank's rates in products, triangular\n"
    "                                                    solutions and panels (default: as X)";

static void read_arguments(int argc, char **argv) {
  int *numbers[] = {&order, &block, &grid_rows, &grid_cols}, found = 0;
  for (int i = 1; i < argc; i++) {
    char rest;
    if (strcmp(argv[i], "--skeleton") == 0) {
      skeleton = true;
    } else if (strcmp(argv[i], "--gflops") == 0 && i + 1 < argc) {
      int given = sscanf(argv[++i], "%lf,%lf,%lf%c", &rates[PRODUCT], &rates[TRIANGLE], &rates[PANEL], &rest);
      for (int kind = TRIANGLE; kind >= 0; kind--)
        if (given < KINDS - kind) rates[kind] = rates[PRODUCT];
      for (int kind = 0; kind < KINDS; kind++)
        if (given < 1 || given > KINDS || !(rates[kind] > 0)) refuse("--gflops %s: rates are numbers above 0\n%s", argv[i], USAGE);
    } else if (found == 4 || sscanf(argv[i], "%d%c", numbers[found], &rest) != 1 || *numbers[found] < 1) {
      refuse("%s: not an argument here\n%s", argv[i], USAGE);
    } else {
      found++;
    }
  }
  if (found < 4) refuse("%s", USAGE);
  if (!skeleton && rates[PRODUCT] > 0) refuse("--gflops is for --skeleton\n%s", USAGE);
  if ((long)grid_rows * grid_cols != ranks)
    refuse("hpl: a grid of %d x %d needs as many ranks, and this job has %d\n%s", grid_rows, grid_cols, ranks, USAGE);
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  read_arguments(argc, argv);
  Panel panels[2];
  set_place(rank);
  set_up(panels);
  double *x = allocate((size_t)local_cols, sizeof *x), n = order;
  double seconds = solve(panels, x), operations = n * n * (2 * n / 3 + 1.5);
  if (rank == 0) {
    printf("HPL%s N %d NB %d on %d x %d ranks: %.6f s", skeleton ? " skeleton" : "", order, block, grid_rows, grid_cols, seconds);
    if (seconds > 0) printf(", %.3f Gflop/s", operations / seconds / 1e9);
    printf("\n");
  }
  bool right = true;
  if (!skeleton) {
    double residual = scaled_residual(x);
    right = residual < THRESHOLD;
    if (rank == 0) printf("  scaled residual %.6f, limit %g\nVERIFICATION %s\n", residual, THRESHOLD, right ? "SUCCESSFUL" : "FAILED");
  }
  MPI_Finalize();
  return right ? 0 : EXIT_FAILED_VERIFICATION;
}
