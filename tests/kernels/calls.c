/* Calls whose recording and replay need more than their arguments. The argument names a group of them. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures;

#define EXPECT(condition) \
  do { \
    if (!(condition)) failures++, fprintf(stderr, "%d: line %d: %s\n", rank, __LINE__, #condition); \
  } while (0)

/* A persistent receive from any source meets each other rank once in each round; ranks send in an order that time decides. */
static void persistent(void) {
  enum { ROUNDS = 5, COUNT = 3000 };
  double *data = calloc(COUNT, sizeof *data), work = 1;
  MPI_Request receive;
  MPI_Recv_init(data, COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &receive);
  for (int round = 0; round < ROUNDS; round++) {
    if (rank == 0) {
      int seen = 0;
      for (int i = 1; i < size; i++) {
        MPI_Status status;
        if (i % 2) MPI_Start(&receive);
        else MPI_Startall(1, &receive);
        MPI_Wait(&receive, &status);
        seen |= 1 << status.MPI_SOURCE;
        MPI_Send(data, 1, MPI_DOUBLE, status.MPI_SOURCE, 8, MPI_COMM_WORLD);
      }
      EXPECT(seen == (1 << size) - 2);
    } else {
      for (int i = 0; i < (rank * 7 + round * 5) % 11 * 2000; i++) work = work * 1.0000001 + 1e-9;
      data[0] = work;
      MPI_Sendrecv(data, 1 + rank * 400, MPI_DOUBLE, 0, 7, data, 1, MPI_DOUBLE, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Request_free(&receive);
  free(data);
}

/* Messages and a broadcast of data at absolute addresses. */
static void bottom(void) {
  static int on_static[40];
  int on_stack[30], *on_heap = calloc(1 << 20, sizeof *on_heap), right = (rank + 1) % size, left = (rank + size - 1) % size;
  int lengths[4] = {40, 30, 500, 9}, round;
  MPI_Aint places[4];
  MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, all;
  MPI_Get_address(on_static, &places[0]);
  MPI_Get_address(on_stack, &places[1]);
  MPI_Get_address(on_heap, &places[2]);
  places[3] = MPI_Aint_add(places[2], 4000 * sizeof(int));
  MPI_Type_create_struct(4, lengths, places, types, &all);
  MPI_Type_commit(&all);
  for (int i = 0; i < 30; i++) on_stack[i] = rank;
  for (round = 0; round < 4; round++) MPI_Sendrecv_replace(MPI_BOTTOM, 1, all, right, 3, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT(on_stack[29] == (rank + 4 * size - 4) % size);
  MPI_Bcast(MPI_BOTTOM, 1, all, 0, MPI_COMM_WORLD);
  MPI_Type_free(&all);
  free(on_heap);
}

static int query(void *state, MPI_Status *status) {
  (void)state;
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED, status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int done(void *state) { return ++*(int *)state, MPI_SUCCESS; }
static int cancelled(void *state, int complete) { return (void)state, (void)complete, MPI_SUCCESS; }

static void generalized(void) {
  int freed = 0, flag, got;
  for (int i = 0; i < 5; i++) {
    MPI_Request both[2];
    MPI_Grequest_start(query, done, cancelled, &freed, &both[0]);
    MPI_Irecv(&got, 1, MPI_INT, (rank + 1) % size, 4, MPI_COMM_WORLD, &both[1]);
    MPI_Test(&both[0], &flag, MPI_STATUS_IGNORE);
    EXPECT(!flag);
    MPI_Send(&rank, 1, MPI_INT, (rank + size - 1) % size, 4, MPI_COMM_WORLD);
    MPI_Grequest_complete(both[0]);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
  }
  EXPECT(freed == 5);
}

/* A dynamic window whose memory each rank attaches where it likes. */
static void dynamic(void) {
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  int *small = calloc(100, sizeof *small), *large = calloc(1 << 16, sizeof *large), one = 1, old;
  MPI_Win_attach(win, small, 100 * sizeof *small);
  MPI_Win_attach(win, large, (1 << 16) * sizeof *large);
  MPI_Aint own[2], *all = malloc(2 * size * sizeof *all);
  MPI_Get_address(small, &own[0]);
  MPI_Get_address(large, &own[1]);
  MPI_Allgather(own, 2, MPI_AINT, all, 2, MPI_AINT, MPI_COMM_WORLD);
  int *data = calloc(5000, sizeof *data), next = (rank + 1) % size;
  data[4999] = rank + 1;
  MPI_Win_fence(0, win);
  MPI_Put(data, 5000, MPI_INT, next, all[2 * next + 1] + 64, 5000, MPI_INT, win);
  MPI_Win_fence(0, win);
  EXPECT(large[16 + 4999] == (rank + size - 1) % size + 1);
  for (int target = 0; target < size; target++) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
    MPI_Fetch_and_op(&one, &old, MPI_INT, target, all[2 * target] + 4 * sizeof(int), MPI_SUM, win);
    MPI_Win_unlock(target, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  EXPECT(small[4] == size);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_detach(win, small);
  MPI_Win_detach(win, large);
  MPI_Win_free(&win);
  free(small), free(large), free(all), free(data);
}

/* Windows of all other kinds, with every kind of epoch. */
static void windows(void) {
  enum { COUNT = 20000 };
  double *memory, *data = calloc(COUNT, sizeof *data), *own = calloc(COUNT, sizeof *own);
  MPI_Win win[2];
  MPI_Win_allocate(COUNT * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win[0]);
  MPI_Win_create(own, COUNT * sizeof *own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &win[1]);
  int next = (rank + 1) % size, before = (rank + size - 1) % size;
  MPI_Group world, to, from;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &next, &to);
  MPI_Group_incl(world, 1, &before, &from);
  for (int i = 0; i < 2; i++) {
    for (int count = 1; count <= COUNT; count *= 20) {
      MPI_Win_fence(0, win[i]);
      MPI_Put(data, count, MPI_DOUBLE, next, 0, count, MPI_DOUBLE, win[i]);
      MPI_Win_fence(0, win[i]);
      MPI_Win_post(from, 0, win[i]);
      MPI_Win_start(to, 0, win[i]);
      MPI_Accumulate(data, count, MPI_DOUBLE, next, 0, count, MPI_DOUBLE, MPI_SUM, win[i]);
      MPI_Win_complete(win[i]);
      MPI_Win_wait(win[i]);
      MPI_Win_lock_all(0, win[i]);
      MPI_Get(data, count, MPI_DOUBLE, before, 0, count, MPI_DOUBLE, win[i]);
      MPI_Win_flush(before, win[i]);
      MPI_Win_unlock_all(win[i]);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
  MPI_Group_free(&world), MPI_Group_free(&to), MPI_Group_free(&from);
  MPI_Win_free(&win[0]), MPI_Win_free(&win[1]);
  free(data), free(own);
}

/* Packing for other machines, and datatypes taken apart. */
static void types(void) {
  int pairs[40] = {0}, counts[3], number;
  char packed[400];
  MPI_Datatype made, other[1];
  MPI_Aint position = 0;
  MPI_Type_vector(10, 2, 4, MPI_INT, &made);
  MPI_Type_commit(&made);
  MPI_Pack_external("external32", pairs, 1, made, packed, sizeof packed, &position);
  MPI_Sendrecv_replace(packed, position, MPI_BYTE, (rank + 1) % size, 0, (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  position = 0;
  MPI_Unpack_external("external32", packed, sizeof packed, &position, pairs, 1, made);
  MPI_Datatype twice;
  MPI_Type_contiguous(2, made, &twice);
  MPI_Type_get_contents(twice, 1, 0, 1, counts, NULL, other);
  EXPECT(counts[0] == 2);
  MPI_Type_size(other[0], &number);
  MPI_Type_commit(&other[0]);
  MPI_Bcast(pairs, 1, other[0], 0, MPI_COMM_WORLD);
  EXPECT(number == 20 * (int)sizeof(int));
  MPI_Type_free(&other[0]), MPI_Type_free(&twice), MPI_Type_free(&made);
}

int main(int argc, char **argv) {
  const struct {
    const char *name;
    void (*run)(void);
  } groups[] = {{"persistent", persistent}, {"bottom", bottom},   {"generalized", generalized},
                {"dynamic", dynamic},       {"windows", windows}, {"types", types}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int known = 0;
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    if (argc > 1 && strcmp(argv[1], groups[i].name) == 0) known = 1, groups[i].run();
  MPI_Finalize();
  return failures || !known;
}
