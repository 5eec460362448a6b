/* Messages of 16 KiB to 128 KiB between ranks of one host, which their receiver may read from the sender's memory while a test stops or kills one.
 *
 *   flow     ranks 0 and 1, 2 and 3, … exchange messages without an end; each says `ready` after some. SIGUSR1 ends them, and rank 0 says ` ok`
 *   stopped  rank 1 stops itself before it receives; rank 0 sends what argument 2 says, and lets it go on
 *   dead     rank 1 announces a message and says `ready`, as rank 0 does; at SIGUSR1 rank 0 receives, and says whether the errors have their class */
#include "../programs/check.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { LEAST = 16500, MOST = 128 << 10, AT_ONCE = 4, WARM = 100 };

static volatile sig_atomic_t is_told;

static void told(int number) {
    (void)number;
    is_told = 1;
}

static void ready(void) {
    if (write(1, "ready\n", 6) != 6) abort();
}

static unsigned state = 99;

/* The same numbers on both ranks of a pair. */
static int drawn(int below) {
    state = state * 1103515245u + 12345u;
    return (int)((state >> 8) % (unsigned)below);
}

static unsigned char *own[AT_ONCE], *to[AT_ONCE];

/* One round of messages from one rank of the pair to the other, each verified. */
static void one_way(int sends, int other, unsigned round) {
    MPI_Request requests[AT_ONCE];
    int blocking = drawn(2), counts[AT_ONCE];
    for (int at = 0; at < AT_ONCE; at++) counts[at] = LEAST + drawn(MOST - LEAST + 1);
    for (int at = 0; at < AT_ONCE; at++) {
        if (!sends) OK(MPI_Irecv(to[at], MOST, MPI_BYTE, other, at, MPI_COMM_WORLD, &requests[at]));
        else {
            fill(own[at], (size_t)counts[at], round + (unsigned)at);
            if (blocking) {
                OK(MPI_Send(own[at], counts[at], MPI_BYTE, other, at, MPI_COMM_WORLD));
                memset(own[at], 0xee, (size_t)counts[at]);
                requests[at] = MPI_REQUEST_NULL;
            } else {
                OK(MPI_Isend(own[at], counts[at], MPI_BYTE, other, at, MPI_COMM_WORLD, &requests[at]));
            }
        }
    }
    OK(MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE));
    for (int at = 0; at < AT_ONCE; at++) {
        if (sends) {
            memset(own[at], 0xdd, (size_t)counts[at]);
            continue;
        }
        long place = wrong(to[at], (size_t)counts[at], round + (unsigned)at);
        CHECK(place < 0, "byte %ld of %d in round %u", place, counts[at], round);
    }
}

static void flow(void) {
    int other = rank ^ 1, leads = rank % 2 == 0, last = 0;
    for (unsigned round = 0; !last; round++) {
        last = is_told;
        if (leads) OK(MPI_Send(&last, 1, MPI_INT, other, 100, MPI_COMM_WORLD));
        else OK(MPI_Recv(&last, 1, MPI_INT, other, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        one_way(leads, other, round);
        one_way(!leads, other, round + 50);
        if (round == WARM) ready();
    }
}

/* The state of a process in /proc. */
static char state_of(long pid) {
    char name[64], text[512] = "";
    snprintf(name, sizeof name, "/proc/%ld/stat", pid);
    FILE *file = fopen(name, "r");
    if (!file) return '?';
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    char *end = length ? strrchr(text, ')') : NULL;
    return end ? end[2] : '?';
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* No send waits for the stopped rank: if one did, nobody would let that rank go on. */
static void stopped(int messages) {
    long pid = getpid();
    double shortest = 1e9;
    for (unsigned round = 0; round < WARM; round++) one_way(rank == 0, rank ^ 1, round);
    if (rank == 0) {
        OK(MPI_Recv(&pid, 1, MPI_LONG, 1, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        while (state_of(pid) != 'T') usleep(1000);
        for (int at = 0; at < messages; at++) {
            double began = now();
            fill(own[0], MOST, (unsigned)at);
            if (at % 2) {
                MPI_Request request;
                OK(MPI_Isend(own[0], MOST, MPI_BYTE, 1, at, MPI_COMM_WORLD, &request));
                OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            } else {
                OK(MPI_Send(own[0], MOST, MPI_BYTE, 1, at, MPI_COMM_WORLD));
            }
            memset(own[0], 0x99, MOST);
            shortest = now() - began < shortest ? now() - began : shortest;
        }
        CHECK(state_of(pid) == 'T', "it went on before");
        CHECK(shortest < 1, "%g s", shortest);
        kill((pid_t)pid, SIGCONT);
    } else {
        OK(MPI_Send(&pid, 1, MPI_LONG, 0, 101, MPI_COMM_WORLD));
        raise(SIGSTOP);
        for (int at = messages - 1; at >= 0; at--) {
            OK(MPI_Recv(to[0], MOST, MPI_BYTE, 0, at, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            long place = wrong(to[0], MOST, (unsigned)at);
            CHECK(place < 0, "byte %ld of message %d", place, at);
        }
    }
}

static int class_of(int code) {
    int class_ = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class_);
    return class_;
}

/* The other rank dies before its message is read, and before it claims one of this rank. */
static void dead(void) {
    MPI_Request request;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (unsigned round = 0; round < WARM; round++) one_way(rank == 1, rank ^ 1, round);
    OK(MPI_Isend(own[0], MOST, MPI_BYTE, rank ^ 1, 7, MPI_COMM_WORLD, &request));
    ready();
    while (rank == 1) pause();
    while (!is_told) usleep(1000);
    int received = class_of(MPI_Recv(to[0], MOST, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    /* Its bytes may be copied, and so it may be complete. */
    int waited = class_of(MPI_Wait(&request, MPI_STATUS_IGNORE));
    int sent = class_of(MPI_Send(own[1], MOST, MPI_BYTE, 1, 8, MPI_COMM_WORLD));
    int usual = MPI_ERR_PROC_ABORTED;
    if (received == usual && sent == usual && (waited == usual || waited == MPI_SUCCESS)) printf("as for a dead rank\n");
    else printf("other classes: %d %d %d\n", received, waited, sent);
    fflush(stdout);
    for (;;) pause();
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    signal(SIGUSR1, told);
    start(&argc, &argv);
    for (int at = 0; at < AT_ONCE; at++) own[at] = allocate(MOST), to[at] = allocate(MOST);
    if (!strcmp(kind, "flow")) flow();
    if (!strcmp(kind, "stopped")) stopped(argc > 2 ? atoi(argv[2]) : 1);
    if (!strcmp(kind, "dead")) dead();
    return finish();
}
