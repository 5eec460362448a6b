/* Request objects beyond plain messages: generalised requests, status fields and copies. */
#include "check.h"

static int queries, frees, cancels;

static int query(void *extra, MPI_Status *status) {
    queries++;
    MPI_Status_set_elements(status, MPI_INT, *(int *)extra);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = 17;
    return MPI_SUCCESS;
}

static int release(void *extra) {
    (void)extra;
    frees++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
    (void)extra, (void)complete;
    cancels++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Request request;
    MPI_Status status, copy;
    int extra = 5, flag = -1, value = -1;
    OK(MPI_Grequest_start(query, release, cancel, &extra, &request));
    OK(MPI_Test(&request, &flag, &status));
    SAME(flag, 0);
    OK(MPI_Cancel(&request));
    SAME(cancels, 1);
    OK(MPI_Grequest_complete(request));
    OK(MPI_Wait(&request, &status));
    CHECK(queries == 1 && frees == 1, "query %d, free %d", queries, frees);
    CHECK(request == MPI_REQUEST_NULL, "after Wait");
    SAME(status.MPI_TAG, 17);
    SAME(count_of(&status, MPI_INT), 5);
    copy = status; /* a status is a plain value */
    SAME(count_of(&copy, MPI_INT), 5);
    OK(MPI_Status_set_source(&status, 3));
    OK(MPI_Status_set_tag(&status, 4));
    OK(MPI_Status_set_error(&status, MPI_ERR_OTHER));
    OK(MPI_Status_get_source(&status, &value));
    SAME(value, 3);
    OK(MPI_Status_get_tag(&status, &value));
    SAME(value, 4);
    OK(MPI_Status_get_error(&status, &value));
    SAME(value, MPI_ERR_OTHER);
    SAME(sizeof(MPI_Status), 32);
    return finish();
}
