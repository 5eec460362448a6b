/* Messages of a pair of ranks on a communicator never overtake each other, whatever their sizes and
 * however they are received: eager ones and rendezvous interleave. */
#include "check.h"

enum { MESSAGES = 400, LARGEST = 150000 };

static int length(int i) { return (i * 7) % 11 == 0 ? LARGEST : (i * 13) % 5 == 0 ? 9000 : 4 + i % 200; }

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    unsigned char *out = calloc(MESSAGES, LARGEST), *in = calloc(MESSAGES, LARGEST);
    MPI_Request requests[MESSAGES];
    for (int way = 0; way < 4; way++) {
        if (rank == 1) {
            for (int i = 0; i < MESSAGES; i++) {
                memcpy(out + (size_t)i * LARGEST, &i, 4);
                OK(MPI_Isend(out + (size_t)i * LARGEST, length(i), MPI_BYTE, 0, i % 3,
                             i % 2 ? other : MPI_COMM_WORLD, &requests[i]));
            }
            OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
        } else if (rank == 0) {
            /* By wildcard in order; posted ahead; the other communicator first; by tag. */
            int last[2][3] = {{-1, -1, -1}, {-1, -1, -1}};
            for (int half = 0; half < 2; half++)
                for (int i = 0; i < MESSAGES; i++) {
                    MPI_Comm comm = i % 2 ? other : MPI_COMM_WORLD;
                    int mine = way == 2 ? (i % 2) != half : half == 0, number = -1;
                    unsigned char *place = in + (size_t)i * LARGEST;
                    MPI_Status status;
                    if (!mine) continue;
                    if (way == 1) {
                        OK(MPI_Irecv(place, LARGEST, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, comm,
                                     &requests[i]));
                        continue;
                    }
                    int tag = way == 3 ? i % 3 : MPI_ANY_TAG;
                    OK(MPI_Recv(place, LARGEST, MPI_BYTE, 1, tag, comm, &status));
                    memcpy(&number, place, 4);
                    SAME(number, i);
                    SAME(count_of(&status, MPI_BYTE), length(i));
                    CHECK(number > last[i % 2][status.MPI_TAG % 3], "%d overtook", number);
                    last[i % 2][status.MPI_TAG % 3] = number;
                }
            if (way == 1) {
                OK(MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE));
                for (int i = 0; i < MESSAGES; i++) {
                    int number;
                    memcpy(&number, in + (size_t)i * LARGEST, 4);
                    SAME(number, i);
                }
            }
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    OK(MPI_Comm_free(&other));
    return finish();
}
