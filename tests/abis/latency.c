/* Times exchanges of 8 bytes, by MPI calls that pass requests and statuses in different ways: of one rank with itself, and of two ranks
 * with each other. It is built for each ABI, and latency.py compares. Rank 0 prints nanoseconds for each exchange. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, peer;
static MPI_Comm comm;
static char out[8], in[8];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * time.tv_sec + time.tv_nsec;
}

static void pingpong(void) {
    if (rank == 0) MPI_Send(out, 8, MPI_BYTE, peer, 1, comm);
    MPI_Recv(in, 8, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Send(out, 8, MPI_BYTE, peer, 1, comm);
}

static void sendrecv(void) {
    MPI_Sendrecv(out, 8, MPI_BYTE, peer, 1, in, 8, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE);
}

static void wait(void) {
    MPI_Request request;
    MPI_Irecv(in, 8, MPI_BYTE, peer, 1, comm, &request);
    MPI_Send(out, 8, MPI_BYTE, peer, 1, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void waitall(void) {
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Irecv(in, 8, MPI_BYTE, peer, 1, comm, &requests[0]);
    MPI_Isend(out, 8, MPI_BYTE, peer, 1, comm, &requests[1]);
    MPI_Waitall(2, requests, statuses);
}

static double each(void (*exchange)(void), int count) {
    for (int i = 0; i < count / 10; i++) exchange();
    double began = now();
    for (int i = 0; i < count; i++) exchange();
    return (now() - began) / count;
}

int main(int argc, char **argv) {
    int size, count = argc > 1 ? atoi(argv[1]) : 100000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    peer = size - 1 - rank, comm = MPI_COMM_WORLD;
    double sendrecv_ns = each(sendrecv, count), wait_ns = each(wait, count), waitall_ns = each(waitall, count);
    double half_ns = size > 1 ? each(pingpong, count) / 2 : 0;
    if (rank == 0 && size > 1) printf("send+recv %.1f\n", half_ns);
    if (rank == 0) printf("sendrecv %.1f\nirecv+send+wait %.1f\nirecv+isend+waitall %.1f\n", sendrecv_ns, wait_ns, waitall_ns);
    return MPI_Finalize();
}
