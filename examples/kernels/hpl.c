/* Solves a dense system of linear equations by LU with partial pivoting, with the data layout and the steps of HPL.

   The matrix of order N, with the right side as its last column, is dealt out in blocks of NB x NB to a grid of P x Q
   ranks. Each step factors a panel of NB columns in one column of ranks, sends it along the rows, swaps the rows of the
   rest and updates it. The next panel is updated, factored and sent first (look-ahead of depth 1), so that it travels
   while the rest is updated.

   With --skeleton nothing is computed and no matrix is kept, while all messages have their sizes and partners. The time
   of computing comes from a compute trace, which --write-trace makes from the rates of --gflops. */
#include "kernel.h"

#include "hpl_blas.h"
#include "hpl_trace.h"

/* Parts in which the rest is updated, with a poll after each; columns of a panel that are factored one by one. */
enum { PARTS = 8, NARROW = 8 };
static const double THRESHOLD = 16, EPSILON = 0x1p-53;

static int order, block, grid_rows, grid_cols, grid_row, grid_col;
static bool skeleton;
static MPI_Comm row_comm, col_comm, idle_comm;
static int local_rows, local_cols;
/* The own part of the matrix, column by column, with the right side as the last column. */
static double *matrix;

/* A panel and its message: the pivots (global rows), the factored square by rows, the own rows below it by columns. */
typedef struct {
  int first, width, rows;
  double *message, *pivots, *square, *below;
  MPI_Request arrival;
} Panel;

/* Number of the first `count` indices that fall to place `own` of `places`. */
static int share(int count, int own, int places) {
  int blocks = count / block, extra = blocks % places;
  return blocks / places * block + (own < extra ? block : own == extra ? count % block : 0);
}

static int rows_before(int row) { return share(row, grid_row, grid_rows); }
static int cols_before(int col) { return share(col, grid_col, grid_cols); }
static int row_owner(int row) { return row / block % grid_rows; }
static int col_owner(int col) { return col / block % grid_cols; }
static int global_row(int own) { return (own / block * grid_rows + grid_row) * block + own % block; }
static int global_col(int own) { return (own / block * grid_cols + grid_col) * block + own % block; }

static View own_part(int row, int col) {
  return (View){matrix + (size_t)col * (size_t)local_rows + (size_t)row, 1, (size_t)local_rows};
}

static double *element(int row, int col) { return own_part(row, col).at; }

/* ---- The pivot search: one reduction for each column finds the pivot and swaps its row with the present one. ---- */

/* Places in its message; the rows of the candidate and of the present place follow. */
enum { VALUE, ROW, HAS_PRESENT, HEAD };
static double *search;
static MPI_Datatype search_type;
static MPI_Op search_op;

/* Keeps the larger candidate, of equal ones the upper, and the present row from the rank that has it. */
static void keep_larger(void *in, void *inout, int *length, MPI_Datatype *type) {
  (void)type;
  size_t row = (size_t)block * sizeof(double);
  const double *from = in;
  double *to = inout;
  for (int i = 0; i < *length; i++, from += HEAD + 2 * block, to += HEAD + 2 * block) {
    if (from[VALUE] > to[VALUE] || (from[VALUE] == to[VALUE] && from[ROW] < to[ROW])) {
      to[VALUE] = from[VALUE];
      to[ROW] = from[ROW];
      memcpy(to + HEAD, from + HEAD, row);
    }
    if (from[HAS_PRESENT] > 0) {
      to[HAS_PRESENT] = 1;
      memcpy(to + HEAD + block, from + HEAD + block, row);
    }
  }
}

static void copy_row(double *to, int row, int col, int width) {
  for (int c = 0; c < width; c++) to[c] = *element(row, col + c);
}

static void store_row(const double *from, int row, int col, int width) {
  for (int c = 0; c < width; c++) *element(row, col + c) = from[c];
}

/* The candidate of this rank among its rows from `start`. */
static void begin_search(const Panel *panel, int j, int start, int col) {
  search[VALUE] = -1;
  search[ROW] = order;
  const double *column = element(0, col + j);
  int best = -1;
  for (int i = start; i < local_rows; i++)
    if (fabs(column[i]) > search[VALUE]) {
      search[VALUE] = fabs(column[i]);
      best = i;
    }
  if (best >= 0) {
    search[ROW] = global_row(best);
    copy_row(search + HEAD, best, col, panel->width);
  }
  search[HAS_PRESENT] = row_owner(panel->first + j) == grid_row;
  if (search[HAS_PRESENT] > 0) copy_row(search + HEAD + block, start, col, panel->width);
}

/* Puts the rows in their places and eliminates column `j` from the columns up to `end`. */
static void eliminate(const Panel *panel, int j, int end, int start, int col) {
  int pivot = (int)search[ROW], width = panel->width;
  double *factored = panel->square + (size_t)j * (size_t)width;
  panel->pivots[j] = pivot;
  memcpy(factored, search + HEAD, (size_t)width * sizeof *factored);
  if (factored[j] == 0) {
    fprintf(stderr, "hpl: the matrix is singular: column %d has no pivot\n", panel->first + j);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILED_VERIFICATION);
  }
  if (pivot != panel->first + j && row_owner(pivot) == grid_row)
    store_row(search + HEAD + block, rows_before(pivot), col, width);
  double *column = element(0, col + j);
  for (int i = start; i < local_rows; i++) column[i] /= factored[j];
  for (int c = j + 1; c < end; c++) {
    double *other = element(0, col + c);
    for (int i = start; i < local_rows; i++) other[i] -= column[i] * factored[c];
  }
}

static void factor_column(const Panel *panel, int j, int end) {
  int col = cols_before(panel->first), start = rows_before(panel->first + j);
  int after = rows_before(panel->first + j + 1);
  charge(PANEL, local_rows - start);
  if (!skeleton) begin_search(panel, j, start, col);
  TRACED(MPI_Allreduce, MPI_IN_PLACE, search, 1, search_type, search_op, col_comm);
  charge(PANEL, (local_rows - after) * (1 + 2.0 * (end - j - 1)));
  if (!skeleton) eliminate(panel, j, end, after, col);
}

/* Factors columns of a panel: the left half, its effect on the right half, the right half. */
static void factor_columns(const Panel *panel, int from, int count) {
  if (count <= NARROW) {
    for (int j = from; j < from + count; j++) factor_column(panel, j, from + count);
    return;
  }
  int half = count / 2, middle = from + half, rest = count - half;
  factor_columns(panel, from, half);
  int start = rows_before(panel->first + middle), col = cols_before(panel->first);
  charge(PANEL, (double)half * half * rest + 2.0 * (local_rows - start) * half * rest);
  if (!skeleton) {
    View square = {panel->square, (size_t)panel->width, 1};
    solve_lower(half, rest, part_of(square, from, from), part_of(square, from, middle));
    subtract_product(local_rows - start, rest, half, own_part(start, col + from), part_of(square, from, middle),
                     own_part(start, col + middle));
  }
  factor_columns(panel, middle, rest);
}

/* ---- Panels ---- */

static void place_panel(Panel *panel, int first) {
  panel->first = first;
  panel->width = smaller(block, order - first);
  panel->rows = local_rows - rows_before(first + panel->width);
  if (trace.on) return;
  panel->pivots = panel->message;
  panel->square = panel->pivots + panel->width;
  panel->below = panel->square + (size_t)panel->width * (size_t)panel->width;
}

/* Factors a panel in the column of ranks that has it. */
static void factor(const Panel *panel) {
  int width = panel->width, col = cols_before(panel->first);
  factor_columns(panel, 0, width);
  if (skeleton) return;
  if (row_owner(panel->first) == grid_row)
    for (int j = 0; j < width; j++)
      store_row(panel->square + (size_t)j * (size_t)width, rows_before(panel->first) + j, col, width);
  for (int c = 0; c < width; c++)
    memcpy(panel->below + (size_t)c * (size_t)panel->rows, element(local_rows - panel->rows, col + c),
           (size_t)panel->rows * sizeof(double));
}

/* Begins to send the panel along the rows of ranks. */
static void begin_send(Panel *panel) {
  int size = panel->width + panel->width * panel->width + panel->width * panel->rows;
  TRACED(MPI_Ibcast, panel->message, size, MPI_DOUBLE, col_owner(panel->first), row_comm, &panel->arrival);
}

static void end_send(Panel *panel) {
  TRACED(MPI_Wait, &panel->arrival, MPI_STATUS_IGNORE);
  if (!skeleton || trace.on) return;
  uint64_t state = random_skip(RANDOM_SEED, (uint64_t)panel->first);
  for (int j = 0; j < panel->width; j++) {
    int row = panel->first + j;
    panel->pivots[j] = row + (int)((order - row) * random_next(&state));
  }
}

/* Gives the library a turn to forward the next panel. The probe never finds a message: a call that may or may not have
   a result would come at another place on another machine, and the compute trace would not fit. */
static void poll(void) {
  int found;
  if (!noted_poll("MPI_Iprobe")) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, idle_comm, &found, MPI_STATUS_IGNORE);
}

/* ---- Swaps: the rows of pivots come up to all ranks of a column, the rows of the panel go down to their places. ---- */

/* Moves of rows that a panel's pivots make. Row first + j comes from up[j]. Row down_to[i] comes from down_from[i]. */
static int *up, *down_to, *down_from, *slot_of_row, downs;
static int *counts, *places, *gather_counts, *gather_places;
/* Rows of the swap on their course, and the rows that came up, by rows. */
static double *leaving, *going_down, *arriving, *upper;

static void plan_swap(const Panel *panel) {
  downs = 0;
  for (int j = 0; j < panel->width; j++) up[j] = panel->first + j;
  for (int j = 0; j < panel->width; j++) {
    int pivot = (int)panel->pivots[j], *other = &up[j];
    if (pivot < panel->first + panel->width) {
      other = &up[pivot - panel->first];
    } else {
      if (slot_of_row[pivot] < 0) {
        slot_of_row[pivot] = downs;
        down_to[downs] = down_from[downs] = pivot;
        downs++;
      }
      other = &down_from[slot_of_row[pivot]];
    }
    int swapped = up[j];
    up[j] = *other;
    *other = swapped;
  }
  for (int i = 0; i < downs; i++) slot_of_row[down_to[i]] = -1;
}

/* Numbers and places of the elements that go down to each row of ranks, and that come up from each. */
static void count_swap(const Panel *panel, int cols) {
  memset(counts, 0, (size_t)grid_rows * sizeof *counts);
  memset(gather_counts, 0, (size_t)grid_rows * sizeof *counts);
  for (int i = 0; i < downs; i++) counts[row_owner(down_to[i])] += cols;
  for (int j = 0; j < panel->width; j++) gather_counts[row_owner(up[j])] += cols;
  places[0] = gather_places[0] = 0;
  for (int p = 1; p < grid_rows; p++) {
    places[p] = places[p - 1] + counts[p - 1];
    gather_places[p] = gather_places[p - 1] + gather_counts[p - 1];
  }
}

/* Copies the rows that leave this rank to the buffers. */
static void pack_swap(const Panel *panel, int col, int cols) {
  double *to = leaving;
  for (int j = 0; j < panel->width; j++)
    if (row_owner(up[j]) == grid_row) {
      copy_row(to, rows_before(up[j]), col, cols);
      to += cols;
    }
  if (row_owner(panel->first) != grid_row) return;
  to = going_down;
  for (int p = 0; p < grid_rows; p++)
    for (int i = 0; i < downs; i++)
      if (row_owner(down_to[i]) == p) {
        copy_row(to, rows_before(down_from[i]), col, cols);
        to += cols;
      }
}

static void swap_rows(const Panel *panel, int col, int cols) {
  int root = row_owner(panel->first);
  double *own_down = going_down;
  if (!trace.on) {
    plan_swap(panel);
    count_swap(panel, cols);
    if (!skeleton) pack_swap(panel, col, cols);
    /* The root's own rows are already in place. */
    own_down += grid_row == root ? places[root] : 0;
  }
  TRACED(MPI_Scatterv, going_down, counts, places, MPI_DOUBLE, grid_row == root ? MPI_IN_PLACE : going_down,
         trace.on ? 0 : counts[grid_row], MPI_DOUBLE, root, col_comm);
  TRACED(MPI_Allgatherv, leaving, trace.on ? 0 : gather_counts[grid_row], MPI_DOUBLE, arriving, gather_counts,
         gather_places, MPI_DOUBLE, col_comm);
  if (skeleton) return;
  for (int i = 0; i < downs; i++)
    if (row_owner(down_to[i]) == grid_row) {
      store_row(own_down, rows_before(down_to[i]), col, cols);
      own_down += cols;
    }
  for (int j = 0; j < panel->width; j++) {
    int *place = &gather_places[row_owner(up[j])];
    memcpy(upper + (size_t)j * (size_t)cols, arriving + *place, (size_t)cols * sizeof *upper);
    *place += cols;
  }
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
      TRACED(MPI_Reduce, in_col ? MPI_IN_PLACE : piece, piece, width, MPI_DOUBLE, MPI_SUM, col_owner(first), row_comm);
    }
    if (in_row && in_col) {
      charge(TRIANGLE, (double)width * width);
      for (int i = width - 1; i >= 0 && !skeleton; i--) {
        for (int k = i + 1; k < width; k++) piece[i] -= *element(row + i, col + k) * piece[k];
        piece[i] /= *element(row + i, col + i);
      }
    }
    if (!in_col) continue;
    TRACED(MPI_Bcast, piece, width, MPI_DOUBLE, row_owner(first), col_comm);
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
  TRACED(MPI_Comm_split, MPI_COMM_WORLD, grid_row, grid_col, &row_comm);
  TRACED(MPI_Comm_split, MPI_COMM_WORLD, grid_col, grid_row, &col_comm);
  TRACED(MPI_Comm_dup, MPI_COMM_WORLD, &idle_comm);
  TRACED(MPI_Type_contiguous, HEAD + 2 * block, MPI_DOUBLE, &search_type);
  TRACED(MPI_Type_commit, &search_type);
  TRACED(MPI_Op_create, keep_larger, 1, &search_op);
  if (trace.on) return;
  size_t width = (size_t)block, rows = (size_t)local_rows, cols = (size_t)local_cols;
  for (int i = 0; i < 2; i++) panels[i].message = allocate(width + width * width + width * rows, sizeof(double));
  search = allocate(HEAD + 2 * width, sizeof *search);
  double **buffers[] = {&leaving, &going_down, &arriving, &upper};
  for (int i = 0; i < (skeleton ? 3 : 4); i++) *buffers[i] = allocate(width * cols, sizeof(double));
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
  double *sums = trace.on ? NULL : allocate((size_t)local_rows, sizeof *sums);
  double *piece = trace.on ? NULL : allocate((size_t)block, sizeof *piece);
  TRACED(MPI_Barrier, MPI_COMM_WORLD);
  double began = noted_poll("MPI_Wtime") ? 0 : MPI_Wtime(), longest = 0;
  factor_matrix(panels);
  substitute_back(x, sums, piece);
  double seconds = noted_poll("MPI_Wtime") ? 0 : MPI_Wtime() - began;
  TRACED(MPI_Reduce, &seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  free(sums);
  free(piece);
  return longest;
}

/* Walks through the steps of every rank and writes their compute trace. */
static int write_trace(const char *file, const char *program) {
  Panel panels[2];
  bool written = begin_trace(file, program, grid_rows * grid_cols);
  for (int own = 0; written && own < grid_rows * grid_cols; own++) {
    set_place(own);
    noted("MPI_Comm_rank");
    noted("MPI_Comm_size");
    set_up(panels);
    solve(panels, NULL);
    noted("MPI_Finalize");
    write_rank(own);
  }
  written = written && end_trace();
  if (!written) perror(file);
  MPI_Finalize();
  return written ? 0 : EXIT_WRONG_USE;
}

static const char USAGE[] =
    "usage: hpl N NB P Q                                                 factor, solve and verify on P x Q ranks\n"
    "       hpl N NB P Q --skeleton                                      only the messages\n"
    "       hpl N NB P Q --skeleton --gflops X[,Y[,Z]] --write-trace FILE\n"
    "                                  write the skeleton's compute trace; runs on one rank. X, Y and Z are each rank's\n"
    "                                  rates in products, triangular solutions and panels (default: as X)";

/* Reads the arguments. `program` gets those of the run that a trace is for. Returns the trace's file, if there is one. */
static const char *read_arguments(int argc, char **argv, char *program, size_t room) {
  int *numbers[] = {&order, &block, &grid_rows, &grid_cols}, found = 0;
  const char *file = NULL;
  snprintf(program, room, "%s", argv[0]);
  for (int i = 1; i < argc; i++) {
    bool for_trace = false;
    char rest;
    if (strcmp(argv[i], "--skeleton") == 0) {
      skeleton = true;
    } else if (strcmp(argv[i], "--gflops") == 0 && i + 1 < argc) {
      for_trace = true;
      int given = sscanf(argv[++i], "%lf,%lf,%lf%c", &rates[PRODUCT], &rates[TRIANGLE], &rates[PANEL], &rest);
      for (int kind = TRIANGLE; kind >= 0; kind--)
        if (given < KINDS - kind) rates[kind] = rates[PRODUCT];
      for (int kind = 0; kind < KINDS; kind++)
        if (given < 1 || given > KINDS || !(rates[kind] > 0)) refuse("--gflops %s: rates are numbers above 0\n%s", argv[i], USAGE);
    } else if (strcmp(argv[i], "--write-trace") == 0 && i + 1 < argc) {
      for_trace = true;
      file = argv[++i];
    } else if (found == 4 || sscanf(argv[i], "%d%c", numbers[found], &rest) != 1 || *numbers[found] < 1) {
      refuse("%s: not an argument here\n%s", argv[i], USAGE);
    } else {
      found++;
    }
    size_t length = strlen(program);
    if (!for_trace) snprintf(program + length, room - length, " %s", argv[i]);
  }
  if (found < 4) refuse("%s", USAGE);
  if (file && !(skeleton && rates[PRODUCT] > 0)) refuse("--write-trace needs --skeleton and --gflops\n%s", USAGE);
  if (!file && rates[PRODUCT] > 0) refuse("--gflops is for --write-trace\n%s", USAGE);
  if (!file && (long)grid_rows * grid_cols != ranks)
    refuse("hpl: a grid of %d x %d needs as many ranks, and this job has %d\n%s", grid_rows, grid_cols, ranks, USAGE);
  return file;
}

int main(int argc, char **argv) {
  start(&argc, &argv);
  char program[4096];
  const char *file = read_arguments(argc, argv, program, sizeof program);
  if (file) return write_trace(file, program);

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
