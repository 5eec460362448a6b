/* Loops of one pattern of communication without computing: what a limit of eager messages does to them.

       patterns PATTERN BYTES STEPS

   ring: every rank sends to the next one and receives from the one before. halo: exchanges with the two next and the two previous ranks, then
   an MPI_Allreduce. alltoall: MPI_Alltoall. wave: each rank receives from the one before and then sends to the next one, so that waves follow
   each other through the ranks. workers: rank 0 answers the results of the others with the next piece of work. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int size, rank, bytes;
static char *out, *in;

static void ring(void) {
  MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

static void halo(void) {
  static const int neighbours[] = {1, -1, 2, -2};
  MPI_Request requests[8];
  for (int i = 0; i < 4; i++)
    MPI_Irecv(in + (size_t)i * bytes, bytes, MPI_BYTE, (rank - neighbours[i] + 2 * size) % size, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < 4; i++)
    MPI_Isend(out + (size_t)i * bytes, bytes, MPI_BYTE, (rank + neighbours[i] + 2 * size) % size, i, MPI_COMM_WORLD, &requests[4 + i]);
  MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
  double own = rank, all;
  MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(void) { MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD); }

static void wave(void) {
  if (rank > 0) MPI_Recv(in, bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank + 1 < size) MPI_Send(out, bytes, MPI_BYTE, rank + 1, 0, MPI_COMM_WORLD);
}

static void workers(void) {
  if (rank > 0) {
    MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int i = 1; i < size; i++) {
    MPI_Status status;
    MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Send(out, bytes, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
  }
}

static const struct {
  const char *name;
  void (*step)(void);
} PATTERNS[] = {{"ring", ring}, {"halo", halo}, {"alltoall", alltoall}, {"wave", wave}, {"workers", workers}};

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  void (*step)(void) = NULL;
  for (size_t i = 0; argc == 4 && i < sizeof PATTERNS / sizeof *PATTERNS; i++)
    if (strcmp(argv[1], PATTERNS[i].name) == 0) step = PATTERNS[i].step;
  bytes = step ? atoi(argv[2]) : 0;
  const size_t room = (size_t)bytes * (size > 4 ? size : 4) + 1;
  out = calloc(room, 1), in = calloc(room, 1);
  if (!step || !out || !in) {
    if (rank == 0) fprintf(stderr, "usage: patterns ring|halo|alltoall|wave|workers BYTES STEPS\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  step();
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  for (int i = atoi(argv[3]); i > 0; i--) step();
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%s of %d B on %d ranks: %.9f s\n", argv[1], bytes, size, MPI_Wtime() - start);
  free(out), free(in);
  MPI_Finalize();
  return 0;
}
