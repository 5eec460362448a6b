/* Nonblocking sends and receives, completed by every form of Wait and Test. */
#include "check.h"

enum { MANY = 24, BYTES = 3000 };
static unsigned char out[MANY][BYTES], in[MANY][BYTES];
static MPI_Request sends[MANY], receives[MANY];
static int right, left;

/* Messages go round the ring; lengths mix eager ones with larger ones. */
static int length(int i) { return i % 5 == 4 ? BYTES : i * 17; }

static void post(void) {
    for (int i = 0; i < MANY; i++) {
        memset(in[i], 0xee, BYTES);
        OK(MPI_Irecv(in[i], BYTES, MPI_BYTE, left, i, MPI_COMM_WORLD, &receives[i]));
    }
    for (int i = 0; i < MANY; i++) {
        fill(out[i], length(i), rank * MANY + i);
        OK((i % 2 ? MPI_Isend : MPI_Issend)(out[i], length(i), MPI_BYTE, right, i, MPI_COMM_WORLD,
                                            &sends[i]));
    }
}

static void check(int i, const MPI_Status *status) {
    SAME(status->MPI_SOURCE, left);
    SAME(status->MPI_TAG, i);
    SAME(count_of(status, MPI_BYTE), length(i));
    long place = wrong(in[i], length(i), left * MANY + i);
    CHECK(place < 0, "message %d differs at %ld", i, place);
    CHECK(receives[i] == MPI_REQUEST_NULL, "request %d is not null after completion", i);
}

static void finish_sends(void) {
    OK(MPI_Waitall(MANY, sends, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MANY; i++) CHECK(sends[i] == MPI_REQUEST_NULL, "send %d", i);
}

static void by_wait(void) {
    for (int i = MANY - 1; i >= 0; i--) {
        MPI_Status status;
        OK(MPI_Wait(&receives[i], &status));
        check(i, &status);
    }
}

static void by_waitall(void) {
    MPI_Status statuses[MANY];
    OK(MPI_Waitall(MANY, receives, statuses));
    for (int i = 0; i < MANY; i++) check(i, &statuses[i]);
}

static void by_waitany(void) {
    for (int done = 0; done < MANY; done++) {
        MPI_Status status;
        int i = -1;
        OK(MPI_Waitany(MANY, receives, &i, &status));
        if (i < 0 || i >= MANY) { WRONG("index %d", i); return; }
        check(i, &status);
    }
    int i = 0;
    OK(MPI_Waitany(MANY, receives, &i, MPI_STATUS_IGNORE));
    SAME(i, MPI_UNDEFINED);
}

static void by_waitsome(void) {
    for (int done = 0; done < MANY;) {
        MPI_Status statuses[MANY];
        int indices[MANY], some = 0;
        OK(MPI_Waitsome(MANY, receives, &some, indices, statuses));
        CHECK(some >= 1 && some <= MANY - done, "%d at once", some);
        for (int k = 0; k < some; k++) check(indices[k], &statuses[k]);
        done += some;
    }
    int some = 0, indices[MANY];
    OK(MPI_Waitsome(MANY, receives, &some, indices, MPI_STATUSES_IGNORE));
    SAME(some, MPI_UNDEFINED);
}

static void by_test(void) {
    for (int i = 0; i < MANY; i++) {
        MPI_Status status;
        int flag = 0;
        while (!flag) OK(MPI_Test(&receives[i], &flag, &status));
        check(i, &status);
    }
}

static void by_testall(void) {
    MPI_Status statuses[MANY];
    int flag = 0;
    while (!flag) {
        OK(MPI_Testall(MANY, receives, &flag, statuses));
        for (int i = 0; !flag && i < MANY; i++)
            CHECK(receives[i] != MPI_REQUEST_NULL, "Testall took %d before all were done", i);
    }
    for (int i = 0; i < MANY; i++) check(i, &statuses[i]);
}

static void by_testany(void) {
    for (int done = 0; done < MANY;) {
        MPI_Status status;
        int i = -1, flag = 0;
        OK(MPI_Testany(MANY, receives, &i, &flag, &status));
        if (!flag) { SAME(i, MPI_UNDEFINED); continue; }
        if (i < 0 || i >= MANY) { WRONG("index %d", i); return; }
        check(i, &status);
        done++;
    }
    int i = 0, flag = 0;
    OK(MPI_Testany(MANY, receives, &i, &flag, MPI_STATUS_IGNORE));
    CHECK(flag && i == MPI_UNDEFINED, "flag %d index %d", flag, i);
}

static void by_testsome(void) {
    for (int done = 0; done < MANY;) {
        MPI_Status statuses[MANY];
        int indices[MANY], some = 0;
        OK(MPI_Testsome(MANY, receives, &some, indices, statuses));
        for (int k = 0; k < some; k++) check(indices[k], &statuses[k]);
        done += some;
    }
}

/* Request_get_status reports without freeing; a null request is always complete and empty. */
static void by_get_status(void) {
    for (int i = 0; i < MANY; i++) {
        MPI_Status status;
        int flag = 0;
        while (!flag) OK(MPI_Request_get_status(receives[i], &flag, &status));
        SAME(count_of(&status, MPI_BYTE), length(i));
        CHECK(receives[i] != MPI_REQUEST_NULL, "freed by Request_get_status");
        OK(MPI_Wait(&receives[i], &status));
        check(i, &status);
        OK(MPI_Wait(&receives[i], &status));
        SAME(status.MPI_SOURCE, MPI_ANY_SOURCE);
        SAME(status.MPI_TAG, MPI_ANY_TAG);
        SAME(count_of(&status, MPI_BYTE), 0);
        flag = 0;
        OK(MPI_Test(&receives[i], &flag, MPI_STATUS_IGNORE));
        SAME(flag, 1);
    }
}

/* A freed send still delivers; PROC_NULL completes at once; an empty list is complete. */
static void odd_ones(void) {
    MPI_Request request;
    MPI_Status status;
    int value = rank, got = -1, flag = 0;
    OK(MPI_Isend(&value, 1, MPI_INT, right, 77, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL, "after Request_free");
    OK(MPI_Recv(&got, 1, MPI_INT, left, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    SAME(got, left);
    MPI_Barrier(MPI_COMM_WORLD);
    OK(MPI_Irecv(&got, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &request));
    OK(MPI_Test(&request, &flag, &status));
    SAME(flag, 1);
    SAME(status.MPI_SOURCE, MPI_PROC_NULL);
    OK(MPI_Isend(&got, 1, MPI_INT, MPI_PROC_NULL, 5, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    flag = 0;
    OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    SAME(flag, 1);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    void (*const forms[])(void) = {by_wait, by_waitall, by_waitany, by_waitsome, by_test,
                                   by_testall, by_testany, by_testsome, by_get_status};
    for (unsigned form = 0; form < sizeof forms / sizeof *forms; form++) {
        for (int again = 0; again < 20; again++) {
            post();
            forms[form]();
            finish_sends();
        }
    }
    odd_ones();
    return finish();
}
