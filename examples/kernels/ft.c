/* FT of the NAS Parallel Benchmarks: a partial differential equation in three dimensions, solved by Fourier transforms.

   The field is cut into slabs along z, the spectrum into slabs along y. Between the transforms in the plane and those
   along z, all ranks exchange blocks with all. */
#include "kernel.h"

typedef struct {
  double re, im;
} Complex;

enum { MOST_STEPS = 20, BATCH = 16, CHECKED = 1024 };
static const struct {
  int n[3], steps;
  Complex sums[MOST_STEPS];
} CLASSES[] = {
    {{64, 64, 64}, 6,
     {{554.6087004964, 484.5363331978}, {554.6385409189, 486.5304269511}, {554.6148406171, 488.3910722336},
      {554.5423607415, 490.1273169046}, {554.4255039624, 491.7475857993}, {554.2683411902, 493.2597244941}}},
    {{128, 128, 32}, 6,
     {{567.3612178944, 529.3246849175}, {563.1436885271, 528.2149986629}, {559.4024089970, 527.0996558037},
      {556.0698047020, 526.0027904925}, {553.0898991250, 524.9400845633}, {550.4159734538, 523.9212247086}}},
    {{256, 256, 128}, 6,
     {{504.6735008193, 511.4047905510}, {505.9412319734, 509.8809666433}, {506.9376896287, 509.8144042213},
      {507.7892868474, 510.1336130759}, {508.5233095391, 510.4914655194}, {509.1487099959, 510.7917842803}}},
    {{512, 256, 256}, 20,
     {{517.7643571579, 507.7803458597}, {515.4521291263, 508.8249431599}, {514.6409228649, 509.6208912659},
      {514.2378756213, 510.1023387619}, {513.9626667737, 510.3976610617}, {513.7423460082, 510.5948019802},
      {513.5547056878, 510.7404165783}, {513.3910925466, 510.8576573661}, {513.2470705390, 510.9577278523},
      {513.1197729984, 511.0460304483}, {513.0070319283, 511.1252433800}, {512.9070537032, 511.1968077718},
      {512.8182883502, 511.2616233064}, {512.7393733383, 511.3203605551}, {512.6691062020, 511.3735928093},
      {512.6064276004, 511.4218460548}, {512.5504076570, 511.4656139760}, {512.5002331720, 511.5053595966},
      {512.4551951846, 511.5415130407}, {512.4146770029, 511.5744692211}}}};
static const double DIFFUSION = 1e-6, TOLERANCE = 1e-12;

static int nx, ny, nz, own_y, own_z;
static size_t own_points;
static double pi;
/* Decay of a wave in one time step, by wave number along x, y and z. */
static double *decay[3];
static Complex *lines, *other_lines, *roots;

/* Transforms BATCH lines of `n` points, which lie in `lines` one beside the other, by halving the length in each pass
   and doubling the distance. The result is where the last pass has written it. */
static Complex *transform_batch(int n, int sign) {
  Complex *from = lines, *to = other_lines;
  for (int length = n, distance = BATCH; length > 1; length /= 2, distance *= 2) {
    for (int k = 0; k < length / 2; k++) {
      Complex root = roots[k * (n / length)];
      root.im *= sign;
      const Complex *low = from + (size_t)k * (size_t)distance, *high = low + (size_t)(length / 2) * (size_t)distance;
      Complex *sum = to + (size_t)k * 2 * (size_t)distance, *difference = sum + distance;
      for (int i = 0; i < distance; i++) {
        double re = low[i].re - high[i].re, im = low[i].im - high[i].im;
        sum[i] = (Complex){low[i].re + high[i].re, low[i].im + high[i].im};
        difference[i] = (Complex){re * root.re - im * root.im, re * root.im + im * root.re};
      }
    }
    Complex *swapped = from;
    from = to;
    to = swapped;
  }
  return from;
}

/* Transforms `count` lines in place, each of `n` points at a distance of `stride`; the lines begin `apart` apart. */
static void transform(Complex *data, int n, size_t stride, size_t count, size_t apart, int sign) {
  for (int k = 0; k < n / 2; k++) roots[k] = (Complex){cos(2 * pi * k / n), sin(2 * pi * k / n)};
  for (size_t first = 0; first < count; first += BATCH) {
    Complex *corner = data + first * apart;
    for (int i = 0; i < n; i++)
      for (size_t line = 0; line < BATCH; line++)
        lines[(size_t)i * BATCH + line] = corner[(size_t)i * stride + line * apart];
    const Complex *result = transform_batch(n, sign);
    for (int i = 0; i < n; i++)
      for (size_t line = 0; line < BATCH; line++)
        corner[(size_t)i * stride + line * apart] = result[(size_t)i * BATCH + line];
  }
}

static void transform_planes(Complex *field, int sign, bool x_first) {
  size_t plane = (size_t)nx * (size_t)ny;
  for (int z = 0; z < own_z; z++) {
    Complex *data = field + (size_t)z * plane;
    if (x_first) transform(data, nx, 1, (size_t)ny, (size_t)nx, sign);
    transform(data, ny, (size_t)nx, (size_t)nx, 1, sign);
    if (!x_first) transform(data, nx, 1, (size_t)ny, (size_t)nx, sign);
  }
}

/* Copies between the slabs along z and blocks by rank, each of which has the rank's part of y. */
static void copy_blocks(Complex *slabs, Complex *blocks, bool to_blocks) {
  size_t row = (size_t)own_y * (size_t)nx;
  for (int peer = 0; peer < ranks; peer++)
    for (int z = 0; z < own_z; z++, blocks += row) {
      Complex *slab = slabs + ((size_t)z * (size_t)ny + (size_t)(peer * own_y)) * (size_t)nx;
      memcpy(to_blocks ? blocks : slab, to_blocks ? slab : blocks, row * sizeof *slab);
    }
}

static void exchange(const Complex *out, Complex *in) {
  int count = (int)(own_points / (size_t)ranks) * 2;
  MPI_Alltoall(out, count, MPI_DOUBLE, in, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

/* Field [own z][y][x] to spectrum [z][own y][x]. `field` is used up. */
static void to_spectrum(Complex *field, Complex *spectrum, Complex *blocks) {
  transform_planes(field, -1, true);
  copy_blocks(field, blocks, true);
  exchange(blocks, spectrum);
  size_t row = (size_t)own_y * (size_t)nx;
  transform(spectrum, nz, row, row, 1, -1);
}

/* Spectrum to field, times the number of points. `spectrum` is used up. */
static void to_field(Complex *spectrum, Complex *field, Complex *blocks) {
  size_t row = (size_t)own_y * (size_t)nx;
  transform(spectrum, nz, row, row, 1, 1);
  exchange(spectrum, blocks);
  copy_blocks(field, blocks, false);
  transform_planes(field, 1, false);
}

static void begin_field(Complex *field) {
  uint64_t state = random_skip(RANDOM_SEED, 2 * (uint64_t)own_points * (uint64_t)rank);
  for (size_t i = 0; i < own_points; i++) {
    field[i].re = random_next(&state);
    field[i].im = random_next(&state);
  }
}

static void make_decay(const int *n) {
  for (int d = 0; d < 3; d++) {
    decay[d] = allocate((size_t)n[d], sizeof(double));
    for (int k = 0; k < n[d]; k++) {
      double wave = k < n[d] / 2 ? k : k - n[d];
      decay[d][k] = exp(-4 * DIFFUSION * pi * pi * wave * wave);
    }
  }
}

/* One time step of the spectrum, and a copy of it. */
static void evolve(Complex *spectrum, Complex *copy) {
  size_t i = 0;
  for (int z = 0; z < nz; z++)
    for (int y = 0; y < own_y; y++) {
      double factor = decay[2][z] * decay[1][rank * own_y + y];
      for (int x = 0; x < nx; x++, i++) {
        double by = factor * decay[0][x];
        spectrum[i].re *= by;
        spectrum[i].im *= by;
        copy[i] = spectrum[i];
      }
    }
}

/* The sum of the checked points, on rank 0. */
static Complex check_sum(const Complex *field) {
  Complex sum = {0, 0}, all = {0, 0};
  for (int j = 1; j <= CHECKED; j++) {
    int x = j % nx, y = 3 * j % ny, z = 5 * j % nz - rank * own_z;
    if (z < 0 || z >= own_z) continue;
    const Complex *point = &field[((size_t)z * (size_t)ny + (size_t)y) * (size_t)nx + (size_t)x];
    sum.re += point->re;
    sum.im += point->im;
  }
  MPI_Reduce(&sum, &all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  double points = (double)nx * ny * nz;
  return (Complex){all.re / points, all.im / points};
}

int main(int argc, char **argv) {
  int class = start_class(&argc, &argv, "ft", "SWAB"), steps = CLASSES[class].steps;
  const int *n = CLASSES[class].n;
  nx = n[0], ny = n[1], nz = n[2];
  need_power_of_two("ft", ny < nz ? ny : nz);
  pi = acos(-1);
  own_y = ny / ranks;
  own_z = nz / ranks;
  own_points = (size_t)nx * (size_t)ny * (size_t)own_z;
  size_t longest = (size_t)(nx > nz ? nx : nz);
  if (longest < (size_t)ny) longest = (size_t)ny;
  lines = allocate(longest * BATCH, sizeof *lines);
  other_lines = allocate(longest * BATCH, sizeof *lines);
  roots = allocate(longest, sizeof *roots);
  Complex *arrays[4];
  for (int i = 0; i < 4; i++) arrays[i] = allocate(own_points, sizeof(Complex));
  Complex *spectrum = arrays[0], *work = arrays[1], *field = arrays[2], *blocks = arrays[3], sums[MOST_STEPS];

  MPI_Barrier(MPI_COMM_WORLD);
  double began = MPI_Wtime();
  make_decay(n);
  begin_field(field);
  to_spectrum(field, spectrum, blocks);
  for (int step = 0; step < steps; step++) {
    evolve(spectrum, work);
    to_field(work, field, blocks);
    sums[step] = check_sum(field);
  }
  double seconds = MPI_Wtime() - began;

  bool right = true;
  if (rank == 0)
    for (int step = 0; step < steps; step++) {
      char what[64];
      snprintf(what, sizeof what, "step %2d, real     ", step + 1);
      right = verify(what, sums[step].re, CLASSES[class].sums[step].re, TOLERANCE) && right;
      snprintf(what, sizeof what, "step %2d, imaginary", step + 1);
      right = verify(what, sums[step].im, CLASSES[class].sums[step].im, TOLERANCE) && right;
    }
  double points = (double)nx * ny * nz;
  double operations = points * (14.8157 + 7.19641 * log(points) + (5.23518 + 7.21113 * log(points)) * steps);
  return finish("FT", "SWAB"[class], seconds, operations, right);
}
