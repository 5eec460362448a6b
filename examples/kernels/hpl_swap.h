/* Swaps of rows by the pivots of a panel: the rows of pivots come up to all ranks of a column, and the rows of the panel go
   down to their places. */
#ifndef HPL_SWAP_H
#define HPL_SWAP_H

#include "hpl_layout.h"

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
  plan_swap(panel);
  count_swap(panel, cols);
  if (!skeleton) pack_swap(panel, col, cols);
  /* The root's own rows are already in place. */
  double *own_down = going_down + (grid_row == root ? places[root] : 0);
  TIMED(MPI_Scatterv, going_down, counts, places, MPI_DOUBLE, grid_row == root ? MPI_IN_PLACE : going_down,
        counts[grid_row], MPI_DOUBLE, root, col_comm);
  TIMED(MPI_Allgatherv, leaving, gather_counts[grid_row], MPI_DOUBLE, arriving, gather_counts, gather_places, MPI_DOUBLE,
        col_comm);
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

#endif
