/* Messages of a rank to itself: nanoseconds of an iteration of three calls. Arguments: iterations, and computing in each, in nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv) {
  int count = atoi(argv[1]), computing = atoi(argv[2]);
  double sent = 1, received, inside = 0;
  volatile double work = 0;
  MPI_Request requests[2];
  MPI_Init(&argc, &argv);
  for (int i = 0; i < count; i++) {
    double began = now();
    MPI_Irecv(&received, 1, MPI_DOUBLE, 0, 7, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&sent, 1, MPI_DOUBLE, 0, 7, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    double ended = now();
    inside += ended - began;
    for (double until = ended + computing; now() < until;) work += 1;
  }
  printf("%g\n", inside / count);
  MPI_Finalize();
  return 0;
}
