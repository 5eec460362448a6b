/* Products and triangular solutions of small dense matrices in blocks that fit the caches. */
#ifndef HPL_BLAS_H
#define HPL_BLAS_H

#include <stddef.h>
#include <string.h>

/* Rows and columns of the innermost product; rows, columns (multiples of these) and terms of a packed block. Of the
   shapes from 8 x 4 to 32 x 6, this one was the fastest with gcc 12, with and without -march=native. */
enum { TILE_ROWS = 24, TILE_COLS = 4, PACKED_ROWS = 192, PACKED_COLS = 480, PACKED_TERMS = 256, SMALL_TRIANGLE = 16 };

static double packed_a[PACKED_ROWS * PACKED_TERMS], packed_b[PACKED_COLS * PACKED_TERMS];

static inline int smaller(int a, int b) { return a < b ? a : b; }

/* Packs `count` x `terms` elements in strips of `strip`, term by term; the last strip is filled up with zeros. */
static void pack(double *to, int strip, int count, int terms, const double *from, size_t stride, size_t term_stride) {
  for (int first = 0; first < count; first += strip) {
    int here = smaller(strip, count - first);
    for (int t = 0; t < terms; t++) {
      const double *line = from + (size_t)first * stride + (size_t)t * term_stride;
      for (int i = 0; i < here; i++) *to++ = line[(size_t)i * stride];
      for (int i = here; i < strip; i++) *to++ = 0;
    }
  }
}

/* A tile of the result: c -= a b. */
static void multiply_tile(int rows, int cols, int terms, const double *restrict a, const double *restrict b, double *c,
                          size_t c_stride) {
  double sum[TILE_COLS][TILE_ROWS] = {{0}};
  for (int t = 0; t < terms; t++, a += TILE_ROWS, b += TILE_COLS)
    for (int j = 0; j < TILE_COLS; j++)
      for (int i = 0; i < TILE_ROWS; i++) sum[j][i] += a[i] * b[j];
  for (int j = 0; j < cols; j++)
    for (int i = 0; i < rows; i++) c[(size_t)j * c_stride + (size_t)i] -= sum[j][i];
}

/* A matrix: the element of row i and column j stands at i x row + j x col. */
typedef struct {
  double *at;
  size_t row, col;
} View;

static inline View part_of(View view, int row, int col) {
  view.at += (size_t)row * view.row + (size_t)col * view.col;
  return view;
}

/* c -= a b, where c is `rows` x `cols` and the sums have `terms` terms. The rows of c are contiguous in a column. */
static void subtract_product(int rows, int cols, int terms, View a, View b, View c) {
  for (int t = 0; t < terms; t += PACKED_TERMS)
    for (int j = 0; j < cols; j += PACKED_COLS) {
      int these = smaller(PACKED_TERMS, terms - t), wide = smaller(PACKED_COLS, cols - j);
      pack(packed_b, TILE_COLS, wide, these, part_of(b, t, j).at, b.col, b.row);
      for (int i = 0; i < rows; i += PACKED_ROWS) {
        int high = smaller(PACKED_ROWS, rows - i);
        pack(packed_a, TILE_ROWS, high, these, part_of(a, i, t).at, a.row, a.col);
        for (int jj = 0; jj < wide; jj += TILE_COLS)
          for (int ii = 0; ii < high; ii += TILE_ROWS)
            multiply_tile(smaller(TILE_ROWS, high - ii), smaller(TILE_COLS, wide - jj), these, packed_a + ii * these,
                          packed_b + jj * these, part_of(c, i + ii, j + jj).at, c.col);
      }
    }
}

/* Solves l x = b in place of b, where l is lower triangular with ones on the diagonal, and the rows of b are contiguous:
   its transpose is the result of a product. */
static void solve_lower(int order, int cols, View l, View b) {
  if (order > SMALL_TRIANGLE) {
    int half = order / 2;
    View low = part_of(b, half, 0), l21 = part_of(l, half, 0);
    solve_lower(half, cols, l, b);
    View b_turned = {b.at, b.col, b.row}, l_turned = {l21.at, l21.col, l21.row}, low_turned = {low.at, low.col, low.row};
    subtract_product(cols, order - half, half, b_turned, l_turned, low_turned);
    solve_lower(order - half, cols, part_of(l, half, half), low);
    return;
  }
  for (int i = 1; i < order; i++)
    for (int k = 0; k < i; k++) {
      double factor = *part_of(l, i, k).at;
      double *to = part_of(b, i, 0).at;
      const double *from = part_of(b, k, 0).at;
      for (int j = 0; j < cols; j++) to[j] -= factor * from[j];
    }
}

#endif
