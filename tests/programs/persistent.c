/* Persistent requests of all modes: started many times, inactive between. */
#include "check.h"

enum { ROUNDS = 50, MOST = 100000 };
static unsigned char out[4][MOST], in[4][MOST];

int main(int argc, char **argv) {
    start(&argc, &argv);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    const int bytes[4] = {0, 64, 5000, MOST};
    void *attached = allocate(MOST + MPI_BSEND_OVERHEAD), *back;
    int room;
    MPI_Request requests[8], *sends = requests + 4;
    MPI_Buffer_attach(attached, MOST + MPI_BSEND_OVERHEAD);
    for (int i = 0; i < 4; i++)
        OK(MPI_Recv_init(in[i], bytes[i], MPI_BYTE, left, i, MPI_COMM_WORLD, &requests[i]));
    OK(MPI_Send_init(out[0], bytes[0], MPI_BYTE, right, 0, MPI_COMM_WORLD, &sends[0]));
    OK(MPI_Ssend_init(out[1], bytes[1], MPI_BYTE, right, 1, MPI_COMM_WORLD, &sends[1]));
    OK(MPI_Bsend_init(out[2], bytes[2], MPI_BYTE, right, 2, MPI_COMM_WORLD, &sends[2]));
    OK(MPI_Rsend_init(out[3], bytes[3], MPI_BYTE, right, 3, MPI_COMM_WORLD, &sends[3]));
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status statuses[8];
        OK(MPI_Startall(4, requests));
        MPI_Barrier(MPI_COMM_WORLD); /* the ready send needs its receive posted */
        for (int i = 0; i < 4; i++) {
            fill(out[i], bytes[i], rank + round + i);
            OK(MPI_Start(&sends[i]));
        }
        if (round % 2) {
            OK(MPI_Waitall(8, requests, statuses));
        } else {
            for (int i = 0; i < 8; i++) OK(MPI_Wait(&requests[i], &statuses[i]));
        }
        for (int i = 0; i < 4; i++) {
            SAME(statuses[i].MPI_SOURCE, left);
            SAME(count_of(&statuses[i], MPI_BYTE), bytes[i]);
            long place = wrong(in[i], bytes[i], left + round + i);
            CHECK(place < 0, "round %d, request %d differs at %ld", round, i, place);
        }
        for (int i = 0; i < 8; i++)
            CHECK(requests[i] != MPI_REQUEST_NULL, "request %d was freed by completion", i);
    }
    /* An inactive request is complete and its status empty. */
    MPI_Status status;
    int flag = 0, index = 0;
    OK(MPI_Test(&requests[0], &flag, &status));
    SAME(flag, 1);
    SAME(status.MPI_SOURCE, MPI_ANY_SOURCE);
    OK(MPI_Waitany(8, requests, &index, &status));
    SAME(index, MPI_UNDEFINED);
    for (int i = 0; i < 8; i++) OK(MPI_Request_free(&requests[i]));
    MPI_Buffer_detach(&back, &room);
    free(attached);
    return finish();
}
