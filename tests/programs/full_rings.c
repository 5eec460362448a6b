/* Full rings: every rank starts thousands of sends to every other before anybody receives. Nothing
 * may wait for room that only a receive would make. */
#include "check.h"

enum { MESSAGES = 6000, LARGEST = 20000 };

/* Mostly small, some of several cells, a few that need a rendezvous. */
static int length(int i) { return i % 500 == 499 ? LARGEST : i % 50 == 49 ? 3000 : i % 97; }

int main(int argc, char **argv) {
    start(&argc, &argv);
    int others = size - 1, count = 0;
    MPI_Request *requests = allocate(sizeof *requests * MESSAGES * others);
    unsigned char *out = allocate(LARGEST + 256), *in = allocate(LARGEST);
    for (int i = 0; i < LARGEST + 256; i++) out[i] = (unsigned char)(i + rank * 3);
    for (int i = 0; i < MESSAGES; i++)
        for (int k = 1; k < size; k++)
            OK(MPI_Isend(out + i % 256, length(i), MPI_BYTE, (rank + k) % size, i % 7,
                         MPI_COMM_WORLD, &requests[count++]));
    for (int i = 0; i < MESSAGES; i++) {
        for (int k = 1; k < size; k++) {
            int source = (rank + size - k) % size;
            MPI_Status status;
            OK(MPI_Recv(in, LARGEST, MPI_BYTE, source, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
            SAME(status.MPI_TAG, i % 7);
            SAME(count_of(&status, MPI_BYTE), length(i));
            for (int b = 0; b < length(i); b++)
                if (in[b] != (unsigned char)(b + i % 256 + source * 3)) {
                    WRONG("message %d of rank %d differs at %d", i, source, b);
                    break;
                }
        }
    }
    OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    return finish();
}
