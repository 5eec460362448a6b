/* LU of the NAS Parallel Benchmarks: the steady state of a compressible flow in a cube by symmetric successive
   over-relaxation.

   The ranks form a grid in x and y, and each has a column of points with two layers of its neighbours' around it. A sweep
   goes through the planes of z: a point needs its neighbours below in x, y and z, so a rank begins a plane when the ranks
   below it in x and y have finished theirs, and sends its own edge on. Many short messages travel as a wave from one
   corner of the grid to the other; the second sweep goes back. */
#include "lu_flow.h"

#include "kernel.h"

enum { LAYERS = 2, TAG_LAYER = 1, TAG_SWEEP, SUMS = 2 * UNKNOWNS + 1 };
static const double RELAXATION = 1.2, TOLERANCE = 1e-8;
static const struct {
  int points, steps;
  double time_step;
  /* Norms of the residual and of the error by unknown, and the surface integral. */
  double sums[SUMS];
} CLASSES[] = {
    {12, 50, 0.5,
     {1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03, 1.5029584435994323e-03, 3.4264073155896461e-02,
      6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05, 5.8474222595157350e-05, 1.3103347914111294e-03,
      7.8418928865937083e+00}},
    {33, 300, 1.5e-3,
     {0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01, 0.2326187750252e+01, 0.2826799444189e+02,
      0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01, 0.8570126542733e-01, 0.1084277417792e+01,
      0.1161399311023e+02}},
    {64, 250, 2.0,
     {7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02, 1.7845301160418537e+02, 1.8384760349464247e+03,
      2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00, 6.7139225687777051e+00, 7.0715315688392578e+01,
      2.6030925604886277e+01}},
    {102, 250, 2.0,
     {3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02, 7.7812774739425265e+02, 7.3087969592545314e+03,
      1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01, 2.5905394567832939e+01, 2.6054907504857413e+02,
      4.7887162703308227e+01}}};

/* The grid of ranks, this rank's place, the ranks beside it (below and above in each direction), and the own points. */
static int grid[2], place[2], beside[2][2], own[2], first[2];
static size_t row, plane;
/* The solution, the residual, which becomes the update in the sweeps, and the operator on the exact solution. */
static double *solution, *residual, *forcing, *buffer_out, *buffer_in;

/* The place of a point by its indices over the whole cube. */
static size_t at(int i, int j, int k) {
  return (size_t)k * plane + (size_t)(j - first[Y] + LAYERS) * row + (size_t)(i - first[X] + LAYERS) * UNKNOWNS;
}

/* The first and last own index in direction `d` that is not on the surface of the cube. */
static int inner_first(int d) { return d < Z && first[d] > 0 ? first[d] : 1; }
static int inner_last(int d) { return d < Z && first[d] + own[d] < points ? first[d] + own[d] - 1 : points - 2; }

/* Most ranks of which each still has the layers that its neighbours need. */
static int most_ranks(void) {
  int side = 1;
  while (points / (2 * side) >= LAYERS) side *= 2;
  return side * side;
}

static void lay_out(void) {
  for (grid[Y] = 1; grid[Y] * grid[Y] < ranks; grid[Y] *= 2) {}
  grid[X] = ranks / grid[Y];
  place[X] = rank % grid[X];
  place[Y] = rank / grid[X];
  for (int d = 0; d < 2; d++) {
    int step = d == X ? 1 : grid[X], extra = points % grid[d];
    own[d] = points / grid[d] + (place[d] < extra);
    first[d] = points / grid[d] * place[d] + (place[d] < extra ? place[d] : extra);
    beside[d][0] = place[d] > 0 ? rank - step : MPI_PROC_NULL;
    beside[d][1] = place[d] < grid[d] - 1 ? rank + step : MPI_PROC_NULL;
  }
  row = (size_t)(own[X] + 2 * LAYERS) * UNKNOWNS;
  plane = (size_t)(own[Y] + 2 * LAYERS) * row;
  double **arrays[] = {&solution, &residual, &forcing};
  for (int i = 0; i < 3; i++) *arrays[i] = allocate(plane * (size_t)points, sizeof(double));
  size_t longest = (size_t)(own[X] > own[Y] ? own[X] : own[Y]) * LAYERS * (size_t)points * UNKNOWNS;
  buffer_out = allocate(longest, sizeof(double));
  buffer_in = allocate(longest, sizeof(double));
}

/* Copies own points of the planes `from` to `to` with the indices `edge` to `edge + width - 1` in direction `d` to the
   buffer or from it. Returns the number of values. */
static int copy_edge(double *data, int d, int edge, int width, int from, int to, double *buffer, bool in) {
  int other = 1 - d;
  size_t count = 0;
  for (int k = from; k <= to; k++)
    for (int o = first[other]; o < first[other] + own[other]; o++)
      for (int e = edge; e < edge + width; e++, count += UNKNOWNS) {
        double *point = &data[d == X ? at(e, o, k) : at(o, e, k)];
        memcpy(in ? point : buffer + count, in ? buffer + count : point, sizeof(State));
      }
  return (int)count;
}

/* Exchanges the layers of the solution with the ranks beside in direction `d`. */
static void exchange_layers(double *data, int d) {
  int low = first[d], high = first[d] + own[d];
  for (int side = 0; side < 2; side++) {
    int to = beside[d][side], from = beside[d][!side];
    int count = copy_edge(data, d, side ? high - LAYERS : low, LAYERS, 0, points - 1, buffer_out, false);
    MPI_Sendrecv(buffer_out, count, MPI_DOUBLE, to, TAG_LAYER, buffer_in, count, MPI_DOUBLE, from, TAG_LAYER,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (from != MPI_PROC_NULL) copy_edge(data, d, side ? low - LAYERS : high, LAYERS, 0, points - 1, buffer_in, true);
  }
}

/* Adds the operator on `u` to `out` at all inner points. */
static void apply_operator(double *u, double *out) {
  exchange_layers(u, X);
  exchange_layers(u, Y);
  long strides[] = {UNKNOWNS, (long)row, (long)plane};
  for (int d = 0; d < DIRECTIONS; d++) {
    int e = (d + 1) % DIRECTIONS, f = (d + 2) % DIRECTIONS, index[DIRECTIONS];
    for (index[f] = inner_first(f); index[f] <= inner_last(f); index[f]++)
      for (index[e] = inner_first(e); index[e] <= inner_last(e); index[e]++) {
        index[d] = inner_first(d);
        size_t start = at(index[X], index[Y], index[Z]);
        long origin = (long)start - index[d] * strides[d];
        add_operator(u + origin, out + origin, strides[d], d, inner_first(d), inner_last(d));
      }
  }
}

static void find_residual(void) {
  for (size_t i = 0; i < plane * (size_t)points; i++) residual[i] = -forcing[i];
  apply_operator(solution, residual);
}

/* Sends the own edge of a plane on to the ranks beside on `side`, or receives theirs from the other side. */
static void pass_edges(int k, int side, bool in) {
  for (int d = 0; d < 2; d++) {
    int peer = beside[d][in ? !side : side], count = own[1 - d] * UNKNOWNS;
    int edge = in ? (side ? first[d] - 1 : first[d] + own[d]) : (side ? first[d] + own[d] - 1 : first[d]);
    if (peer == MPI_PROC_NULL) continue;
    if (in) {
      MPI_Recv(buffer_in, count, MPI_DOUBLE, peer, TAG_SWEEP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      copy_edge(residual, d, edge, 1, k, k, buffer_in, true);
    } else {
      copy_edge(residual, d, edge, 1, k, k, buffer_out, false);
      MPI_Send(buffer_out, count, MPI_DOUBLE, peer, TAG_SWEEP, MPI_COMM_WORLD);
    }
  }
}

/* The coupling of a point with its three neighbours on one side: `sum` gets the products of blocks and updates. */
static void couple(int i, int j, int k, int side, State sum) {
  memset(sum, 0, sizeof(State));
  for (int d = 0; d < DIRECTIONS; d++) {
    size_t neighbour = at(i + (d == X ? side : 0), j + (d == Y ? side : 0), k + (d == Z ? side : 0));
    Block block;
    neighbour_block(solution + neighbour, d, side, block);
    for (int m = 0; m < UNKNOWNS; m++)
      for (int l = 0; l < UNKNOWNS; l++) sum[m] += RELAXATION * block[m][l] * residual[neighbour + (size_t)l];
  }
}

/* The lower sweep goes upwards with the neighbours below it (`side` -1), the upper one goes back. */
static void sweep(int side) {
  int step = -side, onward = side < 0;
  int from[DIRECTIONS], end[DIRECTIONS];
  for (int d = 0; d < DIRECTIONS; d++) {
    from[d] = side < 0 ? inner_first(d) : inner_last(d);
    end[d] = side < 0 ? inner_last(d) + 1 : inner_first(d) - 1;
  }
  for (int k = from[Z]; k != end[Z]; k += step) {
    pass_edges(k, onward, true);
    for (int j = from[Y]; j != end[Y]; j += step)
      for (int i = from[X]; i != end[X]; i += step) {
        double *v = residual + at(i, j, k);
        State sum;
        Block block;
        couple(i, j, k, side, sum);
        own_block(solution + at(i, j, k), block);
        if (side < 0) {
          for (int m = 0; m < UNKNOWNS; m++) v[m] -= sum[m];
          solve_block(block, v);
        } else {
          solve_block(block, sum);
          for (int m = 0; m < UNKNOWNS; m++) v[m] -= sum[m];
        }
      }
    pass_edges(k, onward, false);
  }
}

/* Calls `visit` for each own inner point. */
static void each_inner_point(void (*visit)(size_t point, int i, int j, int k, double *sums), double *sums) {
  for (int k = inner_first(Z); k <= inner_last(Z); k++)
    for (int j = inner_first(Y); j <= inner_last(Y); j++)
      for (int i = inner_first(X); i <= inner_last(X); i++) visit(at(i, j, k), i, j, k, sums);
}

static void exact_at(int i, int j, int k, State u) {
  double grid = points - 1;
  exact_solution((double[]){i / grid, j / grid, k / grid}, u);
}

/* Exact on the surface; inside it is blended from the surface, along each direction and together. */
static void begin_solution(void) {
  for (int k = 0; k < points; k++)
    for (int j = first[Y]; j < first[Y] + own[Y]; j++)
      for (int i = first[X]; i < first[X] + own[X]; i++) {
        int index[] = {i, j, k};
        bool inner = true;
        State along[DIRECTIONS], *u = (State *)&solution[at(i, j, k)];
        for (int d = 0; d < DIRECTIONS; d++) {
          int ends[] = {i, j, k};
          State low, high;
          double share = (double)index[d] / (points - 1);
          inner = inner && index[d] > 0 && index[d] < points - 1;
          ends[d] = 0;
          exact_at(ends[X], ends[Y], ends[Z], low);
          ends[d] = points - 1;
          exact_at(ends[X], ends[Y], ends[Z], high);
          for (int m = 0; m < UNKNOWNS; m++) along[d][m] = (1 - share) * low[m] + share * high[m];
        }
        if (!inner) exact_at(i, j, k, *u);
        for (int m = 0; inner && m < UNKNOWNS; m++) {
          double x = along[X][m], y = along[Y][m], z = along[Z][m];
          (*u)[m] = x + y + z - x * y - y * z - z * x + x * y * z;
        }
      }
}

/* The forcing term makes the exact solution the steady state. */
static void make_forcing(void) {
  double *exact = allocate(plane * (size_t)points, sizeof *exact);
  for (int k = 0; k < points; k++)
    for (int j = first[Y]; j < first[Y] + own[Y]; j++)
      for (int i = first[X]; i < first[X] + own[X]; i++) exact_at(i, j, k, *(State *)&exact[at(i, j, k)]);
  apply_operator(exact, forcing);
  free(exact);
}

static void scale_by_time(size_t point, int i, int j, int k, double *sums) {
  (void)i, (void)j, (void)k, (void)sums;
  for (size_t m = 0; m < UNKNOWNS; m++) residual[point + m] *= time_step;
}

static void add_update(size_t point, int i, int j, int k, double *sums) {
  (void)i, (void)j, (void)k, (void)sums;
  for (size_t m = 0; m < UNKNOWNS; m++) solution[point + m] += residual[point + m] / (RELAXATION * (2 - RELAXATION));
}

static void add_squares(size_t point, int i, int j, int k, double *sums) {
  State exact;
  exact_at(i, j, k, exact);
  for (size_t m = 0; m < UNKNOWNS; m++) {
    double error = exact[m] - solution[point + m];
    sums[m] += residual[point + m] * residual[point + m];
    sums[UNKNOWNS + m] += error * error;
  }
}

/* The point's share of the integral of the pressure over the surface of a box, by the trapezoidal rule. */
static void add_surface(size_t point, int i, int j, int k, double *sums) {
  /* Corners of the box, as indices over the whole cube. */
  static const int low[] = {1, 1, 2};
  const int high[] = {points - 2, points - 3, points - 2}, index[] = {i, j, k};
  for (int d = 0; d < DIRECTIONS; d++)
    if (index[d] < low[d] || index[d] > high[d]) return;
  for (int d = 0; d < DIRECTIONS; d++) {
    int e = (d + 1) % DIRECTIONS, f = (d + 2) % DIRECTIONS;
    if (index[d] != low[d] && index[d] != high[d]) continue;
    int weight = (index[e] == low[e] || index[e] == high[e] ? 1 : 2) * (index[f] == low[f] || index[f] == high[f] ? 1 : 2);
    sums[0] += 0.25 * weight * pressure(solution + point) / ((points - 1.0) * (points - 1.0));
  }
}

static bool verify_all(int class) {
  static const char *const UNKNOWN[] = {"density", "x momentum", "y momentum", "z momentum", "energy"};
  double sums[SUMS] = {0}, inner = pow(points - 2, 3);
  each_inner_point(add_squares, sums);
  each_inner_point(add_surface, sums + 2 * UNKNOWNS);
  MPI_Allreduce(MPI_IN_PLACE, sums, SUMS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  bool right = true;
  for (int i = 0; i < 2 * UNKNOWNS; i++) {
    char what[64];
    snprintf(what, sizeof what, "%s of %-10s", i < UNKNOWNS ? "residual" : "error   ", UNKNOWN[i % UNKNOWNS]);
    right = verify(what, sqrt(sums[i] / inner), CLASSES[class].sums[i], TOLERANCE) && right;
  }
  return verify("surface integral      ", sums[2 * UNKNOWNS], CLASSES[class].sums[2 * UNKNOWNS], TOLERANCE) && right;
}

int main(int argc, char **argv) {
  int class = start_class(&argc, &argv, "lu", "SWAB"), steps = CLASSES[class].steps;
  points = CLASSES[class].points;
  time_step = CLASSES[class].time_step;
  need_power_of_two("lu", most_ranks());
  lay_out();
  begin_solution();
  make_forcing();
  find_residual();

  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  for (int i = 0; i < steps; i++) {
    each_inner_point(scale_by_time, NULL);
    sweep(-1);
    sweep(1);
    each_inner_point(add_update, NULL);
    find_residual();
  }
  double seconds = MPI_Wtime() - began;
  bool right = verify_all(class);
  double n = points, operations = steps * (1984.77 * n * n * n - 10923.3 * n * n + 27770.9 * n - 144010);
  return finish("LU", "SWAB"[class], seconds, operations, right);
}
