/* Ends as its first argument says, after as many steps as the second one says. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int rank, steps = argc > 2 ? atoi(argv[2]) : 10;
  double mine = 1, all = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int step = 0; step < steps; step++) MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  if (!strcmp(argv[1], "exit")) exit(0);
  if (!strcmp(argv[1], "abort") && rank == 1) MPI_Abort(MPI_COMM_WORLD, 3);
  if (!strcmp(argv[1], "kill") && rank == 1) kill(getpid(), SIGKILL);
  if (rank == 0) printf("%g\n", all), fflush(stdout);
  MPI_Finalize();
  return 0;
}
