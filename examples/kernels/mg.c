/* MG of the NAS Parallel Benchmarks: V cycles of a multigrid method for Poisson's equation on a periodic cube.

   The ranks form a grid of three dimensions and each has a box of the cube, with one layer of its neighbours' points
   around it. On coarse levels with fewer points than ranks along a dimension, the ranks with an odd place there keep a
   point; those without one get the points beside their place when the solution returns to the finer level. */
#include "kernel.h"

enum { X, Y, Z, DIMENSIONS, MOST_LEVELS = 10, CHARGES = 10 };
/* Weights of a point, its 6 neighbours across faces, 12 across edges and 8 across corners. */
typedef double Stencil[4];
static const Stencil LAPLACE = {-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}, RESTRICT = {1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};
static const struct {
  int log_points, cycles;
  Stencil smooth;
  double norm;
} CLASSES[] = {{5, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0}, 0.5307707005734e-4},
               {7, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0}, 0.6467329375339e-5},
               {8, 4, {-3.0 / 8, 1.0 / 32, -1.0 / 64, 0}, 0.2433365309069e-5},
               {8, 20, {-3.0 / 17, 1.0 / 33, -1.0 / 61, 0}, 0.1800564401355e-5}};
static const double TOLERANCE = 1e-8;

/* A level of 2^level points along each dimension. The own points have the places 1 to `own`. */
typedef struct {
  int own[DIMENSIONS], first[DIMENSIONS];
  /* Distance in the grid of ranks to the next rank with points. */
  int stride[DIMENSIONS];
  /* This rank has points. */
  bool active;
  double *solution, *residual;
} Level;

static Level levels[MOST_LEVELS];
static int top, grid[DIMENSIONS] = {1, 1, 1}, place[DIMENSIONS];
static double *faces, *edges, *row_sum, *out_plane, *in_plane;
static Stencil smooth;

static size_t width(const Level *level, int d) { return (size_t)level->own[d] + 2; }

static size_t at(const Level *level, int x, int y, int z) {
  return ((size_t)z * width(level, Y) + (size_t)y) * width(level, X) + (size_t)x;
}

static size_t cells(const Level *level) { return width(level, X) * width(level, Y) * width(level, Z); }

static int neighbour(int d, int step) {
  int at[DIMENSIONS];
  memcpy(at, place, sizeof at);
  at[d] = (at[d] + step + grid[d]) % grid[d];
  return (at[Z] * grid[Y] + at[Y]) * grid[X] + at[X];
}

static void lay_out(void) {
  for (int left = ranks, d = Z; left > 1; left /= 2, d = (d + 2) % DIMENSIONS) grid[d] *= 2;
  place[X] = rank % grid[X];
  place[Y] = rank / grid[X] % grid[Y];
  place[Z] = rank / grid[X] / grid[Y];
  size_t longest = 0, largest = 0;
  for (int l = top; l > 0; l--) {
    Level *level = &levels[l], *finer = &levels[l + 1];
    bool wanted = l == top || finer->active;
    level->active = wanted;
    for (int d = 0; wanted && d < DIMENSIONS; d++) {
      level->own[d] = l == top ? (1 << l) / grid[d] : (finer->first[d] + finer->own[d]) / 2 - finer->first[d] / 2;
      level->first[d] = l == top ? place[d] * level->own[d] : finer->first[d] / 2;
      level->stride[d] = grid[d] >> l ? grid[d] >> l : 1;
      if (level->own[d] == 0) level->active = false;
      if (width(level, d) > longest) longest = width(level, d);
    }
    if (!wanted) continue;
    level->solution = allocate(cells(level), sizeof(double));
    level->residual = allocate(cells(level), sizeof(double));
  }
  largest = longest * longest;
  double **buffers[] = {&faces, &edges, &row_sum, &out_plane, &in_plane};
  for (int i = 0; i < 5; i++) *buffers[i] = allocate(i < 3 ? longest : 2 * largest, sizeof(double));
}

/* Number of points of a plane of dimension `d`. Layers around the own points belong to it in the dimensions that have
   been exchanged before. */
static int plane_size(const Level *level, int d) {
  int size = 1;
  for (int e = 0; e < DIMENSIONS; e++) size *= e == d ? 1 : e < d ? level->own[e] + 2 : level->own[e];
  return size;
}

/* Copies the plane at `cell` of dimension `d` to the buffer or from it. */
static void copy_plane(const Level *level, double *data, int d, int cell, double *buffer, bool in) {
  int from[DIMENSIONS], to[DIMENSIONS], count = 0;
  for (int e = 0; e < DIMENSIONS; e++) {
    from[e] = e < d ? 0 : 1;
    to[e] = e < d ? level->own[e] + 1 : level->own[e];
  }
  from[d] = to[d] = cell;
  for (int z = from[Z]; z <= to[Z]; z++)
    for (int y = from[Y]; y <= to[Y]; y++)
      for (int x = from[X]; x <= to[X]; x++, count++) {
        double *point = &data[at(level, x, y, z)];
        if (in)
          *point = buffer[count];
        else
          buffer[count] = *point;
      }
}

/* Sends planes of dimension `d` to the neighbours and receives planes from them. `out` and `in` are the cells for the
   neighbours below and above; -1 means none. */
static void exchange_planes(const Level *level, double *data, int d, int stride, const int out[2], const int in[2]) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int size = plane_size(level, d);
  for (int side = 0; side < 2; side++) {
    if (in[side] < 0) continue;
    MPI_Irecv(in_plane + side * size, size, MPI_DOUBLE, neighbour(d, side ? stride : -stride), side, MPI_COMM_WORLD,
              &requests[side]);
  }
  for (int side = 0; side < 2; side++) {
    if (out[side] < 0) continue;
    copy_plane(level, data, d, out[side], out_plane, false);
    /* A plane that leaves upwards arrives from below. */
    MPI_Send(out_plane, size, MPI_DOUBLE, neighbour(d, side ? stride : -stride), !side, MPI_COMM_WORLD);
  }
  for (int side = 0; side < 2; side++) {
    if (in[side] < 0) continue;
    MPI_Wait(&requests[side], MPI_STATUS_IGNORE);
    copy_plane(level, data, d, in[side], in_plane + side * size, true);
  }
}

/* Fills the layer around the own points in one dimension, among ranks at a distance of `stride`. */
static void exchange_layer(const Level *level, double *data, int d, int stride) {
  int own = level->own[d];
  if (stride == grid[d]) {
    copy_plane(level, data, d, own, out_plane, false);
    copy_plane(level, data, d, 0, out_plane, true);
    copy_plane(level, data, d, 1, out_plane, false);
    copy_plane(level, data, d, own + 1, out_plane, true);
  } else {
    exchange_planes(level, data, d, stride, (int[]){1, own}, (int[]){0, own + 1});
  }
}

static void exchange(const Level *level, double *data) {
  for (int d = 0; d < DIMENSIONS; d++) exchange_layer(level, data, d, level->stride[d]);
}

/* Fewer ranks have points on the coarser level. */
static bool ranks_differ(const Level *level, const Level *finer) {
  return memcmp(level->stride, finer->stride, sizeof level->stride) != 0;
}

/* Gives the solution of a level to the ranks that have points only on the finer level. */
static void spread(const Level *level, const Level *finer) {
  static const int none[] = {-1, -1};
  for (int d = 0; d < DIMENSIONS; d++) {
    if (level->stride[d] == finer->stride[d])
      exchange_layer(level, level->solution, d, level->stride[d]);
    else if (level->own[d])
      exchange_planes(level, level->solution, d, finer->stride[d], (int[]){1, 1}, none);
    else
      exchange_planes(level, level->solution, d, finer->stride[d], none, (int[]){0, 1});
  }
}

/* For each point of a row, the sums of its four neighbours across faces and across edges in the plane of y and z. */
static void sum_rows(const Level *level, const double *data, int y, int z) {
  const double *row[3][3];
  for (int k = 0; k < 3; k++)
    for (int j = 0; j < 3; j++) row[k][j] = data + at(level, 0, y + j - 1, z + k - 1);
  for (size_t x = 0; x < width(level, X); x++) {
    faces[x] = row[1][0][x] + row[1][2][x] + row[0][1][x] + row[2][1][x];
    edges[x] = row[0][0][x] + row[0][2][x] + row[2][0][x] + row[2][2][x];
  }
}

static double weigh(const Stencil weights, const double *row, int x) {
  return weights[0] * row[x] + weights[1] * (row[x - 1] + row[x + 1] + faces[x]) +
         weights[2] * (edges[x] + faces[x - 1] + faces[x + 1]) + weights[3] * (edges[x - 1] + edges[x + 1]);
}

/* out = base + sign x stencil of `data`, with the layer around it. */
static void apply(const Level *level, const Stencil weights, int sign, const double *data, const double *base,
                  double *out) {
  for (int z = 1; z <= level->own[Z]; z++)
    for (int y = 1; y <= level->own[Y]; y++) {
      size_t row = at(level, 0, y, z);
      sum_rows(level, data, y, z);
      for (int x = 1; x <= level->own[X]; x++)
        out[row + (size_t)x] = base[row + (size_t)x] + sign * weigh(weights, data + row, x);
    }
  exchange(level, out);
}

/* The point with place i of a level is that with place 2 i of the finer one, counted over the whole cube. */
static void restrict_residual(const Level *level, const Level *finer) {
  int shift[DIMENSIONS];
  for (int d = 0; d < DIMENSIONS; d++) shift[d] = 2 * level->first[d] - finer->first[d];
  for (int z = 1; z <= level->own[Z]; z++)
    for (int y = 1; y <= level->own[Y]; y++) {
      sum_rows(finer, finer->residual, 2 * y + shift[Y], 2 * z + shift[Z]);
      const double *row = finer->residual + at(finer, 0, 2 * y + shift[Y], 2 * z + shift[Z]);
      for (int x = 1; x <= level->own[X]; x++)
        level->residual[at(level, x, y, z)] = weigh(RESTRICT, row, 2 * x + shift[X]);
    }
  if (level->active) exchange(level, level->residual);
}

/* The places of the coarse points around a finer point; both are the same for a point of both levels. */
static void around(const Level *level, const Level *finer, int d, int cell, int both[2]) {
  int whole = finer->first[d] + cell;
  both[0] = whole / 2 - level->first[d];
  both[1] = (whole + 1) / 2 - level->first[d];
}

/* Adds the coarse solution to the finer one, its layer included, by means of the points around. */
static void interpolate(const Level *level, const Level *finer) {
  const double *coarse = level->solution;
  int x_of[2], y_of[2], z_of[2];
  for (int z = 0; z <= finer->own[Z] + 1; z++)
    for (int y = 0; y <= finer->own[Y] + 1; y++) {
      around(level, finer, Y, y, y_of);
      around(level, finer, Z, z, z_of);
      for (int x = 0; x <= level->own[X] + 1; x++) {
        double sum = 0;
        for (int i = 0; i < 4; i++) sum += coarse[at(level, x, y_of[i & 1], z_of[i >> 1])];
        row_sum[x] = sum;
      }
      double *row = finer->solution + at(finer, 0, y, z);
      for (int x = 0; x <= finer->own[X] + 1; x++) {
        around(level, finer, X, x, x_of);
        row[x] += 0.125 * (row_sum[x_of[0]] + row_sum[x_of[1]]);
      }
    }
}

/* One V cycle: improves the solution of the level by its residual. `right_side` is that of the top level. */
static void cycle(int l, const double *right_side) {
  Level *level = &levels[l], *coarser = &levels[l - 1];
  if (l < top) memset(level->solution, 0, cells(level) * sizeof(double));
  if (l > 1) {
    restrict_residual(coarser, level);
    if (coarser->active) cycle(l - 1, NULL);
    bool differ = ranks_differ(coarser, level);
    if (differ) spread(coarser, level);
    interpolate(coarser, level);
    /* Ranks without a coarse point lack what lies beyond those of their neighbours, so their layer is not right yet. */
    if (differ) exchange(level, level->solution);
    apply(level, LAPLACE, -1, level->solution, right_side ? right_side : level->residual, level->residual);
  }
  apply(level, smooth, 1, level->residual, level->solution, level->solution);
}

typedef struct {
  double value;
  int at[DIMENSIONS];
} Candidate;

/* Keeps the ten best in order. `sign` 1 keeps the largest, -1 the smallest. */
static void keep(Candidate *best, Candidate candidate, int sign) {
  if (best[CHARGES - 1].at[X] >= 0 && sign * (candidate.value - best[CHARGES - 1].value) <= 0) return;
  int i = CHARGES - 1;
  for (; i > 0 && (best[i - 1].at[X] < 0 || sign * (candidate.value - best[i - 1].value) > 0); i--) best[i] = best[i - 1];
  best[i] = candidate;
}

/* The right side: +1 at the ten points with the largest random numbers, -1 at those with the ten smallest, 0 elsewhere. */
static void make_right_side(const Level *level, double *right_side) {
  Candidate best[2][CHARGES], *all = allocate((size_t)ranks * CHARGES, sizeof *all);
  for (int i = 0; i < 2 * CHARGES; i++) best[i / CHARGES][i % CHARGES].at[X] = -1;
  for (int z = 0; z < level->own[Z]; z++)
    for (int y = 0; y < level->own[Y]; y++) {
      uint64_t row = ((uint64_t)(level->first[Z] + z) << top) + (uint64_t)(level->first[Y] + y);
      uint64_t state = random_skip(RANDOM_SEED, (row << top) + (uint64_t)level->first[X]);
      for (int x = 0; x < level->own[X]; x++) {
        double value = random_next(&state);
        Candidate candidate = {value, {level->first[X] + x, level->first[Y] + y, level->first[Z] + z}};
        keep(best[0], candidate, 1);
        keep(best[1], candidate, -1);
      }
    }
  for (int kind = 0; kind < 2; kind++) {
    int sign = kind ? -1 : 1;
    MPI_Allgather(best[kind], sizeof best[kind], MPI_BYTE, all, sizeof best[kind], MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < CHARGES; i++) best[kind][i].at[X] = -1;
    for (int i = 0; i < ranks * CHARGES; i++)
      if (all[i].at[X] >= 0) keep(best[kind], all[i], sign);
    for (int i = 0; i < CHARGES; i++) {
      int own[DIMENSIONS];
      bool is_own = true;
      for (int d = 0; d < DIMENSIONS; d++) {
        own[d] = best[kind][i].at[d] - level->first[d] + 1;
        is_own = is_own && own[d] >= 1 && own[d] <= level->own[d];
      }
      if (is_own) right_side[at(level, own[X], own[Y], own[Z])] = sign;
    }
  }
  free(all);
}

static double norm(const Level *level) {
  double sum = 0, all;
  for (int z = 1; z <= level->own[Z]; z++)
    for (int y = 1; y <= level->own[Y]; y++)
      for (int x = 1; x <= level->own[X]; x++) {
        double value = level->residual[at(level, x, y, z)];
        sum += value * value;
      }
  MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sqrt(all / pow(8, top));
}

int main(int argc, char **argv) {
  int class = start_class(&argc, &argv, "mg", "SWAB"), cycles = CLASSES[class].cycles;
  top = CLASSES[class].log_points;
  memcpy(smooth, CLASSES[class].smooth, sizeof smooth);
  need_power_of_two("mg", 1 << 3 * top);
  lay_out();
  Level *level = &levels[top];
  double *right_side = allocate(cells(level), sizeof *right_side);
  make_right_side(level, right_side);

  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  apply(level, LAPLACE, -1, level->solution, right_side, level->residual);
  for (int i = 0; i < cycles; i++) {
    cycle(top, right_side);
    apply(level, LAPLACE, -1, level->solution, right_side, level->residual);
  }
  double residual = norm(level), seconds = MPI_Wtime() - began;
  bool right = verify("norm of the residual", residual, CLASSES[class].norm, TOLERANCE);
  return finish("MG", "SWAB"[class], seconds, 58.0 * cycles * pow(8, top), right);
}
