/* A flood of unexpected messages: 200 000 small ones, then 64 MiB in medium ones.
 * The receiver waits for the last one first, so all others are unexpected. */
#include "check.h"

static void flood(int messages, int bytes) {
    unsigned char *buffer = allocate((size_t)bytes + 64);
    if (rank == 0) {
        int stop;
        MPI_Recv(&stop, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < messages; i++) {
            MPI_Status status;
            OK(MPI_Recv(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status));
            SAME(count_of(&status, MPI_BYTE), bytes);
            if (bytes >= 4) {
                int number;
                memcpy(&number, buffer, 4);
                SAME(number, i);
                SAME(buffer[bytes - 1], bytes > 4 ? i & 255 : buffer[3]);
            }
        }
    } else if (rank == 1) {
        MPI_Request *requests = allocate(sizeof *requests * (size_t)messages);
        unsigned char *all = allocate((size_t)messages * bytes);
        for (int i = 0; i < messages; i++) {
            unsigned char *mine = all + (size_t)i * bytes;
            memset(mine, i & 255, bytes);
            memcpy(mine, &i, 4);
            OK(MPI_Isend(mine, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]));
        }
        OK(MPI_Send(&messages, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
        OK(MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE));
        free(requests);
        free(all);
    }
    free(buffer);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    flood(200000, 8);
    flood(16384, 4096);
    flood(1024, 65536);
    return finish();
}
