/* The equations of LU: compressible flow with five unknowns at each point (density, momentum along x, y and z, energy),
   its exact solution, its discrete operator along a line of points, and its Jacobians. */
#ifndef LU_FLOW_H
#define LU_FLOW_H

#include <math.h>
#include <string.h>

enum { X, Y, Z, DIRECTIONS, UNKNOWNS = 5, DENSITY = 0, ENERGY = 4, LONGEST_LINE = 104 };
typedef double State[UNKNOWNS];
typedef double Block[UNKNOWNS][UNKNOWNS];

/* Ratio of specific heats and what follows from it; viscosity and conduction; artificial dissipation. */
static const double C1 = 1.4, C2 = 0.4, C34 = 0.1, C1345 = 1.4 * 0.1 * 1.4;
static const double SECOND_ORDER[DIRECTIONS] = {0.75, 0.75, 1.0}, FOURTH_ORDER = 0.25;

/* Polynomials of degree 4 in x, y and z for each unknown: the constant, then the coefficients of degree 1 for the three
   directions, of degree 2, and so on. */
static const double EXACT[UNKNOWNS][13] = {{2, 0, 0, 4, 5, 3, .5, .02, .01, .03, .5, .4, .3},
                                           {1, 0, 0, 0, 1, 2, 3, .01, .03, .02, .4, .3, .5},
                                           {2, 2, 0, 0, 0, 2, 3, .04, .03, .05, .3, .5, .4},
                                           {2, 2, 0, 0, 0, 2, 3, .03, .05, .04, .2, .1, .3},
                                           {5, 4, 3, 2, .1, .4, .3, .05, .04, .03, .1, .3, .2}};

/* Points along each edge of the cube. */
static int points;
static double time_step;

/* The exact solution at a place in the unit cube. */
static void exact_solution(const double at[DIRECTIONS], State u) {
  for (int m = 0; m < UNKNOWNS; m++) {
    const double *c = EXACT[m];
    u[m] = c[0];
    for (int d = 0; d < DIRECTIONS; d++) u[m] += (c[1 + d] + (c[4 + d] + (c[7 + d] + c[10 + d] * at[d]) * at[d]) * at[d]) * at[d];
  }
}

static double kinetic(const double *u) { return 0.5 * (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[DENSITY]; }

static double pressure(const double *u) { return C2 * (u[ENERGY] - kinetic(u)); }

/* The flux of the unknowns in direction `d` without viscosity. */
static void flux(const double *u, int d, State f) {
  double velocity = u[1 + d] / u[DENSITY], p = pressure(u);
  for (int m = 0; m < UNKNOWNS; m++) f[m] = u[m] * velocity;
  f[1 + d] += p;
  f[ENERGY] += p * velocity;
}

/* The viscous flux in direction `d` between two neighbours. */
static void viscous_flux(const double *below, const double *above, int d, State g) {
  double grid = points - 1, squares = 0, own = 0;
  State low, high;
  for (int m = 1; m < UNKNOWNS; m++) {
    low[m] = below[m] / below[DENSITY];
    high[m] = above[m] / above[DENSITY];
    g[m] = grid * (high[m] - low[m]);
  }
  for (int m = 1; m < ENERGY; m++) {
    double difference = high[m] * high[m] - low[m] * low[m];
    squares += difference;
    if (m == 1 + d) own = difference;
  }
  g[DENSITY] = 0;
  g[1 + d] *= 4.0 / 3;
  g[ENERGY] = 0.5 * (1 - C1 * C1) * grid * squares + grid * own / 6 + C1 * C1 * g[ENERGY];
}

/* Adds the operator in direction `d` to `out` at the inner points of a line. `u` and `out` stand at the point of index 0
   over the whole cube, `stride` apart from point to point; the points from `from` to `to` are the own inner ones. */
static void add_operator(const double *u, double *out, long stride, int d, int from, int to) {
  static State fluxes[LONGEST_LINE], viscous[LONGEST_LINE];
  double grid = points - 1, second = SECOND_ORDER[d] * grid * grid;
  for (int i = from - 1; i <= to + 1; i++) flux(u + i * stride, d, fluxes[i]);
  for (int i = from; i <= to + 1; i++) viscous_flux(u + (i - 1) * stride, u + i * stride, d, viscous[i]);
  for (int i = from; i <= to; i++)
    for (int m = 0; m < UNKNOWNS; m++) {
      const double *at = u + i * stride + m;
      double low = at[-stride], high = at[stride], fourth;
      if (i == 1)
        fourth = 5 * at[0] - 4 * high + at[2 * stride];
      else if (i == points - 2)
        fourth = at[-2 * stride] - 4 * low + 5 * at[0];
      else
        fourth = (i > 2 ? at[-2 * stride] : 0) - 4 * low + 6 * at[0] - 4 * high + (i < points - 3 ? at[2 * stride] : 0);
      out[i * stride + m] += second * (low - 2 * at[0] + high) - grid / 2 * (fluxes[i + 1][m] - fluxes[i - 1][m]) +
                             grid * C34 * (viscous[i + 1][m] - viscous[i][m]) - FOURTH_ORDER * fourth;
    }
}

/* Adds `factor` times the Jacobian of the second differences in direction `d`: viscosity and dissipation. */
static void add_viscous_jacobian(const double *u, int d, double factor, Block block) {
  double inverse = 1 / u[DENSITY], squares = 0;
  for (int m = 1; m < ENERGY; m++) {
    double velocity = u[m] * inverse, viscosity = (m == 1 + d ? 4.0 / 3 : 1) * C34;
    block[m][DENSITY] -= factor * viscosity * inverse * velocity;
    block[m][m] += factor * viscosity * inverse;
    block[ENERGY][m] += factor * (viscosity - C1345) * inverse * velocity;
    squares += (viscosity - C1345) * velocity * velocity;
  }
  block[ENERGY][DENSITY] -= factor * inverse * (squares + C1345 * u[ENERGY] * inverse);
  block[ENERGY][ENERGY] += factor * C1345 * inverse;
  for (int m = 0; m < UNKNOWNS; m++) block[m][m] += factor * SECOND_ORDER[d];
}

/* Adds `factor` times the Jacobian of the flux in direction `d`. */
static void add_flux_jacobian(const double *u, int d, double factor, Block block) {
  double a[UNKNOWNS], squares = 0;
  int own = 1 + d;
  for (int m = 1; m < UNKNOWNS; m++) a[m] = u[m] / u[DENSITY];
  for (int m = 1; m < ENERGY; m++) squares += a[m] * a[m];
  block[DENSITY][own] += factor;
  for (int m = 1; m < ENERGY; m++) {
    /* The flux of momentum m, then its pressure in the own direction. */
    block[m][DENSITY] -= factor * a[m] * a[own];
    block[m][m] += factor * a[own];
    block[m][own] += factor * a[m];
    block[own][m] -= factor * C2 * a[m];
    block[ENERGY][m] -= factor * C2 * a[m] * a[own];
  }
  block[own][DENSITY] += factor * 0.5 * C2 * squares;
  block[own][ENERGY] += factor * C2;
  block[ENERGY][DENSITY] += factor * (C2 * squares - C1 * a[ENERGY]) * a[own];
  block[ENERGY][own] += factor * (C1 * a[ENERGY] - 0.5 * C2 * squares);
  block[ENERGY][ENERGY] += factor * C1 * a[own];
}

/* The block of an unfactored system that couples a point with its neighbour in direction `d`; `side` is -1 for the
   neighbour below and 1 for the one above, whose state is `u`. */
static void neighbour_block(const double *u, int d, int side, Block block) {
  double grid = points - 1;
  memset(block, 0, sizeof(Block));
  add_flux_jacobian(u, d, side * time_step * grid / 2, block);
  add_viscous_jacobian(u, d, -time_step * grid * grid, block);
}

static void own_block(const double *u, Block block) {
  double grid = points - 1;
  memset(block, 0, sizeof(Block));
  for (int m = 0; m < UNKNOWNS; m++) block[m][m] = 1;
  for (int d = 0; d < DIRECTIONS; d++) add_viscous_jacobian(u, d, 2 * time_step * grid * grid, block);
}

/* Solves block x = v in place of v. The blocks are dominated by their diagonal: no pivots are needed. */
static void solve_block(Block block, double *v) {
  for (int k = 0; k < UNKNOWNS; k++) {
    double inverse = 1 / block[k][k];
    for (int i = k + 1; i < UNKNOWNS; i++) {
      double factor = inverse * block[i][k];
      for (int j = k + 1; j < UNKNOWNS; j++) block[i][j] -= factor * block[k][j];
      v[i] -= factor * v[k];
    }
  }
  for (int k = UNKNOWNS - 1; k >= 0; k--) {
    for (int j = k + 1; j < UNKNOWNS; j++) v[k] -= block[k][j] * v[j];
    v[k] /= block[k][k];
  }
}

#endif
