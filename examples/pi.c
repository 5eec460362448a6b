/* Works out pi on all ranks: each sums its share of the area under 4/(1+x*x), and rank 0 adds up. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  const int slices = 10000000;
  double start = MPI_Wtime(), share = 0, pi = 0;
  for (int i = rank; i < slices; i += size) {
    double x = (i + 0.5) / slices;
    share += 4 / (1 + x * x) / slices;
  }
  MPI_Reduce(&share, &pi, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);

  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length;
  MPI_Get_library_version(version, &length);
  if (rank == 0)
    printf("pi is %.12f (off by %.1e), %d ranks, %.3f s, %s\n", pi, fabs(pi - acos(-1)), size, MPI_Wtime() - start,
           version);
  MPI_Finalize();
  return 0;
}
