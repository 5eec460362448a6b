/* 8 bytes to and fro between two ranks: ping_pong MESSAGES. Prints nothing. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words) {
  MPI_Init(&count, &words);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long messages = atol(words[1]);
  double word = 0;
  for (long message = 0; message < messages; message++) {
    if (message % 2 == rank)
      MPI_Send(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(&word, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
  return 0;
}
