/* Snapshots of a field that moves over a periodic square of N x N points, divided among a grid of ranks. Each snapshot is a collective
   write through a view of the rank's block; a line of each rank goes to a log by its shared pointer. The last snapshot is read again. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int first(int points, int parts, int part) { return points / parts * part + (part < points % parts ? part : points % parts); }

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int points = argc > 1 ? atoi(argv[1]) : 256, steps = argc > 2 ? atoi(argv[2]) : 4;
  const char *name = argc > 3 ? argv[3] : "snapshots.data", *log_name = argc > 4 ? argv[4] : "snapshots.log";
  int size, rank, dims[2] = {0, 0}, periods[2] = {1, 1}, place[2], left, right;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Dims_create(size, 2, dims);
  MPI_Comm grid;
  MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, place);
  MPI_Cart_shift(grid, 1, 1, &left, &right);
  if (points < dims[0] || steps < 1) {
    fprintf(stderr, "usage: snapshots [POINTS [STEPS [FILE [LOG]]]], with at least one point a rank\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }

  int whole[2] = {points, points}, from[2], own[2];
  for (int i = 0; i < 2; i++) from[i] = first(points, dims[i], place[i]), own[i] = first(points, dims[i], place[i] + 1) - from[i];
  MPI_Datatype block;
  MPI_Type_create_subarray(2, whole, own, from, MPI_ORDER_C, MPI_DOUBLE, &block);
  MPI_Type_commit(&block);
  int count = own[0] * own[1];
  double *field = malloc(count * sizeof *field), *again = malloc(count * sizeof *again), edge;
  if (!field || !again) MPI_Abort(MPI_COMM_WORLD, 3);
  for (int i = 0; i < count; i++) field[i] = (double)(from[0] + i / own[1]) * points + from[1] + i % own[1];

  MPI_File file, log;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "cb_buffer_size", "65536");
  MPI_File_open(grid, name, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &file);
  MPI_Info_free(&info);
  MPI_File_open(grid, log_name, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &log);
  MPI_File_set_size(file, 0);
  MPI_File_set_size(log, 0);
  MPI_Offset snapshot = (MPI_Offset)points * points * sizeof(double), length;
  int wrong = 0;
  for (int step = 0; step < steps; step++) {
    MPI_Sendrecv(field, 1, MPI_DOUBLE, left, 0, &edge, 1, MPI_DOUBLE, right, 0, grid, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; i++) field[i] += 1;
    MPI_File_set_view(file, step * snapshot, MPI_DOUBLE, block, "native", MPI_INFO_NULL);
    if (step % 2) {
      MPI_File_write_all_begin(file, field, count, MPI_DOUBLE);
      MPI_File_write_all_end(file, field, MPI_STATUS_IGNORE);
    } else {
      MPI_File_write_all(file, field, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    }
    char line[64];
    int text = snprintf(line, sizeof line, "step %d, rank %d: %.1f\n", step, rank, edge);
    MPI_File_write_ordered(log, line, text, MPI_CHAR, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_File_iwrite_shared(log, line, text, MPI_CHAR, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_File_sync(file);
  MPI_File_get_size(file, &length);
  MPI_File_seek(file, 0, MPI_SEEK_SET);
  MPI_File_read_all(file, again, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
  for (int i = 0; i < count; i++) wrong += again[i] != field[i];
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, grid);
  MPI_File_close(&file);
  MPI_File_close(&log);
  if (rank == 0) printf("%d snapshots of %d x %d points, %lld bytes: %s\n", steps, points, points, (long long)length, wrong ? "WRONG" : "as written");

  MPI_Type_free(&block);
  MPI_Comm_free(&grid);
  free(field), free(again);
  MPI_Finalize();
  return wrong || length != steps * snapshot;
}
