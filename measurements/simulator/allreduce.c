/* Allreduces of 8 bytes over all ranks: allreduce TIMES. Prints nothing, and fails if a sum is wrong. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words) {
  MPI_Init(&count, &words);
  int ranks;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int time = 0, times = atoi(words[1]); time < times; time++) {
    double one = 1, sum;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks)
      MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
