/* Cancel: a receive that nothing matched is cancelled for sure; one that was matched completes. */
#include "check.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    int right = (rank + 1) % size, left = (rank + size - 1) % size, flag, value, out = rank;
    MPI_Request request, send;
    MPI_Status status;

    /* Never matched. */
    for (int round = 0; round < 100; round++) {
        flag = 0;
        OK(MPI_Irecv(&value, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &request));
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &flag));
        SAME(flag, 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);

    /* The cancelled receives have left nothing behind that could take this message. */
    OK(MPI_Isend(&out, 1, MPI_INT, right, 5, MPI_COMM_WORLD, &send));
    OK(MPI_Recv(&value, 1, MPI_INT, left, 5, MPI_COMM_WORLD, &status));
    SAME(value, left);
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 0);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));

    /* Already matched: the message is there, so the receive completes. */
    OK(MPI_Isend(&out, 1, MPI_INT, right, 6, MPI_COMM_WORLD, &send));
    OK(MPI_Probe(left, 6, MPI_COMM_WORLD, &status));
    value = -1;
    OK(MPI_Irecv(&value, 1, MPI_INT, left, 6, MPI_COMM_WORLD, &request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 0);
    SAME(value, left);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));

    /* Either the send is cancelled, or it is received: never both, never neither. */
    MPI_Request all_done = MPI_REQUEST_NULL;
    int sent = 0, heard = 0, cancelled = 0, left_cancelled = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Issend(&out, 1, MPI_INT, right, 7, MPI_COMM_WORLD, &send));
    OK(MPI_Cancel(&send));
    for (int everyone = 0; !everyone;) {
        OK(MPI_Iprobe(left, 7, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (flag) {
            OK(MPI_Recv(&value, 1, MPI_INT, left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            heard++;
        }
        if (!sent) {
            OK(MPI_Test(&send, &sent, &status));
            if (!sent) continue;
            OK(MPI_Test_cancelled(&status, &cancelled));
            OK(MPI_Ibarrier(MPI_COMM_WORLD, &all_done));
        }
        OK(MPI_Test(&all_done, &everyone, MPI_STATUS_IGNORE));
    }
    OK(MPI_Sendrecv(&cancelled, 1, MPI_INT, right, 8, &left_cancelled, 1, MPI_INT, left, 8,
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(heard, !left_cancelled);

    /* A persistent receive may be cancelled and started again. */
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Recv_init(&value, 1, MPI_INT, left, 9, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Cancel(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Start(&request));
    OK(MPI_Send(&out, 1, MPI_INT, right, 9, MPI_COMM_WORLD));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 0);
    SAME(value, left);
    OK(MPI_Request_free(&request));
    return finish();
}
