/* Shared by the kernels: the benchmarks' random numbers, the start with its arguments, and the closing lines. */
#ifndef KERNEL_H
#define KERNEL_H

#include <math.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exit statuses. */
enum { EXIT_FAILED_VERIFICATION = 1, EXIT_WRONG_USE = 2 };

/* Random numbers: x(k+1) = a x(k) mod 2^46 with a = 5^13; a number in (0, 1) is x / 2^46. */
#define RANDOM_FACTOR UINT64_C(1220703125)
#ifndef RANDOM_SEED
#define RANDOM_SEED UINT64_C(314159265)
#endif
#define RANDOM_MASK ((UINT64_C(1) << 46) - 1)

static inline double random_next(uint64_t *x) {
  *x = *x * RANDOM_FACTOR & RANDOM_MASK;
  return (double)*x * 0x1p-46;
}

/* The state `count` numbers after `x`, by squaring. The product mod 2^64 keeps the low 46 bits right. */
static inline uint64_t random_skip(uint64_t x, uint64_t count) {
  for (uint64_t power = RANDOM_FACTOR; count; count >>= 1, power = power * power & RANDOM_MASK)
    if (count & 1) x = x * power & RANDOM_MASK;
  return x;
}

static int rank, ranks;

/* Ends the program because of its arguments. All ranks call it; rank 0 prints. */
static inline void refuse(const char *form, ...) {
  if (rank == 0) {
    va_list values;
    va_start(values, form);
    vfprintf(stderr, form, values);
    va_end(values);
    fputc('\n', stderr);
  }
  MPI_Finalize();
  exit(EXIT_WRONG_USE);
}

static inline void start(int *argc, char ***argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline void *allocate(size_t count, size_t size) {
  void *memory = calloc(count ? count : 1, size);
  if (!memory) {
    fprintf(stderr, "rank %d: no memory for %zu elements of %zu bytes; run fewer ranks on this host, or a smaller class\n",
            rank, count, size);
    MPI_Abort(MPI_COMM_WORLD, EXIT_WRONG_USE);
  }
  return memory;
}

/* Starts a benchmark of the NPB: its only argument is the class. Returns the place of the class in `classes`. */
static inline int start_class(int *argc, char ***argv, const char *name, const char *classes) {
  start(argc, argv);
  const char *word = *argc > 1 ? (*argv)[1] : "S";
  const char *found = strlen(word) == 1 ? strchr(classes, word[0]) : NULL;
  if (*argc > 2 || !found) refuse("usage: %s [CLASS]; CLASS is one letter of %s (default: S)", name, classes);
  return (int)(found - classes);
}

/* The rule for the number of ranks in the NPB. */
static inline void need_power_of_two(const char *name, int most) {
  if (ranks & (ranks - 1) || ranks > most)
    refuse("%s: %d ranks: the number of ranks must be a power of two, at most %d for this class", name, ranks, most);
}

static inline bool near(double value, double official, double tolerance) {
  return fabs(value - official) <= tolerance * fabs(official);
}

/* Prints one verified value on rank 0 and returns whether it is right. */
static inline bool verify(const char *what, double value, double official, double tolerance) {
  bool right = near(value, official, tolerance);
  if (rank == 0)
    printf("  %s %.13e, official %.13e, difference %.1e%s\n", what, value, official,
           fabs((value - official) / official), right ? "" : ": WRONG");
  return right;
}

/* Prints the closing lines on rank 0 and ends MPI. `seconds` is the time of this rank, `operations` the number of all
   ranks. Returns the exit status; `right` counts on rank 0. */
static inline int finish(const char *name, char class, double seconds, double operations, bool right) {
  double longest;
  MPI_Allreduce(&seconds, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  int verdict = right;
  MPI_Bcast(&verdict, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("%s class %c on %d ranks: %.6f s", name, class, ranks, longest);
    if (longest > 0) printf(", %.1f Mop/s", operations / longest / 1e6);
    printf("\nVERIFICATION %s\n", verdict ? "SUCCESSFUL" : "FAILED");
  }
  MPI_Finalize();
  return verdict ? 0 : EXIT_FAILED_VERIFICATION;
}

#endif
