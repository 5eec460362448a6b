/* Buffered sends: they return without a receive, use no more than the buffer, and detaching
 * waits for them. */
#include "check.h"

enum { MESSAGES = 100, BYTES = 1000 };

int main(int argc, char **argv) {
    start(&argc, &argv);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, room;
    unsigned char out[BYTES], in[BYTES];
    int bytes = MESSAGES * (BYTES + MPI_BSEND_OVERHEAD);
    char *memory = allocate(bytes), *back;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* of calls without a communicator */

    /* With no buffer, even a message to PROC_NULL is allowed, and any other is an error. */
    OK(MPI_Bsend(out, BYTES, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    FAILS(MPI_Bsend(out, BYTES, MPI_BYTE, right, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);

    for (int round = 0; round < 3; round++) {
        OK(MPI_Buffer_attach(memory, bytes));
        REFUSED(MPI_Buffer_attach(memory, bytes));
        for (int i = 0; i < MESSAGES; i++) {
            fill(out, BYTES, rank + i);
            if (i % 2) {
                MPI_Request request;
                OK(MPI_Ibsend(out, BYTES, MPI_BYTE, right, i, MPI_COMM_WORLD, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Bsend(out, BYTES, MPI_BYTE, right, i, MPI_COMM_WORLD));
            }
        }
        /* Backwards, so that all of them had to be kept. */
        for (int i = MESSAGES - 1; i >= 0; i--) {
            OK(MPI_Recv(in, BYTES, MPI_BYTE, left, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            long place = wrong(in, BYTES, left + i);
            CHECK(place < 0, "message %d differs at %ld", i, place);
        }
        OK(MPI_Buffer_detach(&back, &room));
        CHECK(back == memory && room == bytes, "detached %d bytes of %d", room, bytes);
    }

    /* Space comes back as messages leave: many more than fit at once. */
    OK(MPI_Buffer_attach(memory, 4 * (BYTES + MPI_BSEND_OVERHEAD)));
    for (int i = 0; i < 1000; i++) {
        OK(MPI_Bsend(out, BYTES, MPI_BYTE, right, 3, MPI_COMM_WORLD));
        OK(MPI_Recv(in, BYTES, MPI_BYTE, left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    OK(MPI_Buffer_detach(&back, &room));

    /* One message larger than the whole buffer. */
    OK(MPI_Buffer_attach(memory, BYTES / 2 + MPI_BSEND_OVERHEAD));
    FAILS(MPI_Bsend(memory, BYTES * MESSAGES, MPI_BYTE, right, 3, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    OK(MPI_Buffer_detach(&back, &room));

    /* Detaching delivers what is still in the buffer, though the memory is overwritten after it. */
    fill(out, BYTES, rank);
    OK(MPI_Buffer_attach(memory, bytes));
    MPI_Request posted;
    OK(MPI_Irecv(in, BYTES, MPI_BYTE, left, 4, MPI_COMM_WORLD, &posted));
    OK(MPI_Bsend(out, BYTES, MPI_BYTE, right, 4, MPI_COMM_WORLD));
    OK(MPI_Buffer_detach(&back, &room));
    memset(memory, 0, bytes);
    OK(MPI_Wait(&posted, MPI_STATUS_IGNORE));
    SAME(wrong(in, BYTES, left), -1);

    /* A communicator's own buffer, and one that the library provides. */
    MPI_Comm own;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    OK(MPI_Comm_attach_buffer(own, memory, bytes));
    OK(MPI_Bsend(out, BYTES, MPI_BYTE, right, 5, own));
    OK(MPI_Recv(in, BYTES, MPI_BYTE, left, 5, own, MPI_STATUS_IGNORE));
    OK(MPI_Comm_flush_buffer(own));
    OK(MPI_Comm_detach_buffer(own, &back, &room));
    SAME(room, bytes);
    OK(MPI_Comm_attach_buffer(own, MPI_BUFFER_AUTOMATIC, 0));
    for (int i = 0; i < MESSAGES; i++) OK(MPI_Bsend(out, BYTES, MPI_BYTE, right, i, own));
    for (int i = 0; i < MESSAGES; i++)
        OK(MPI_Recv(in, BYTES, MPI_BYTE, left, i, own, MPI_STATUS_IGNORE));
    OK(MPI_Comm_detach_buffer(own, &back, &room));
    CHECK((void *)back == MPI_BUFFER_AUTOMATIC, "detached %p", (void *)back);
    OK(MPI_Comm_free(&own));
    free(memory);
    return finish();
}
