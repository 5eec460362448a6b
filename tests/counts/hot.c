/* The hot paths, each in a function of its own for callgrind to count: rank 0 is counted, rank 1 is its peer.
 * All that rank 0 waits for has arrived before it looks, and nothing it sends is taken before it has sent all
 * of it, so the counts do not depend on the clock. */
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 100, PAUSE = 400000 };

static char bytes[ROUNDS][4096];
static MPI_Request requests[ROUNDS];

__attribute__((noinline)) static void send_8(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Send(bytes[i], 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void send_1024(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Send(bytes[i], 1024, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
}

__attribute__((noinline)) static void isend_8(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Isend(bytes[i], 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
  MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE);
}

__attribute__((noinline)) static void irecv_8(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Irecv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
}

__attribute__((noinline)) static void waitall_8(void) { MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE); }

__attribute__((noinline)) static void recv_8(void) {
  for (int i = 0; i < ROUNDS; i++) MPI_Recv(bytes[i], 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

__attribute__((noinline)) static void empty_poll(void) {
  int flag;
  for (int i = 0; i < ROUNDS; i++) MPI_Iprobe(1, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/* Not before rank 0, which pauses too, has sent all of them: what it has been told of taken ones, and so the
 * room it finds, would differ from run to run. */
static void take(int count, int size) {
  usleep(3 * PAUSE);
  for (int i = 0; i < count; i++) MPI_Recv(bytes[i], size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Both are here, and rank 1 has had the time to send what comes next. */
static void meet(int rank, int messages) {
  char token = 0;
  if (rank == 0) {
    MPI_Send(&token, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    MPI_Recv(&token, 1, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    usleep(PAUSE);
  } else {
    MPI_Recv(&token, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&token, 1, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
    /* Not before the token has been taken, or some would be received along with it, uncounted. */
    usleep(PAUSE / 2);
    for (int i = 0; i < messages; i++) MPI_Send(bytes[i], 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  int rank = atoi(getenv("FISHPLATE_RANK"));
  meet(rank, 0);
  if (rank == 0) send_8(); else take(ROUNDS, 8);
  meet(rank, 0);
  if (rank == 0) send_1024(); else take(ROUNDS, 1024);
  meet(rank, 0);
  if (rank == 0) isend_8(); else take(ROUNDS, 8);
  meet(rank, 0);
  if (rank == 0) irecv_8();
  meet(rank, ROUNDS);
  if (rank == 0) waitall_8();
  meet(rank, ROUNDS);
  if (rank == 0) recv_8();
  meet(rank, 0);
  if (rank == 0) empty_poll();
  meet(rank, 0);
  MPI_Finalize();
  return 0;
}
