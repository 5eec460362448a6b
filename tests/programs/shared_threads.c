/* Threads that exchange messages of 16 KiB to 128 KiB in both directions at once, each with its own counterpart on the other rank. Receivers of one
 * host may read such messages from the sender's memory. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, LEAST = 16500, MOST = 128 << 10, AT_ONCE = 3, ROUNDS = 60 };

struct place {
    MPI_Comm comm;
    int number;
    unsigned state;
};

/* The same numbers on a thread and its counterpart. */
static int drawn(struct place *at, int below) {
    at->state = at->state * 1103515245u + 12345u;
    return (int)((at->state >> 8) % (unsigned)below);
}

static void verified(const unsigned char *bytes, int count, unsigned seed) {
    long at = wrong(bytes, (size_t)count, seed);
    CHECK(at < 0, "byte %ld of %d of message %u", at, count, seed);
}

static void *exchange(void *argument) {
    struct place *me = argument;
    int other = rank ^ 1, tag = me->number;
    unsigned char *own[AT_ONCE], *to[AT_ONCE];
    MPI_Request requests[2 * AT_ONCE], persistent[2];
    for (int at = 0; at < AT_ONCE; at++) own[at] = allocate(MOST), to[at] = allocate(MOST);
    OK(MPI_Send_init(own[0], MOST, MPI_BYTE, other, tag, me->comm, &persistent[0]));
    OK(MPI_Recv_init(to[0], MOST, MPI_BYTE, other, tag, me->comm, &persistent[1]));
    for (int round = 0; round < ROUNDS; round++) {
        int kind = drawn(me, 5), counts[AT_ONCE];
        unsigned seed = (unsigned)(round * 100 + me->number * 10), mine = seed + (unsigned)rank, theirs = seed + (unsigned)other;
        for (int at = 0; at < AT_ONCE; at++) {
            counts[at] = LEAST + drawn(me, MOST - LEAST + 1);
            fill(own[at], MOST, mine + (unsigned)at * 2);
        }
        if (kind == 0) {
            for (int at = 0; at < AT_ONCE; at++) {
                OK(MPI_Irecv(to[at], MOST, MPI_BYTE, other, tag, me->comm, &requests[at]));
                OK(MPI_Isend(own[at], counts[at], MPI_BYTE, other, tag, me->comm, &requests[AT_ONCE + at]));
            }
            OK(MPI_Waitall(2 * AT_ONCE, requests, MPI_STATUSES_IGNORE));
            for (int at = 0; at < AT_ONCE; at++) verified(to[at], counts[at], theirs + (unsigned)at * 2);
        } else if (kind == 1) {
            OK(MPI_Sendrecv(own[0], counts[0], MPI_BYTE, other, tag, to[0], MOST, MPI_BYTE, other, tag, me->comm, MPI_STATUS_IGNORE));
            verified(to[0], counts[0], theirs);
        } else if (kind == 2) {
            OK(MPI_Sendrecv_replace(own[0], counts[0], MPI_BYTE, other, tag, other, tag, me->comm, MPI_STATUS_IGNORE));
            verified(own[0], counts[0], theirs);
        } else if (kind == 3) {
            OK(MPI_Startall(2, persistent));
            OK(MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE));
            verified(to[0], MOST, theirs);
        } else {
            /* Sends that nobody waits for, then receives by matched probes. */
            for (int at = 0; at < AT_ONCE; at++) {
                OK(MPI_Send(own[at], counts[at], MPI_BYTE, other, tag, me->comm));
                memset(own[at], 0xab, (size_t)counts[at]);
            }
            for (int at = 0; at < AT_ONCE; at++) {
                MPI_Message message;
                MPI_Status status;
                OK(MPI_Mprobe(other, tag, me->comm, &message, &status));
                SAME(count_of(&status, MPI_BYTE), counts[at]);
                OK(MPI_Mrecv(to[at], MOST, MPI_BYTE, &message, MPI_STATUS_IGNORE));
                verified(to[at], counts[at], theirs + (unsigned)at * 2);
            }
        }
    }
    OK(MPI_Request_free(&persistent[0]));
    OK(MPI_Request_free(&persistent[1]));
    for (int at = 0; at < AT_ONCE; at++) free(own[at]), free(to[at]);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    SAME(provided, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    struct place places[THREADS];
    for (int at = 0; at < THREADS; at++) {
        places[at] = (struct place){MPI_COMM_WORLD, at, 17u + (unsigned)at};
        /* Half of the threads share a communicator. */
        if (at % 2) OK(MPI_Comm_dup(MPI_COMM_WORLD, &places[at].comm));
    }
    if (rank < (size & ~1)) {
        for (int at = 0; at < THREADS; at++) pthread_create(&threads[at], NULL, exchange, &places[at]);
        for (int at = 0; at < THREADS; at++) pthread_join(threads[at], NULL);
    }
    for (int at = 1; at < THREADS; at += 2) OK(MPI_Comm_free(&places[at].comm));
    return finish();
}
