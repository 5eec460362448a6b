/* Generalised requests: the calls of the user's functions in every form of completion, their errors,
 * functions that call MPI, completion by other threads. With the argument `deadlock` rank 0 waits for
 * a request that nothing completes. */
#include "check.h"
#include <pthread.h>
#include <sched.h>

/* One operation of the user's. Its functions add a letter each to `calls`. */
struct operation {
    MPI_Request request;
    int number, query_code, free_code, cancel_code;
    char calls[32];
    int cancelled;
    /* Called by the query function and by the free function. */
    void (*in_query)(struct operation *), (*in_free)(struct operation *);
    struct operation *other;
};

static void note(struct operation *of, char letter) {
    size_t length = strlen(of->calls);
    if (length + 1 < sizeof of->calls) of->calls[length] = letter;
}

static int query(void *state, MPI_Status *status) {
    struct operation *of = state;
    note(of, 'q');
    CHECK(status != MPI_STATUS_IGNORE, "the query function got no status");
    status->MPI_SOURCE = 100 + of->number;
    status->MPI_TAG = 200 + of->number;
    OK(MPI_Status_set_elements(status, MPI_INT, of->number));
    OK(MPI_Status_set_cancelled(status, of->cancelled));
    if (of->in_query) of->in_query(of);
    return of->query_code;
}

static int release(void *state) {
    struct operation *of = state;
    note(of, 'f');
    if (of->in_free) of->in_free(of);
    return of->free_code;
}

static int cancel(void *state, int complete) {
    struct operation *of = state;
    note(of, complete ? 'C' : 'c');
    if (!complete) of->cancelled = 1;
    return of->cancel_code;
}

static void begin(struct operation *of, int number) {
    memset(of, 0, sizeof *of);
    of->number = number;
    OK(MPI_Grequest_start(query, release, cancel, of, &of->request));
    CHECK(of->request != MPI_REQUEST_NULL, "a started request is null");
}

static void complete(struct operation *of) { OK(MPI_Grequest_complete(of->request)); }

static void calls(int line, const struct operation *of, const char *wanted) {
    if (strcmp(of->calls, wanted))
        failed(__FILE__, line, "operation %d: calls %s, not %s", of->number, of->calls, wanted);
}
#define CALLS(of, wanted) calls(__LINE__, of, wanted)

static void told(int line, const MPI_Status *status, int number) {
    int cancelled = -1;
    if (status->MPI_SOURCE != 100 + number || status->MPI_TAG != 200 + number)
        failed(__FILE__, line, "source %d, tag %d, not those of operation %d", status->MPI_SOURCE,
               status->MPI_TAG, number);
    if (count_of(status, MPI_INT) != number)
        failed(__FILE__, line, "count %d, not %d", count_of(status, MPI_INT), number);
    OK(MPI_Test_cancelled(status, &cancelled));
    if (cancelled) failed(__FILE__, line, "operation %d was cancelled", number);
}
#define TOLD(status, number) told(__LINE__, status, number)

static void one(void) {
    struct operation op;
    MPI_Status status;
    int flag = -1;

    begin(&op, 1);
    OK(MPI_Test(&op.request, &flag, &status));
    SAME(flag, 0);
    OK(MPI_Request_get_status(op.request, &flag, &status));
    SAME(flag, 0);
    CALLS(&op, "");
    complete(&op);
    CALLS(&op, "");
    status.MPI_ERROR = 4711;
    OK(MPI_Request_get_status(op.request, &flag, &status));
    SAME(flag, 1);
    TOLD(&status, 1);
    OK(MPI_Request_get_status(op.request, &flag, MPI_STATUS_IGNORE));
    CALLS(&op, "qq");
    OK(MPI_Wait(&op.request, &status));
    TOLD(&status, 1);
    SAME(status.MPI_ERROR, 4711);
    CALLS(&op, "qqqf");
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after MPI_Wait");

    begin(&op, 2);
    complete(&op);
    OK(MPI_Test(&op.request, &flag, MPI_STATUS_IGNORE));
    SAME(flag, 1);
    CALLS(&op, "qf");
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after MPI_Test");

    /* Functions that are NULL do nothing. */
    OK(MPI_Grequest_start(NULL, NULL, NULL, NULL, &op.request));
    OK(MPI_Cancel(&op.request));
    complete(&op);
    OK(MPI_Wait(&op.request, &status));
    SAME(count_of(&status, MPI_INT), 0);
    SAME(status.MPI_SOURCE, MPI_ANY_SOURCE);
}

static void freed_and_cancelled(void) {
    struct operation op;
    MPI_Request kept;
    MPI_Status status;
    int flag = -1;

    begin(&op, 3);
    complete(&op);
    OK(MPI_Request_free(&op.request));
    CALLS(&op, "f");
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after MPI_Request_free");

    begin(&op, 4);
    kept = op.request;
    OK(MPI_Request_free(&op.request));
    CALLS(&op, "");
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after MPI_Request_free");
    OK(MPI_Grequest_complete(kept));
    CALLS(&op, "f");
    FAILS(MPI_Grequest_complete(kept), MPI_ERR_REQUEST);
    CALLS(&op, "f");

    begin(&op, 5);
    OK(MPI_Cancel(&op.request));
    CALLS(&op, "c");
    complete(&op);
    OK(MPI_Cancel(&op.request));
    OK(MPI_Wait(&op.request, &status));
    CALLS(&op, "cCqf");
    OK(MPI_Test_cancelled(&status, &flag));
    SAME(flag, 1);
}

/* Three operations, of which the second and third are complete, and a receive that is not. */
static struct operation three[3];
static MPI_Request requests[5];
static int word, indices[5], count, flag_of;
static MPI_Status statuses[5];

static void begin_three(int completed) {
    for (int i = 0; i < 3; i++) begin(&three[i], 10 + i);
    OK(MPI_Irecv(&word, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &requests[3]));
    requests[4] = MPI_REQUEST_NULL;
    for (int i = 3 - completed; i < 3; i++) complete(&three[i]);
    for (int i = 0; i < 3; i++) requests[i] = three[i].request;
    for (int i = 0; i < 5; i++) statuses[i].MPI_ERROR = 4711;
    flag_of = count = -1;
}

/* Sends the message of the receive, and lets it arrive. */
static void message(int value) {
    int done = 0;
    OK(MPI_Send(&value, 1, MPI_INT, 0, 9, MPI_COMM_SELF));
    while (!done) OK(MPI_Request_get_status(requests[3], &done, MPI_STATUS_IGNORE));
}

static void end_three(void) {
    for (int i = 0; i < 3; i++)
        if (requests[i] != MPI_REQUEST_NULL && strchr(three[i].calls, 'f') == NULL) {
            int done = 0;
            OK(MPI_Request_get_status(requests[i], &done, MPI_STATUS_IGNORE));
            if (!done) OK(MPI_Grequest_complete(requests[i]));
        }
    message(5);
    OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 3; i++) {
        const char *first = strchr(three[i].calls, 'f');
        CHECK(first && !strchr(first + 1, 'f'), "operation %d: calls %s", i, three[i].calls);
        CHECK(requests[i] == MPI_REQUEST_NULL, "request %d is not null", i);
    }
}

static void many(void) {
    begin_three(2);
    OK(MPI_Waitsome(5, requests, &count, indices, statuses));
    SAME(count, 2);
    for (int i = 0; i < 2; i++) {
        SAME(indices[i], 1 + i);
        TOLD(&statuses[i], 11 + i);
        SAME(statuses[i].MPI_ERROR, 4711);
        CALLS(&three[1 + i], "qf");
    }
    CALLS(&three[0], "");
    OK(MPI_Testsome(5, requests, &count, indices, statuses));
    SAME(count, 0);
    end_three();

    begin_three(1);
    OK(MPI_Testsome(5, requests, &count, indices, MPI_STATUSES_IGNORE));
    SAME(count, 1);
    SAME(indices[0], 2);
    CALLS(&three[2], "qf");
    OK(MPI_Testany(5, requests, indices, &flag_of, statuses));
    SAME(flag_of, 0);
    end_three();

    begin_three(1);
    OK(MPI_Waitany(5, requests, indices, statuses));
    SAME(indices[0], 2);
    TOLD(statuses, 12);
    CALLS(&three[2], "qf");
    complete(&three[0]);
    OK(MPI_Testany(5, requests, indices, &flag_of, statuses));
    SAME(flag_of, 1);
    SAME(indices[0], 0);
    TOLD(statuses, 10);
    end_three();

    begin_three(3);
    OK(MPI_Testall(5, requests, &flag_of, statuses));
    SAME(flag_of, 0);
    for (int i = 0; i < 3; i++) CALLS(&three[i], "");
    message(6);
    OK(MPI_Testall(5, requests, &flag_of, statuses));
    SAME(flag_of, 1);
    for (int i = 0; i < 3; i++) {
        TOLD(&statuses[i], 10 + i);
        CALLS(&three[i], "qf");
    }
    SAME(count_of(&statuses[3], MPI_INT), 1);
    SAME(word, 6);

    begin_three(3);
    message(6);
    OK(MPI_Waitall(5, requests, statuses));
    for (int i = 0; i < 3; i++) {
        TOLD(&statuses[i], 10 + i);
        SAME(statuses[i].MPI_ERROR, 4711);
        CALLS(&three[i], "qf");
    }
}

static void asked_only(void) {
    begin_three(2);
    OK(MPI_Request_get_status_all(5, requests, &flag_of, statuses));
    SAME(flag_of, 0);
    OK(MPI_Request_get_status_any(5, requests, indices, &flag_of, statuses));
    SAME(flag_of, 1);
    SAME(indices[0], 1);
    TOLD(statuses, 11);
    CALLS(&three[1], "q");
    OK(MPI_Request_get_status_some(5, requests, &count, indices, statuses));
    SAME(count, 2);
    TOLD(&statuses[1], 12);
    CALLS(&three[1], "qq");
    CALLS(&three[2], "q");
    complete(&three[0]);
    message(6);
    OK(MPI_Request_get_status_all(5, requests, &flag_of, statuses));
    SAME(flag_of, 1);
    for (int i = 0; i < 3; i++) TOLD(&statuses[i], 10 + i);
    CALLS(&three[0], "q");
    three[2].query_code = MPI_ERR_IO;
    FAILS(MPI_Request_get_status_all(5, requests, &flag_of, statuses), MPI_ERR_IN_STATUS);
    SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
    SAME(statuses[2].MPI_ERROR, MPI_ERR_IO);
    SAME(statuses[3].MPI_ERROR, MPI_SUCCESS);
    FAILS(MPI_Request_get_status_some(5, requests, &count, indices, statuses), MPI_ERR_IN_STATUS);
    SAME(count, 4);
    SAME(statuses[2].MPI_ERROR, MPI_ERR_IO);
    SAME(statuses[3].MPI_ERROR, MPI_SUCCESS);
    FAILS(MPI_Request_get_status(requests[2], &flag_of, statuses), MPI_ERR_IO);
    three[2].query_code = 0;
    OK(MPI_Waitall(5, requests, MPI_STATUSES_IGNORE));
    CALLS(&three[1], "qqqqqqf");
}

static void errors(void) {
    struct operation op;
    MPI_Status status;
    int class_ = -1, code = -1, flag = -1;
    OK(MPI_Add_error_class(&class_));
    OK(MPI_Add_error_code(class_, &code));

    /* The error of the free function counts more than that of the query function. */
    begin(&op, 1);
    op.query_code = MPI_ERR_IO;
    complete(&op);
    status.MPI_ERROR = 4711;
    FAILS(MPI_Wait(&op.request, &status), MPI_ERR_IO);
    SAME(status.MPI_ERROR, 4711);
    TOLD(&status, 1);
    CALLS(&op, "qf");
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after an error");

    begin(&op, 2);
    op.query_code = MPI_ERR_IO;
    op.free_code = code;
    complete(&op);
    SAME(MPI_Test(&op.request, &flag, &status), code);
    SAME(flag, 1);
    CALLS(&op, "qf");

    begin(&op, 3);
    op.cancel_code = code;
    SAME(MPI_Cancel(&op.request), code);
    op.free_code = MPI_ERR_REQUEST;
    complete(&op);
    FAILS(MPI_Request_free(&op.request), MPI_ERR_REQUEST);
    CHECK(op.request == MPI_REQUEST_NULL, "the request is not null after an error");
    CALLS(&op, "cf");

    begin_three(3);
    three[1].free_code = code;
    message(6);
    FAILS(MPI_Waitall(5, requests, statuses), MPI_ERR_IN_STATUS);
    SAME(statuses[0].MPI_ERROR, MPI_SUCCESS);
    SAME(statuses[1].MPI_ERROR, code);
    SAME(statuses[2].MPI_ERROR, MPI_SUCCESS);
    SAME(statuses[3].MPI_ERROR, MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        TOLD(&statuses[i], 10 + i);
        CALLS(&three[i], "qf");
    }

    begin_three(3);
    three[0].free_code = code;
    three[2].query_code = MPI_ERR_IO;
    message(6);
    FAILS(MPI_Waitsome(5, requests, &count, indices, statuses), MPI_ERR_IN_STATUS);
    SAME(count, 4);
    SAME(statuses[0].MPI_ERROR, code);
    SAME(statuses[1].MPI_ERROR, MPI_SUCCESS);
    SAME(statuses[2].MPI_ERROR, MPI_ERR_IO);
    SAME(statuses[3].MPI_ERROR, MPI_SUCCESS);
    for (int i = 0; i < 3; i++) TOLD(&statuses[i], 10 + i);

    begin_three(1);
    three[2].free_code = code;
    SAME(MPI_Waitany(5, requests, indices, statuses), code);
    SAME(indices[0], 2);
    SAME(statuses[0].MPI_ERROR, 4711);
    end_three();

    begin_three(3);
    three[1].free_code = code;
    FAILS(MPI_Testsome(3, requests, &count, indices, MPI_STATUSES_IGNORE), MPI_ERR_IN_STATUS);
    SAME(count, 3);
    end_three();

    /* What is no generalised request, or is one no longer. */
    begin(&op, 4);
    complete(&op);
    FAILS(MPI_Grequest_complete(op.request), MPI_ERR_REQUEST);
    FAILS(MPI_Start(&op.request), MPI_ERR_REQUEST);
    OK(MPI_Wait(&op.request, MPI_STATUS_IGNORE));
    FAILS(MPI_Grequest_complete(op.request), MPI_ERR_REQUEST);
    OK(MPI_Irecv(&word, 1, MPI_INT, 0, 9, MPI_COMM_SELF, &op.request));
    FAILS(MPI_Grequest_complete(op.request), MPI_ERR_REQUEST);
    OK(MPI_Cancel(&op.request));
    OK(MPI_Wait(&op.request, MPI_STATUS_IGNORE));
    FAILS(MPI_Grequest_start(query, release, cancel, NULL, NULL), MPI_ERR_ARG);
}

static void message_to_itself(struct operation *of) {
    int out = of->number, in = -1;
    OK(MPI_Sendrecv(&out, 1, MPI_INT, 0, 3, &in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    SAME(in, out);
    OK(MPI_Allreduce(MPI_IN_PLACE, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF));
}

static void complete_other(struct operation *of) { OK(MPI_Grequest_complete(of->other->request)); }

static void wait_for_other(struct operation *of) {
    complete(of->other);
    OK(MPI_Wait(&of->other->request, MPI_STATUS_IGNORE));
}

/* Functions that call MPI: messages, completion of another request, a wait for another. */
static void functions_that_call(void) {
    struct operation ops[3];
    MPI_Status seen[3];
    for (int i = 0; i < 3; i++) begin(&ops[i], 20 + i);
    ops[0].in_query = message_to_itself;
    ops[0].in_free = complete_other;
    ops[0].other = &ops[1];
    ops[1].in_query = wait_for_other;
    ops[1].other = &ops[2];
    complete(&ops[0]);
    MPI_Request both[2] = {ops[0].request, ops[1].request};
    OK(MPI_Waitall(2, both, seen));
    TOLD(&seen[0], 20);
    TOLD(&seen[1], 21);
    for (int i = 0; i < 3; i++) CALLS(&ops[i], "qf");
}

enum { ROUNDS = 300, FEW = 8 };
static struct operation shared[FEW];
static int turn;

/* Completes the operations of each round in another order. */
static void *completer(void *argument) {
    (void)argument;
    for (int round = 1; round <= ROUNDS; round++) {
        while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) < round) sched_yield();
        for (int i = 0; i < FEW; i++) complete(&shared[(i * 5 + round) % FEW]);
    }
    return NULL;
}

/* Another thread completes what this one waits for, while messages come, too. */
static void threads(void) {
    pthread_t thread;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    pthread_create(&thread, NULL, completer, NULL);
    for (int round = 1; round <= ROUNDS; round++) {
        MPI_Request all[FEW + 2];
        MPI_Status seen[FEW + 2];
        int out = round, in = -1, done = 0;
        for (int i = 0; i < FEW; i++) {
            begin(&shared[i], i);
            all[i] = shared[i].request;
        }
        OK(MPI_Irecv(&in, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &all[FEW]));
        OK(MPI_Isend(&out, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &all[FEW + 1]));
        __atomic_store_n(&turn, round, __ATOMIC_RELEASE);
        if (round % 3 == 0) {
            OK(MPI_Waitall(FEW + 2, all, seen));
            for (int i = 0; i < FEW; i++) TOLD(&seen[i], i);
        } else if (round % 3 == 1) {
            while (done < FEW + 2) {
                int some = -1, which[FEW + 2];
                OK(MPI_Waitsome(FEW + 2, all, &some, which, seen));
                for (int i = 0; i < some; i++)
                    if (which[i] < FEW) TOLD(&seen[i], which[i]);
                done += some;
            }
        } else {
            for (; done < FEW + 2; done++) {
                int which = -1;
                OK(MPI_Waitany(FEW + 2, all, &which, seen));
                if (which < FEW) TOLD(seen, which);
            }
        }
        SAME(in, round);
        for (int i = 0; i < FEW; i++) CALLS(&shared[i], "qf");
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc > 1 && !strcmp(argv[1], "deadlock")) {
        struct operation op;
        begin(&op, 1);
        if (rank == 0) OK(MPI_Wait(&op.request, MPI_STATUS_IGNORE));
        OK(MPI_Barrier(MPI_COMM_WORLD));
        return finish();
    }
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    one();
    freed_and_cancelled();
    many();
    asked_only();
    errors();
    functions_that_call();
    if (provided == MPI_THREAD_MULTIPLE) threads();
    return finish();
}
