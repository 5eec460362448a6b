/* Blocking sends of every mode, 0 bytes to 4 MiB, received by name and by wildcard. */
#include "check.h"

enum { MOST = 4 << 20 };
static unsigned char *buffer;

typedef int (*send_function)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
static const send_function modes[] = {MPI_Send, MPI_Ssend, MPI_Bsend, MPI_Rsend};
enum { SEND, SSEND, BSEND, RSEND, MODES };

static void check_status(const MPI_Status *status, int source, int tag, int bytes) {
    SAME(status->MPI_SOURCE, source);
    SAME(status->MPI_TAG, tag);
    SAME(count_of(status, MPI_BYTE), bytes);
    if (bytes % 4) SAME(count_of(status, MPI_INT), MPI_UNDEFINED);
}

/* Every other rank sends to rank 0, who hears them by name, by any source, by any tag. A ready send
 * leaves only after a zero-byte message that says that its receive is posted. */
static void one(int mode, int bytes, int by) {
    int tag = 7 + mode;
    for (int peer = 1; peer < size; peer++) {
        if (rank == peer) {
            fill(buffer, bytes, peer + mode);
            if (mode == RSEND) MPI_Recv(NULL, 0, MPI_BYTE, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            OK(modes[mode](buffer, bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD));
        } else if (rank == 0) {
            MPI_Status status;
            int source = by & 1 ? MPI_ANY_SOURCE : peer, seen = by & 2 ? MPI_ANY_TAG : tag;
            memset(buffer, 0xee, bytes + 1);
            if (mode == RSEND) {
                MPI_Request request;
                OK(MPI_Irecv(buffer, bytes, MPI_BYTE, source, seen, MPI_COMM_WORLD, &request));
                MPI_Send(NULL, 0, MPI_BYTE, peer, 99, MPI_COMM_WORLD);
                OK(MPI_Wait(&request, &status));
            } else {
                OK(MPI_Recv(buffer, bytes + 1, MPI_BYTE, source, seen, MPI_COMM_WORLD, &status));
            }
            check_status(&status, by & 1 ? status.MPI_SOURCE : peer, tag, bytes);
            long place = wrong(buffer, bytes, status.MPI_SOURCE + mode);
            CHECK(place < 0, "mode %d, %d bytes: byte %ld differs", mode, bytes, place);
            SAME(buffer[bytes], 0xee);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void null_process(void) {
    MPI_Status status;
    OK(MPI_Send(buffer, 5, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    OK(MPI_Recv(buffer, 5, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    SAME(status.MPI_TAG, MPI_ANY_TAG);
    SAME(count_of(&status, MPI_BYTE), 0);
}

/* Without a peer no elements need no datatype: the end of a line of ranks may name none. */
static void null_process_and_datatype(void) {
    MPI_Datatype none = MPI_DATATYPE_NULL;
    MPI_Comm w = MPI_COMM_WORLD;
    MPI_Status status;
    MPI_Request requests[12];
    MPI_Message message;
    int number = 0;
    status.MPI_SOURCE = 0;
    OK(MPI_Recv(NULL, 0, none, MPI_PROC_NULL, 3, w, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    SAME(count_of(&status, MPI_BYTE), 0);
    OK(MPI_Recv_c(NULL, 0, none, MPI_PROC_NULL, MPI_ANY_TAG, w, MPI_STATUS_IGNORE));
    OK(MPI_Send(NULL, 0, none, MPI_PROC_NULL, 3, w));
    OK(MPI_Ssend(NULL, 0, none, MPI_PROC_NULL, 3, w));
    OK(MPI_Irecv(NULL, 0, none, MPI_PROC_NULL, 3, w, &requests[number++]));
    OK(MPI_Isend(NULL, 0, none, MPI_PROC_NULL, 3, w, &requests[number++]));
    OK(MPI_Isendrecv(NULL, 0, none, MPI_PROC_NULL, 3, NULL, 0, none, MPI_PROC_NULL, 3, w, &requests[number++]));
    OK(MPI_Waitall(number, requests, MPI_STATUSES_IGNORE));
    number = 0;
    OK(MPI_Recv_init(NULL, 0, none, MPI_PROC_NULL, 3, w, &requests[number++]));
    OK(MPI_Send_init(NULL, 0, none, MPI_PROC_NULL, 3, w, &requests[number++]));
    OK(MPI_Startall(number, requests));
    OK(MPI_Waitall(number, requests, MPI_STATUSES_IGNORE));
    while (number) OK(MPI_Request_free(&requests[--number]));
    OK(MPI_Sendrecv_replace(NULL, 0, none, MPI_PROC_NULL, 3, MPI_PROC_NULL, 3, w, &status));
    status.MPI_SOURCE = 0;
    OK(MPI_Mprobe(MPI_PROC_NULL, 3, w, &message, MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(NULL, 0, none, &message, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Sendrecv(&rank, 1, MPI_INT, rank, 5, NULL, 0, none, MPI_PROC_NULL, 3, w, &status));
    OK(MPI_Recv(&number, 1, MPI_INT, rank, 5, w, MPI_STATUS_IGNORE));
    SAME(number, rank);
}

static void large_count(void) {
    MPI_Status status;
    MPI_Count count = -1;
    if (rank == 1) {
        fill(buffer, 70000, 3);
        OK(MPI_Send_c(buffer, (MPI_Count)70000, MPI_BYTE, 0, 1, MPI_COMM_WORLD));
    } else if (rank == 0) {
        OK(MPI_Recv_c(buffer, (MPI_Count)MOST, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &status));
        OK(MPI_Get_count_c(&status, MPI_BYTE, &count));
        SAME(count, 70000);
        SAME(wrong(buffer, 70000, 3), -1);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    buffer = allocate(MOST + 1);
    int room = MOST + MPI_BSEND_OVERHEAD, given;
    void *attached = allocate(room), *back;
    MPI_Buffer_attach(attached, room);
    for (int mode = 0; mode < MODES; mode++) {
        int by = 0;
        for (int bytes = 0; bytes <= MOST; bytes = bytes ? bytes * 2 : 1) {
            one(mode, bytes, by++ & 3);
            if (bytes > 2 && bytes < MOST) one(mode, bytes - 1, by & 3);
            if (bytes < MOST) one(mode, bytes + 3, by & 3);
        }
        for (int bytes = 0; bytes < 300; bytes++) one(mode, bytes, bytes & 3);
    }
    null_process();
    null_process_and_datatype();
    large_count();
    MPI_Buffer_detach(&back, &given);
    CHECK(back == attached && given == room, "detached %p, %d bytes", back, given);
    free(attached);
    free(buffer);
    return finish();
}
