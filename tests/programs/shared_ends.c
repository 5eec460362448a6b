/* Messages of 128 KiB that their receiver may read from the sender's memory, in ends that few programs have: matched before the sender has copied them
 * and received after, a sender that forks before the wait, a request that is freed before MPI_Finalize. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 128 << 10, ROUNDS = 20, AT_ONCE = 3 };

static unsigned char *own[AT_ONCE], *to[AT_ONCE];

static void received(const unsigned char *bytes, unsigned seed) {
    long at = wrong(bytes, LENGTH, seed);
    CHECK(at < 0, "byte %ld of message %u", at, seed);
}

static void token(int from) {
    if (rank == from) OK(MPI_Send(NULL, 0, MPI_BYTE, !from, 1, MPI_COMM_WORLD));
    else OK(MPI_Recv(NULL, 0, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The receiver has matched all messages; the sends complete, and the buffers change; then the messages are received. */
static void matched_before_the_copy(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request requests[AT_ONCE];
        MPI_Message messages[AT_ONCE];
        if (rank == 0) {
            for (int at = 0; at < AT_ONCE; at++) {
                fill(own[at], LENGTH, round + (unsigned)at);
                OK(MPI_Isend(own[at], LENGTH, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[at]));
            }
            token(1);
            OK(MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE));
            for (int at = 0; at < AT_ONCE; at++) memset(own[at], 0xbb, LENGTH);
            token(0);
        } else {
            for (int at = 0; at < AT_ONCE; at++) OK(MPI_Mprobe(0, 2, MPI_COMM_WORLD, &messages[at], MPI_STATUS_IGNORE));
            token(1);
            token(0);
            /* In any order. */
            for (int at = AT_ONCE - 1; at >= 0; at--) {
                OK(MPI_Mrecv(to[at], LENGTH, MPI_BYTE, &messages[at], MPI_STATUS_IGNORE));
                received(to[at], round + (unsigned)at);
            }
        }
    }
}

/* The child shares the pages of all buffers until the parent has waited, and both write to them. */
static void sender_forks_before_the_wait(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request requests[AT_ONCE];
        if (rank == 0) {
            int ends[2];
            char byte;
            for (int at = 0; at < AT_ONCE; at++) {
                fill(own[at], LENGTH, round + (unsigned)at);
                OK(MPI_Isend(own[at], LENGTH, MPI_BYTE, 1, 3, MPI_COMM_WORLD, &requests[at]));
            }
            if (pipe(ends)) abort();
            pid_t child = fork();
            if (child == 0) {
                close(ends[1]);
                for (int at = 0; at < AT_ONCE; at += 2) memset(own[at], 0x11, LENGTH);
                _exit(read(ends[0], &byte, 1) != 0);
            }
            close(ends[0]);
            /* Pages next to the messages. */
            for (int at = 0; at < AT_ONCE; at++) memset(to[at], 0x33, LENGTH);
            OK(MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE));
            for (int at = 0; at < AT_ONCE; at++) memset(own[at], 0x22, LENGTH);
            close(ends[1]);
            int status = -1;
            CHECK(waitpid(child, &status, 0) == child && status == 0, "status %d", status);
        } else {
            if (round % 3 == 1) usleep(300);
            for (int at = 0; at < AT_ONCE; at++) {
                OK(MPI_Recv(to[at], LENGTH, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                received(to[at], round + (unsigned)at);
            }
        }
    }
}

/* The receiver, too, has a child, which ends before or after the messages. */
static void receiver_forks(void) {
    for (unsigned round = 0; round < ROUNDS; round++) {
        MPI_Request requests[AT_ONCE];
        for (int at = 0; at < AT_ONCE; at++) {
            if (rank == 0) {
                fill(own[at], LENGTH, round + (unsigned)at);
                OK(MPI_Isend(own[at], LENGTH, MPI_BYTE, 1, 4, MPI_COMM_WORLD, &requests[at]));
            } else {
                OK(MPI_Irecv(to[at], LENGTH, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &requests[at]));
            }
        }
        pid_t child = rank == 1 ? fork() : 1;
        if (child == 0) {
            for (int at = 0; at < AT_ONCE; at++) memset(to[at], 0x44, LENGTH);
            _exit(0);
        }
        OK(MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE));
        if (rank == 1) {
            for (int at = 0; at < AT_ONCE; at++) received(to[at], round + (unsigned)at);
            waitpid(child, NULL, 0);
        }
    }
}

/* The requests are freed, and the sender finalizes before the receiver receives. */
static void freed_before_the_end(void) {
    MPI_Request request;
    if (rank == 0) {
        for (int at = 0; at < AT_ONCE; at++) {
            fill(own[at], LENGTH, 500 + (unsigned)at);
            OK(MPI_Isend(own[at], LENGTH, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request));
            OK(MPI_Request_free(&request));
        }
    } else {
        usleep(20000);
        for (int at = 0; at < AT_ONCE; at++) {
            OK(MPI_Recv(to[at], LENGTH, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(to[at], 500 + (unsigned)at);
        }
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int at = 0; at < AT_ONCE; at++) own[at] = allocate(LENGTH), to[at] = allocate(LENGTH);
    if (rank < 2) {
        matched_before_the_copy();
        sender_forks_before_the_wait();
        receiver_forks();
        freed_before_the_end();
    }
    return finish();
}
