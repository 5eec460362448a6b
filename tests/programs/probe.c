/* Probe and Iprobe, the matched forms, and that a matched message is out of everyone's reach. */
#include "check.h"

enum { SHORT = 40, LONG = 300000 };
static unsigned char buffer[LONG];

static void sender(void) {
    for (int round = 0; round < 8; round++) {
        int bytes = round % 2 ? LONG : SHORT;
        fill(buffer, bytes, round);
        OK(MPI_Send(buffer, bytes, MPI_BYTE, 0, 10 + round, MPI_COMM_WORLD));
    }
    for (int i = 0; i < 2; i++) OK(MPI_Send(&i, 1, MPI_INT, 0, 50, MPI_COMM_WORLD));
}

static void receiver(int peer) {
    for (int round = 0; round < 8; round++) {
        MPI_Status status;
        MPI_Message message = MPI_MESSAGE_NULL;
        MPI_Request request;
        int bytes = round % 2 ? LONG : SHORT, tag = 10 + round, flag = 0;
        switch (round / 2) {
        case 0:
            OK(MPI_Probe(peer, tag, MPI_COMM_WORLD, &status));
            SAME(count_of(&status, MPI_BYTE), bytes);
            OK(MPI_Recv(buffer, LONG, MPI_BYTE, peer, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            break;
        case 1:
            while (!flag) OK(MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &flag, &status));
            SAME(count_of(&status, MPI_BYTE), bytes);
            OK(MPI_Recv(buffer, LONG, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
            break;
        case 2:
            OK(MPI_Mprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &message, &status));
            SAME(count_of(&status, MPI_BYTE), bytes);
            OK(MPI_Iprobe(peer, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
            CHECK(!flag, "a matched message is still probed");
            OK(MPI_Mrecv(buffer, LONG, MPI_BYTE, &message, &status));
            break;
        default:
            while (!flag) OK(MPI_Improbe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
            SAME(status.MPI_TAG, tag);
            OK(MPI_Imrecv(buffer, LONG, MPI_BYTE, &message, &request));
            CHECK(message == MPI_MESSAGE_NULL, "after Imrecv");
            OK(MPI_Wait(&request, &status));
        }
        SAME(status.MPI_SOURCE, peer);
        CHECK(message == MPI_MESSAGE_NULL, "the message handle is left after receiving");
        long place = wrong(buffer, bytes, round);
        CHECK(place < 0, "round %d differs at %ld", round, place);
    }
    /* Of two messages alike, the probed one is the first; the second is received by Recv. */
    MPI_Message message;
    int first = -1, second = -1;
    OK(MPI_Mprobe(peer, 50, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    OK(MPI_Recv(&second, 1, MPI_INT, peer, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    OK(MPI_Mrecv(&first, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
    CHECK(first == 0 && second == 1, "got %d and %d", first, second);
}

static void null_process(void) {
    MPI_Status status;
    MPI_Message message;
    int flag = 0;
    OK(MPI_Probe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status));
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Iprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &status));
    SAME(flag, 1);
    OK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status));
    CHECK(message == MPI_MESSAGE_NO_PROC, "Mprobe of PROC_NULL");
    OK(MPI_Mrecv(buffer, 4, MPI_BYTE, &message, &status));
    CHECK(message == MPI_MESSAGE_NULL, "after Mrecv of PROC_NULL");
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    SAME(count_of(&status, MPI_BYTE), 0);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    int flag = 1;
    OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    CHECK(rank != 0 || size > 1 || !flag, "a message from nowhere");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int peer = 1; peer < size; peer++) {
        if (rank == peer) sender();
        if (rank == 0) receiver(peer);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    null_process();
    return finish();
}
