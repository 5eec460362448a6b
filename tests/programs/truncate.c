/* A message longer than its buffer: MPI_ERR_TRUNCATE, nothing written past the end, and the next
 * message comes through. */
#include "check.h"

enum { MOST = 1 << 20 };
static unsigned char buffer[MOST + 64];

static void sender(int bytes) {
    fill(buffer, bytes, 1);
    for (int i = 0; i < 5; i++) OK(MPI_Send(buffer, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD));
    OK(MPI_Send(buffer, bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD));
}

static void check_end(int room) {
    for (int i = room; i < room + 64; i++)
        if (buffer[i] != 0xee) {
            WRONG("byte %d beyond the buffer's %d was written", i - room, room);
            return;
        }
}

static void receiver(int bytes, int room) {
    MPI_Status status, statuses[2];
    MPI_Request requests[2];
    MPI_Message message;
    int none, index, code, class, flag = 0;
    memset(buffer, 0xee, sizeof buffer);

    FAILS(MPI_Recv(buffer, room, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &status), MPI_ERR_TRUNCATE);
    check_end(room);
    SAME(status.MPI_SOURCE, 1);
    SAME(status.MPI_TAG, 0);

    OK(MPI_Irecv(buffer, room, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]));
    FAILS(MPI_Wait(&requests[0], &status), MPI_ERR_TRUNCATE);
    CHECK(requests[0] == MPI_REQUEST_NULL, "the failed request is not null");
    check_end(room);

    OK(MPI_Irecv(buffer, room, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&none, 0, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, &requests[1]));
    FAILS(code = MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    MPI_Error_class(statuses[0].MPI_ERROR, &class);
    SAME(class, MPI_ERR_TRUNCATE);
    CHECK(statuses[1].MPI_ERROR == MPI_SUCCESS || statuses[1].MPI_ERROR == MPI_ERR_PENDING,
          "the other status says %d", statuses[1].MPI_ERROR);
    check_end(room);

    OK(MPI_Irecv(buffer, room, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[0]));
    while ((code = MPI_Testany(1, requests, &index, &flag, &status)) == MPI_SUCCESS && !flag) {}
    MPI_Error_class(code, &class);
    SAME(class, MPI_ERR_TRUNCATE);
    SAME(index, 0);
    check_end(room);

    OK(MPI_Mprobe(1, 4, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    FAILS(MPI_Mrecv(buffer, room, MPI_BYTE, &message, &status), MPI_ERR_TRUNCATE);
    check_end(room);

    OK(MPI_Recv(buffer, bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD, &status));
    SAME(count_of(&status, MPI_BYTE), bytes);
    SAME(wrong(buffer, bytes, 1), -1);
}

/* To oneself, received after and before the send. */
static void self(int bytes, int room) {
    MPI_Request request;
    memset(buffer, 0xee, sizeof buffer);
    unsigned char *out = allocate(bytes);
    OK(MPI_Isend(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request));
    FAILS(MPI_Recv(buffer, room, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE),
          MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    check_end(room);
    OK(MPI_Irecv(buffer, room, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_SELF));
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    check_end(room);
    free(out);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int bytes = 1; bytes <= MOST; bytes *= 4) {
        const int rooms[] = {0, bytes / 2, bytes - 1};
        for (int i = 0; i < 3; i++) {
            if (rank == 1) sender(bytes);
            if (rank == 0 && size > 1) receiver(bytes, rooms[i]);
            self(bytes, rooms[i]);
        }
    }
    return finish();
}
