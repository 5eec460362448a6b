/* The layout of HPL: the matrix, with the right side as its last column, in blocks of `block` x `block` that go round a
   grid of ranks, and the panels of `block` columns that are factored one after the other. */
#ifndef HPL_LAYOUT_H
#define HPL_LAYOUT_H

#include "hpl_blas.h"
#include "hpl_time.h"
#include "kernel.h"

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

static void place_panel(Panel *panel, int first) {
  panel->first = first;
  panel->width = smaller(block, order - first);
  panel->rows = local_rows - rows_before(first + panel->width);
  panel->pivots = panel->message;
  panel->square = panel->pivots + panel->width;
  panel->below = panel->square + (size_t)panel->width * (size_t)panel->width;
}

static void copy_row(double *to, int row, int col, int width) {
  for (int c = 0; c < width; c++) to[c] = *element(row, col + c);
}

static void store_row(const double *from, int row, int col, int width) {
  for (int c = 0; c < width; c++) *element(row, col + c) = from[c];
}

#endif
