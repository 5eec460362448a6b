/* The network of the last rank fails for ever: every call that needs that rank returns an error, all others work.
 * The fault begins while the ranks exchange messages, at a time that only the modelled machine knows. */
#include "check.h"

enum { TAG = 1, LATER = 2, NOBODY = 3, ROOM = 1000 };

static int last;

static int class_of(int code) {
    int class = -1;
    MPI_Error_class(code, &class);
    return class;
}

/* The call fails because of the loss. */
#define LOST(call) SAME(class_of(call), MPI_ERR_OTHER)

/* Messages between the last rank and each other, until they lose each other. */
static void until_the_loss(void) {
    char out[ROOM], in[16][ROOM];
    fill(out, sizeof out, rank);
    for (int lost = 0; !lost;) {
        MPI_Request requests[32];
        int count = 0, of[32];
        for (int peer = 0; peer < size; peer++) {
            if (peer == rank || (peer != last && rank != last)) continue;
            of[count] = peer;
            OK(MPI_Irecv(in[peer], ROOM, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[count++]));
            of[count] = -1;
            OK(MPI_Isend(out, ROOM, MPI_BYTE, peer, TAG, MPI_COMM_WORLD, &requests[count++]));
        }
        /* A request that is pending when others have failed is waited for again. */
        for (int left = 1; left;) {
            MPI_Status statuses[32];
            left = 0;
            int code = MPI_Waitall(count, requests, statuses);
            if (code != MPI_SUCCESS) SAME(class_of(code), MPI_ERR_IN_STATUS);
            for (int i = 0; i < count; i++) {
                int is_pending = code != MPI_SUCCESS && statuses[i].MPI_ERROR == MPI_ERR_PENDING;
                int has_failed = code != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_SUCCESS && !is_pending;
                if (is_pending) CHECK(requests[i] != MPI_REQUEST_NULL, "request %d", i);
                else SAME(requests[i] == MPI_REQUEST_NULL, 1);
                if (has_failed) {
                    SAME(class_of(statuses[i].MPI_ERROR), MPI_ERR_OTHER);
                    of[i] = -1;
                    lost = 1;
                }
                left += is_pending;
            }
        }
        for (int i = 0; i < count; i++)
            if (of[i] >= 0) SAME(wrong(in[of[i]], ROOM, of[i]), -1);
    }
}

/* Calls that need a lost rank. */
static void with_the_lost(int peer) {
    char buffer[ROOM] = {0};
    MPI_Request requests[2];
    MPI_Status status;
    int flag, index, indices[2];
    LOST(MPI_Send(buffer, ROOM, MPI_BYTE, peer, NOBODY, MPI_COMM_WORLD));
    LOST(MPI_Ssend(buffer, ROOM, MPI_BYTE, peer, NOBODY, MPI_COMM_WORLD));
    LOST(MPI_Recv(buffer, ROOM, MPI_BYTE, peer, NOBODY, MPI_COMM_WORLD, &status));
    LOST(MPI_Probe(peer, NOBODY, MPI_COMM_WORLD, &status));
    LOST(MPI_Iprobe(peer, NOBODY, MPI_COMM_WORLD, &flag, &status));
    for (int kind = 0; kind < 4; kind++) {
        OK(MPI_Irecv(buffer, ROOM, MPI_BYTE, peer, NOBODY, MPI_COMM_WORLD, &requests[0]));
        requests[1] = MPI_REQUEST_NULL;
        switch (kind) {
        case 0: LOST(MPI_Wait(&requests[0], &status)); break;
        case 1: LOST(MPI_Test(&requests[0], &flag, &status)); break;
        case 2:
            LOST(MPI_Waitany(2, requests, &index, &status));
            SAME(index, 0);
            break;
        case 3: {
            MPI_Status statuses[2];
            SAME(class_of(MPI_Waitsome(2, requests, &index, indices, statuses)), MPI_ERR_IN_STATUS);
            SAME(index, 1);
            SAME(class_of(statuses[0].MPI_ERROR), MPI_ERR_OTHER);
        }
        }
        SAME(requests[0] == MPI_REQUEST_NULL, 1);
    }
}

/* Array calls return at once: a receive that nobody has sent for stays pending. */
static void pending(MPI_Comm others, int lost, int neighbour) {
    char in[2][ROOM], out[ROOM];
    MPI_Request requests[2];
    MPI_Status statuses[2];
    OK(MPI_Irecv(in[0], ROOM, MPI_BYTE, neighbour, LATER, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(in[1], ROOM, MPI_BYTE, lost, NOBODY, MPI_COMM_WORLD, &requests[1]));
    SAME(class_of(MPI_Waitall(2, requests, statuses)), MPI_ERR_IN_STATUS);
    SAME(statuses[0].MPI_ERROR, MPI_ERR_PENDING);
    SAME(class_of(statuses[1].MPI_ERROR), MPI_ERR_OTHER);
    CHECK(requests[0] != MPI_REQUEST_NULL, "it stays active");
    SAME(requests[1] == MPI_REQUEST_NULL, 1);
    OK(MPI_Barrier(others));
    fill(out, sizeof out, rank + 40);
    OK(MPI_Send(out, ROOM, MPI_BYTE, neighbour, LATER, MPI_COMM_WORLD));
    OK(MPI_Waitall(2, requests, statuses));
    SAME(wrong(in[0], ROOM, neighbour + 40), -1);
}

/* A receive from any source reports the loss once, and takes a message of another rank then. */
static void any_source(MPI_Comm all, MPI_Comm others, int neighbour) {
    char in[ROOM], out[ROOM];
    MPI_Request request;
    MPI_Status status;
    OK(MPI_Irecv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, LATER, all, &request));
    LOST(MPI_Wait(&request, &status));
    CHECK(request != MPI_REQUEST_NULL, "it stays active");
    OK(MPI_Barrier(others));
    fill(out, sizeof out, rank + 80);
    OK(MPI_Send(out, ROOM, MPI_BYTE, neighbour, LATER, all));
    OK(MPI_Wait(&request, &status));
    SAME(status.MPI_SOURCE, neighbour);
    SAME(wrong(in, ROOM, neighbour + 80), -1);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    last = size - 1;
    MPI_Comm all, others;
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &all));
    OK(MPI_Comm_split(MPI_COMM_WORLD, rank == last, 0, &others));
    until_the_loss();
    for (int peer = 0; peer < size; peer++)
        if (peer != rank && (peer == last || rank == last)) with_the_lost(peer);
    LOST(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Request request;
    int code = MPI_Ibarrier(MPI_COMM_WORLD, &request);
    if (code == MPI_SUCCESS) code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    SAME(class_of(code), MPI_ERR_OTHER);
    if (rank != last) {
        int neighbour = rank ^ 1, sum = 0;
        pending(others, last, neighbour);
        any_source(all, others, neighbour);
        OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, others));
        SAME(sum, last * (last - 1) / 2);
    }
    return finish();
}
