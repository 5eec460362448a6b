/* Objects of every kind that a rank makes: communicators, groups, datatypes, operations, windows, files, neighbourhoods. */
#include <mpi.h>
#include <stdlib.h>

static void add(void *in, void *out, int *count, MPI_Datatype *type) {
  (void)type;
  for (int i = 0; i < *count; i++) ((double *)out)[i] += ((double *)in)[i];
}

static void collectives(int rank, int size) {
  int counts[8], places[8];
  double own[64] = {0}, all[512] = {0};
  for (int i = 0; i < size; i++) counts[i] = i + 1, places[i] = i * 8;
  MPI_Op op;
  MPI_Op_create(add, 1, &op);
  MPI_Allreduce(own, all, 8, MPI_DOUBLE, op, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  MPI_Allgatherv(own, rank + 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Gatherv(own, rank + 1, MPI_DOUBLE, all, counts, places, MPI_DOUBLE, 1 % size, MPI_COMM_WORLD);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 4, MPI_DOUBLE, MPI_COMM_WORLD);
  MPI_Reduce(rank ? own : MPI_IN_PLACE, rank ? NULL : own, 16, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  MPI_Reduce_scatter(own, all, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void communicators(int rank, int size) {
  int dims[2] = {0, 0}, periods[2] = {1, 0}, keep[2] = {1, 0}, ranks[1] = {0}, left, right;
  double own[4] = {0}, near[16];
  MPI_Comm grid, row, half, some, graph;
  MPI_Group world, one, other;
  MPI_Dims_create(size, 2, dims);
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Cart_sub(grid, keep, &row);
  MPI_Cart_shift(grid, 0, 1, &left, &right);
  MPI_Sendrecv(own, 4, MPI_DOUBLE, right, 1, near, 4, MPI_DOUBLE, left, 1, grid, MPI_STATUS_IGNORE);
  MPI_Neighbor_allgather(own, 4, MPI_DOUBLE, near, 4, MPI_DOUBLE, grid);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2 ? MPI_UNDEFINED : 0, -rank, &half);
  if (half != MPI_COMM_NULL) {
    MPI_Bcast(own, 4, MPI_DOUBLE, 0, half);
    MPI_Comm_free(&half);
  }
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Comm_group(MPI_COMM_WORLD, &other);
  MPI_Group_incl(world, 1, ranks, &one);
  MPI_Group_free(&world);
  MPI_Comm_create(MPI_COMM_WORLD, one, &some);
  if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
  MPI_Group_free(&one);
  MPI_Group_free(&other);
  int source = (rank + size - 1) % size, destination = (rank + 1) % size;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &source, MPI_UNWEIGHTED, 1, &destination, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Neighbor_alltoall(own, 4, MPI_DOUBLE, near, 4, MPI_DOUBLE, graph);
  MPI_Comm_free(&graph);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

static void datatypes(int rank, int size) {
  int lengths[2] = {2, 3}, sizes[2] = {8, 8}, part[2] = {2, 4}, from[2] = {1, 1};
  double data[64] = {0};
  MPI_Aint places[2];
  MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, both, block, wide;
  MPI_Get_address(&data[0], &places[0]);
  MPI_Get_address(&data[8], &places[1]);
  MPI_Type_create_struct(2, lengths, places, types, &both);
  MPI_Type_commit(&both);
  MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_FORTRAN, MPI_DOUBLE, &block);
  MPI_Type_commit(&block);
  MPI_Type_create_resized(MPI_FLOAT, 0, 16, &wide);
  MPI_Type_commit(&wide);
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Sendrecv(MPI_BOTTOM, 1, both, next, 2, &data[32], 64, MPI_BYTE, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Bcast(data, 1, block, 0, MPI_COMM_WORLD);
  MPI_Bcast(data, 4, wide, 0, MPI_COMM_WORLD);
  MPI_Type_free(&both);
  MPI_Type_free(&block);
  MPI_Type_free(&wide);
}

static void windows(int rank, int size) {
  double *base, data[8] = {0};
  MPI_Win win;
  MPI_Win_allocate(64 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  MPI_Put(data, 8, MPI_DOUBLE, (rank + 1) % size, 8, 8, MPI_DOUBLE, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock(MPI_LOCK_SHARED, (rank + 1) % size, 0, win);
  MPI_Get(data, 8, MPI_DOUBLE, (rank + 1) % size, 0, 8, MPI_DOUBLE, win);
  MPI_Accumulate(data, 4, MPI_DOUBLE, (rank + 1) % size, 16, 4, MPI_DOUBLE, MPI_SUM, win);
  MPI_Win_unlock((rank + 1) % size, win);
  MPI_Win_free(&win);
}

static void files(int rank) {
  char data[256] = {0};
  MPI_File file;
  if (MPI_File_open(MPI_COMM_WORLD, "objects.data", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file)) abort();
  MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
  MPI_File_write_at_all(file, rank * 256, data, 256, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read(file, data, 16, MPI_BYTE, MPI_STATUS_IGNORE);
  MPI_File_close(&file);
}

int main(int argc, char **argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  collectives(rank, size);
  communicators(rank, size);
  datatypes(rank, size);
  windows(rank, size);
  files(rank);
  MPI_Finalize();
  return 0;
}
