/* MPI_THREAD_MULTIPLE: threads of every rank send, receive and probe at once, on one communicator
 * by tag and on a communicator each. */
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 400, MOST = 70000 };
static MPI_Comm own[THREADS];

static int length(int round) { return round % 40 == 39 ? MOST : round % 9 == 8 ? 5000 : round % 60; }

/* Each thread talks to the thread of its number on both neighbours. */
static void ring(int number, MPI_Comm comm) {
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned char *out = allocate(MOST), *in = allocate(MOST);
    for (int round = 0; round < ROUNDS; round++) {
        int bytes = length(round);
        MPI_Request request;
        MPI_Status status;
        fill(out, bytes, rank + number + round);
        OK(MPI_Isend(out, bytes, MPI_BYTE, right, number, comm, &request));
        if (round % 4 == 0) {
            OK(MPI_Recv(in, MOST, MPI_BYTE, left, number, comm, &status));
        } else if (round % 4 == 1) {
            OK(MPI_Probe(left, number, comm, &status));
            SAME(count_of(&status, MPI_BYTE), bytes);
            OK(MPI_Recv(in, bytes, MPI_BYTE, left, number, comm, &status));
        } else if (round % 4 == 2) {
            MPI_Message message = MPI_MESSAGE_NULL;
            OK(MPI_Mprobe(left, number, comm, &message, &status));
            OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, &status));
        } else {
            MPI_Request receive;
            int flag = 0;
            OK(MPI_Irecv(in, MOST, MPI_BYTE, left, number, comm, &receive));
            while (!flag) OK(MPI_Test(&receive, &flag, &status));
        }
        SAME(count_of(&status, MPI_BYTE), bytes);
        long place = wrong(in, bytes, left + number + round);
        CHECK(place < 0, "thread %d round %d differs at %ld", number, round, place);
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    free(out);
    free(in);
}

/* All threads take from one stream of equal messages by Mprobe: each message reaches one of them. */
static long taken_sum;
static void share(int number) {
    enum { EACH = 300 };
    int right = (rank + 1) % size;
    for (int i = 0; i < EACH; i++) {
        int value = number * EACH + i, got = -1;
        MPI_Request request;
        MPI_Message message;
        OK(MPI_Isend(&value, 1, MPI_INT, right, 100, MPI_COMM_WORLD, &request));
        OK(MPI_Mprobe(MPI_ANY_SOURCE, 100, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
        OK(MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        __atomic_fetch_add(&taken_sum, got, __ATOMIC_RELAXED);
    }
}

static void *work(void *argument) {
    int number = (int)(intptr_t)argument, sum = -1, one = number;
    ring(number, MPI_COMM_WORLD);
    ring(number, own[number]);
    for (int i = 0; i < 20; i++) {
        OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own[number]));
        SAME(sum, number * size);
    }
    share(number);
    return NULL;
}

int main(int argc, char **argv) {
    int provided = -1, asked, main_thread = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    SAME(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Query_thread(&asked));
    SAME(asked, provided);
    OK(MPI_Is_thread_main(&main_thread));
    SAME(main_thread, 1);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &own[i]));
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    long all = (long)THREADS * 300;
    SAME(taken_sum, all * (all - 1) / 2);
    for (int i = 0; i < THREADS; i++) OK(MPI_Comm_free(&own[i]));
    return finish();
}
