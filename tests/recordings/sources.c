/* Receives whose source, or whose request, time decides; the order of the messages is the same in every run. */
#include <mpi.h>

int main(int argc, char **argv) {
  enum { ROUNDS = 20, COUNT = 100 };
  int rank, size, index, count, indices[2];
  double data[2][COUNT] = {{0}}, own[COUNT] = {0};
  MPI_Status statuses[2];
  MPI_Request requests[2], persistent;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int next = (rank + 1) % size;
  MPI_Recv_init(data[0], COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &persistent);
  for (int round = 0; round < ROUNDS; round++) {
    /* One message is on its way to each rank, so any source is one source. */
    MPI_Irecv(data[0], COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(own, COUNT, MPI_DOUBLE, next, 3, MPI_COMM_WORLD, &requests[1]);
    switch (round % 4) {
      case 0: MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); break;
      case 1:
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        break;
      case 2:
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Waitsome(2, requests, &count, indices, statuses);
        break;
      default:
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    }
    MPI_Start(&persistent);
    MPI_Send(own, COUNT, MPI_DOUBLE, next, 5, MPI_COMM_WORLD);
    MPI_Wait(&persistent, &statuses[0]);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&persistent);
  MPI_Finalize();
  return 0;
}
