/* Windows of 16 MiB for each rank, in memory that the library allocates: above the limits that the test sets. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm near;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
  const MPI_Aint bytes = 16 << 20;
  for (int shared = 0; shared < 2; shared++) {
    MPI_Comm comm = shared ? near : MPI_COMM_WORLD;
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    char *memory;
    MPI_Win window;
    if (shared)
      MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &memory, &window);
    else
      MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put("7", 1, MPI_CHAR, (rank + 1) % ranks, bytes - 1, 1, MPI_CHAR, window);
    MPI_Win_fence(0, window);
    if (memory[bytes - 1] != '7') MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Win_free(&window);
  }
  MPI_Comm_free(&near);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) puts(" ok");
  MPI_Finalize();
  return 0;
}
