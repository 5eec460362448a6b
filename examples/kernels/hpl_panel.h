/* The factorisation of a panel in a column of ranks. One reduction for each column finds the pivot and swaps its row with
   the present one. */
#ifndef HPL_PANEL_H
#define HPL_PANEL_H

#include "hpl_layout.h"

/* Columns of a panel that are factored one by one. */
enum { NARROW = 8 };

/* Places in the message of a pivot search; the rows of the candidate and of the present place follow. */
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
  TIMED(MPI_Allreduce, MPI_IN_PLACE, search, 1, search_type, search_op, col_comm);
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

#endif
