/* Verified traffic between the hosts of a job, under which their network may break.
 *
 *     traffic KIND SECONDS [WINDOW]
 *
 * Rank r exchanges messages of many sizes with rank (r + size / 2) % size, WINDOW at a time, for so many seconds; KIND is the way in
 * which they are completed, or `collectives`. `compute` and `end` are quiet for SECONDS after the first round, the latter before
 * MPI_Finalize. Rank 0 says "under way", and after each round, but not more often than every 10 ms, "at" with the time of the
 * monotonic clock. */
#include "../programs/check.h"

#include <time.h>
#include <unistd.h>

enum { MOST = 128, LONGEST = 1 << 20 };

static const int sizes[] = {1, 300000, 64, 1000, 16384, 0, 65536, 20000};
static unsigned char *sent[MOST], *come[MOST];
static MPI_Request requests[2 * MOST];
static int window = 1, peer;
static const char *kind;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static int length(long round, int at) {
    if (strcmp(kind, "long") == 0) return LONGEST;
    return sizes[(round + at) % (sizeof sizes / sizeof *sizes)];
}

static unsigned char byte_of(long round, int at, int from) { return (unsigned char)(round * 31 + at * 7 + from * 13 + 1); }

static void check_all(long round) {
    for (int at = 0; at < window; at++) {
        int count = length(round, at);
        for (int byte = 0; byte < count; byte++)
            if (come[at][byte] != byte_of(round, at, peer)) {
                WRONG("round %ld, message %d of %d bytes: byte %d is %d", round, at, count, byte, come[at][byte]);
                break;
            }
        memset(come[at], 0, (size_t)count);
    }
}

/* Completes `count` requests in the way that is tried. */
static void complete(int count) {
    int left = count, done, index, indices[2 * MOST];
    if (strcmp(kind, "waitall") == 0 || strcmp(kind, "long") == 0 || strcmp(kind, "persistent") == 0)
        OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    else if (strcmp(kind, "waitany") == 0)
        for (; left > 0; left--) OK(MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE));
    else if (strcmp(kind, "waitsome") == 0)
        for (; left > 0; left -= done) OK(MPI_Waitsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
    else if (strcmp(kind, "testall") == 0)
        for (done = 0; !done;) OK(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE));
    else if (strcmp(kind, "testany") == 0)
        for (; left > 0; left -= done) OK(MPI_Testany(count, requests, &index, &done, MPI_STATUS_IGNORE));
    else
        for (int at = 0; at < count; at++) OK(MPI_Wait(&requests[at], MPI_STATUS_IGNORE));
}

static void exchange(long round) {
    int any = strcmp(kind, "any") == 0, persistent = strcmp(kind, "persistent") == 0;
    for (int at = 0; at < window; at++) {
        int count = length(round, at);
        memset(sent[at], byte_of(round, at, rank), (size_t)count);
        if (persistent) {
            OK(MPI_Recv_init(come[at], count, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[2 * at]));
            OK(MPI_Send_init(sent[at], count, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[2 * at + 1]));
        } else {
            OK(MPI_Irecv(come[at], count, MPI_BYTE, any ? MPI_ANY_SOURCE : peer, at, MPI_COMM_WORLD, &requests[2 * at]));
            OK(MPI_Isend(sent[at], count, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[2 * at + 1]));
        }
    }
    if (persistent) OK(MPI_Startall(2 * window, requests));
    complete(2 * window);
    for (int at = 0; persistent && at < 2 * window; at++) OK(MPI_Request_free(&requests[at]));
    check_all(round);
}

static void collectives(long round) {
    long own = round * size + rank, sum = 0, all[64] = {0};
    OK(MPI_Allreduce(&own, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    SAME(sum, round * size * size + size * (size - 1) / 2);
    OK(MPI_Allgather(&own, 1, MPI_LONG, all, 1, MPI_LONG, MPI_COMM_WORLD));
    for (int from = 0; from < size; from++) SAME(all[from], round * size + from);
    int count = length(round, 0), root = (int)(round % size);
    memset(come[0], rank == root ? byte_of(round, 0, root) : 0, (size_t)count);
    OK(MPI_Bcast(come[0], count, MPI_BYTE, root, MPI_COMM_WORLD));
    for (int byte = 0; byte < count; byte++)
        if (come[0][byte] != byte_of(round, 0, root)) {
            WRONG("round %ld: byte %d of %d is %d", round, byte, count, come[0][byte]);
            break;
        }
    MPI_Request request;
    OK(MPI_Ialltoall(all, 1, MPI_LONG, all + 32, 1, MPI_LONG, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    for (int from = 0; from < size; from++) SAME(all[32 + from], round * size + rank);
    OK(MPI_Barrier(MPI_COMM_WORLD));
}

static void any_round(long round) {
    if (strcmp(kind, "collectives") == 0)
        collectives(round);
    else
        exchange(round);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    if (argc < 3 || size % 2 != 0 || size > 32) {
        WRONG("usage: traffic KIND SECONDS [WINDOW], on 2 to 32 ranks");
        return finish();
    }
    kind = argv[1];
    double seconds = atof(argv[2]);
    if (argc > 3) window = atoi(argv[3]);
    peer = (rank + size / 2) % size;
    for (int at = 0; at < window; at++) {
        sent[at] = malloc(LONGEST);
        come[at] = calloc(1, LONGEST);
    }
    int quiet = strcmp(kind, "compute") == 0 || strcmp(kind, "end") == 0;
    double begin = now(), said = 0;
    int more = 1;
    for (long round = 0; more; round++) {
        any_round(round);
        if (rank == 0 && round == 5) printf("under way\n");
        if (rank == 0 && now() - said > 0.01) {
            said = now();
            printf("at %.3f\n", said);
            fflush(stdout);
        }
        if (quiet && round == 5) {
            usleep((useconds_t)(seconds * 1e6));
            if (strcmp(kind, "end") == 0) break;
        }
        more = quiet ? round < 50 : round < 20 || now() - begin < seconds;
        OK(MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD));
    }
    return finish();
}
