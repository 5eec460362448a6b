/* Messages of a rank to itself, on MPI_COMM_SELF and on MPI_COMM_WORLD. */
#include "check.h"

enum { MOST = 3 << 20 };
static unsigned char *out, *in;

static void both(MPI_Comm comm, int me, int bytes) {
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    fill(out, bytes, bytes);
    /* The send first. */
    OK(MPI_Isend(out, bytes, MPI_BYTE, me, 1, comm, &request));
    OK(MPI_Probe(me, 1, comm, &status));
    SAME(count_of(&status, MPI_BYTE), bytes);
    OK(MPI_Recv(in, MOST, MPI_BYTE, me, 1, comm, &status));
    SAME(wrong(in, bytes, bytes), -1);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* The receive first. */
    memset(in, 0xee, bytes);
    OK(MPI_Irecv(in, MOST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request));
    OK(MPI_Ssend(out, bytes, MPI_BYTE, me, 2, comm));
    OK(MPI_Wait(&request, &status));
    SAME(status.MPI_SOURCE, me);
    SAME(status.MPI_TAG, 2);
    SAME(wrong(in, bytes, bytes), -1);
    /* A synchronous send is not done before its receive. */
    OK(MPI_Issend(out, bytes, MPI_BYTE, me, 3, comm, &request));
    for (int i = 0; i < 100; i++) OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    CHECK(!flag, "Issend of %d bytes to oneself is done though nobody receives", bytes);
    OK(MPI_Recv(in, MOST, MPI_BYTE, me, 3, comm, MPI_STATUS_IGNORE));
    if (!flag) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

/* Many at once, received by tag backwards and by wildcard in order. */
static void many(MPI_Comm comm, int me) {
    enum { COUNT = 500 };
    MPI_Request requests[COUNT];
    int values[COUNT], got = -1;
    for (int order = 0; order < 2; order++) {
        for (int i = 0; i < COUNT; i++) {
            values[i] = i;
            OK(MPI_Isend(&values[i], 1, MPI_INT, me, i, comm, &requests[i]));
        }
        for (int i = 0; i < COUNT; i++) {
            MPI_Status status;
            int tag = order ? MPI_ANY_TAG : COUNT - 1 - i;
            OK(MPI_Recv(&got, 1, MPI_INT, me, tag, comm, &status));
            SAME(got, order ? i : tag);
        }
        OK(MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE));
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    out = allocate(MOST);
    in = allocate(MOST);
    for (int bytes = 0; bytes <= MOST; bytes = bytes ? bytes * 4 : 1) {
        both(MPI_COMM_SELF, 0, bytes);
        both(MPI_COMM_WORLD, rank, bytes);
    }
    many(MPI_COMM_SELF, 0);
    many(MPI_COMM_WORLD, rank);
    return finish();
}
