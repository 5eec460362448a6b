/* The hot paths, each in a function of its own for callgrind to count: rank 0 is counted, rank 1 is its peer.
 * All that rank 0 waits for has arrived before it looks, and nothing it sends is taken before it has sent all
 * of it, so the counts do not depend on the clock. Every path has been walked once before it is counted: tables
 * that grow and symbols that are looked up cost what the heap of the day makes of them. Rank 1 takes part in the
 * collectives before rank 0 does; run.py takes the least count of several calls, should it once come late.
 * The program is built for the standard ABI, and for MPICH's and Open MPI's. With FORTRAN, hot.F90 has the paths that convert. */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 100, TURNS = 20 };

static char bytes[ROUNDS][4096];
#ifndef FORTRAN
static MPI_Request requests[ROUNDS];
static MPI_Status statuses[ROUNDS];
#endif

/* A path, and the same under another name, which is not counted. */
#define PATH(NAME, CALLS)                                              \
  __attribute__((noipa)) static void NAME(void) { CALLS; }          \
  __attribute__((noipa)) static void NAME##_before(void) { CALLS; }
#ifdef FORTRAN
#define CONVERTED(NAME, CALLS) \
  extern void NAME(void);      \
  extern void NAME##_before(void);
#else
#define CONVERTED PATH
#endif
#define EACH for (int i = 0; i < ROUNDS; i++)

CONVERTED(send_8, EACH MPI_Send(bytes[i], 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD))
PATH(send_1024, EACH MPI_Send(bytes[i], 1024, MPI_BYTE, 1, 1, MPI_COMM_WORLD))
CONVERTED(isend_8, EACH MPI_Isend(bytes[i], 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
     MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE))
CONVERTED(irecv_8, EACH MPI_Irecv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]))
CONVERTED(waitall_8, MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE))
CONVERTED(recv_8, EACH MPI_Recv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE))
CONVERTED(recv_status_8, EACH MPI_Recv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &statuses[i]))
CONVERTED(sendrecv_8, EACH MPI_Sendrecv(bytes[i], 8, MPI_BYTE, 1, 1, bytes[i] + 8, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE))
CONVERTED(exchange_8, EACH {
  MPI_Irecv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Send(bytes[i] + 8, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
})
CONVERTED(exchange_status_8, EACH {
  MPI_Irecv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(bytes[i] + 8, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, statuses);
})
CONVERTED(waitall_status_8, MPI_Waitall(ROUNDS, requests, statuses))
PATH(empty_poll, int flag; EACH MPI_Iprobe(1, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE))

static int64_t ours, sum;

PATH(barrier, MPI_Barrier(MPI_COMM_WORLD))
PATH(bcast_8, MPI_Bcast(bytes[0], 8, MPI_BYTE, 1, MPI_COMM_WORLD))
PATH(bcast_root_8, MPI_Bcast(bytes[0], 8, MPI_BYTE, 0, MPI_COMM_WORLD))
PATH(allreduce_8, MPI_Allreduce(&ours, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD))

static void take(int count, int size) {
  for (int i = 0; i < count; i++) MPI_Recv(bytes[i], size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void give(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Send(bytes[i], 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
}

/* How often each rank has been here. */
static _Atomic int *met;

/* Both ranks are here. Without MPI calls, which would take arrived packets. */
static void meet(int rank) {
  int mine = ++met[rank];
  while (met[!rank] < mine) usleep(1000);
}

#define WALK(NAME) (counted ? NAME() : NAME##_before())

/* A path that receives what the peer has sent, and sends as much, which the peer then takes. */
#define GIVE_AND_TAKE(NAME)     \
  if (rank == 1) give();        \
  meet(rank);                   \
  if (rank == 0) WALK(NAME);    \
  meet(rank);                   \
  if (rank == 1) take(ROUNDS, 8); \
  meet(rank);

static void walk(int rank, int counted) {
  meet(rank);
  if (rank == 0) WALK(send_8);
  meet(rank);
  if (rank == 1) take(ROUNDS, 8);
  meet(rank);
  if (rank == 0) WALK(send_1024);
  meet(rank);
  if (rank == 1) take(ROUNDS, 1024);
  meet(rank);
  if (rank == 0) WALK(isend_8);
  meet(rank);
  if (rank == 1) take(ROUNDS, 8);
  meet(rank);
  if (rank == 0) WALK(irecv_8);
  meet(rank);
  if (rank == 1) give();
  meet(rank);
  if (rank == 0) WALK(waitall_8);
  meet(rank);
  if (rank == 1) give();
  meet(rank);
  if (rank == 0) WALK(recv_8);
  meet(rank);
  if (rank == 0) WALK(empty_poll);
  meet(rank);
}

/* Paths that convert more than others where the program has another ABI. */
static void walk_conversions(int rank, int counted) {
  meet(rank);
  if (rank == 1) give();
  meet(rank);
  if (rank == 0) WALK(recv_status_8);
  meet(rank);
  GIVE_AND_TAKE(sendrecv_8)
  GIVE_AND_TAKE(exchange_8)
  GIVE_AND_TAKE(exchange_status_8)
  if (rank == 0) irecv_8_before();
  meet(rank);
  if (rank == 1) give();
  meet(rank);
  if (rank == 0) WALK(waitall_status_8);
  meet(rank);
}

/* A collective to which rank 0 comes last. */
#define LAST(NAME)                 \
  meet(rank);                      \
  if (rank == 1) NAME##_before();  \
  if (rank == 0) {                 \
    usleep(2000);                  \
    WALK(NAME);                    \
  }

static void walk_together(int rank, int counted) {
  for (int turn = 0; turn < TURNS; turn++) {
    LAST(barrier)
    LAST(bcast_8)
    LAST(allreduce_8)
    /* The root comes first, and does not wait. */
    meet(rank);
    if (rank == 0) WALK(bcast_root_8);
    meet(rank);
    if (rank == 1) bcast_root_8_before();
  }
  meet(rank);
}

/* Accesses to memory that both ranks map; the other ABIs convert nothing here that a send does not. */
#if defined MPI_ABI_VERSION && !defined FORTRAN
static MPI_Win window;
static long one = 1, two = 2, old;

PATH(put_8, EACH MPI_Put(&one, 1, MPI_LONG, 1, i, 1, MPI_LONG, window))
PATH(get_8, EACH MPI_Get(&old, 1, MPI_LONG, 1, i, 1, MPI_LONG, window))
PATH(accumulate_8, EACH MPI_Accumulate(&one, 1, MPI_LONG, 1, i, 1, MPI_LONG, MPI_SUM, window))
PATH(fetch_and_op_8, EACH MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, i, MPI_SUM, window))
PATH(compare_and_swap_8, EACH MPI_Compare_and_swap(&one, &two, &old, MPI_LONG, 1, i, window))

static void walk_window(int rank) {
  long *base;
  MPI_Win_allocate(ROUNDS * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  MPI_Win_lock_all(0, window);
  if (rank == 0) {
    put_8_before(), put_8(), get_8_before(), get_8(), accumulate_8_before(), accumulate_8();
    fetch_and_op_8_before(), fetch_and_op_8(), compare_and_swap_8_before(), compare_and_swap_8();
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}
#else
static void walk_window(int rank) { (void)rank; }
#endif

int main(int argc, char **argv) {
  int file = argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : -1;
  if (file < 0 || ftruncate(file, 2 * sizeof *met)) return 2;
  met = mmap(NULL, 2 * sizeof *met, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (met == MAP_FAILED) return 2;
  MPI_Init(&argc, &argv);
  int rank = atoi(getenv("FISHPLATE_RANK"));
  char token = 0;
  MPI_Sendrecv_replace(&token, 1, MPI_BYTE, !rank, 3, !rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  walk(rank, 0);
  walk(rank, 1);
  walk_together(rank, 0);
  walk_together(rank, 1);
  walk_conversions(rank, 0);
  walk_conversions(rank, 1);
  walk_window(rank);
  MPI_Finalize();
  return 0;
}
