/* Messages of 16 KiB to 128 KiB, which a receiver on the same host may read from the sender's memory although their sends do not wait for
 * their receives: buffers that change or vanish right after a send, late receivers, and every way in which a message can end. */
#include "check.h"
#include "no_copies.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHORTEST = 20000, LONGEST = 128 << 10, ROUNDS = 200 };

static unsigned state = 12345;

/* The same numbers on every rank. */
static int drawn(int below) {
    state = state * 1103515245u + 12345u;
    return (int)((state >> 8) % (unsigned)below);
}

static void received(const unsigned char *bytes, int count, int seed) {
    long at = wrong(bytes, (size_t)count, (unsigned)seed);
    CHECK(at < 0, "byte %ld of %d of message %d", at, count, seed);
}

/* A receiver that comes late, by some of the time of a copy or by much more. */
static void pause_for(int kind) {
    if (kind == 1) for (volatile int i = 0; i < 3000; i++) {}
    if (kind == 2) usleep(300);
}

/* The buffer is overwritten, or unmapped, as soon as the send returns. */
static void buffer_is_the_programs(void) {
    unsigned char *to = allocate(LONGEST);
    for (int round = 0; round < ROUNDS; round++) {
        int count = SHORTEST + drawn(LONGEST - SHORTEST + 1), late = drawn(3), vanishes = drawn(2);
        if (rank == 0) {
            unsigned char *own = mmap(NULL, LONGEST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            fill(own, count, round);
            OK(MPI_Send(own, count, MPI_BYTE, 1, 1, MPI_COMM_WORLD));
            if (vanishes) munmap(own, LONGEST);
            else memset(own, 0xee, LONGEST), munmap(own, LONGEST);
        } else if (rank == 1) {
            pause_for(late);
            OK(MPI_Recv(to, LONGEST, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(to, count, round);
        }
    }
    free(to);
}

/* Many sends before the first receive, in order; none of them waits. */
static void nobody_receives_yet(void) {
    enum { MANY = 40 };
    unsigned char *bytes = allocate(LONGEST);
    MPI_Request requests[MANY];
    unsigned char *own = allocate((size_t)MANY * LONGEST);
    for (int nonblocking = 0; nonblocking < 2; nonblocking++) {
        if (rank == 0) {
            for (int i = 0; i < MANY; i++) {
                unsigned char *mine = nonblocking ? own + (size_t)i * LONGEST : own;
                fill(mine, LONGEST, i);
                if (nonblocking) OK(MPI_Isend(mine, LONGEST, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]));
                else OK(MPI_Send(mine, LONGEST, MPI_BYTE, 1, 2, MPI_COMM_WORLD));
            }
            if (nonblocking) {
                OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
                memset(own, 0, (size_t)MANY * LONGEST);
            }
            OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD));
        } else if (rank == 1) {
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            for (int i = 0; i < MANY; i++) {
                OK(MPI_Recv(bytes, LONGEST, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                received(bytes, LONGEST, i);
            }
        }
    }
    free(own);
    free(bytes);
}

/* Matched probes, truncation, receives of nothing and of types with gaps. */
static void every_receive(void) {
    unsigned char *own = allocate(LONGEST), *to = allocate(2 * LONGEST);
    MPI_Datatype gaps;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Type_vector(LONGEST / 64, 64, 128, MPI_BYTE, &gaps));
    OK(MPI_Type_commit(&gaps));
    for (int round = 0; round < 40; round++) {
        int kind = round % 4;
        if (rank == 0) {
            fill(own, LONGEST, round);
            OK(MPI_Send(own, LONGEST, MPI_BYTE, 1, 4, comm));
            memset(own, 0, LONGEST);
        } else if (rank == 1) {
            MPI_Message message;
            MPI_Status status;
            memset(to, 0x55, 2 * LONGEST);
            pause_for(round / 4 % 3);
            if (kind == 0) {
                OK(MPI_Mprobe(0, 4, comm, &message, &status));
                SAME(count_of(&status, MPI_BYTE), LONGEST);
                usleep(200);
                OK(MPI_Mrecv(to, LONGEST, MPI_BYTE, &message, &status));
                received(to, LONGEST, round);
            } else if (kind == 1) {
                FAILS(MPI_Recv(to, SHORTEST, MPI_BYTE, 0, 4, comm, &status), MPI_ERR_TRUNCATE);
                received(to, SHORTEST, round);
                SAME(to[SHORTEST], 0x55);
            } else if (kind == 2) {
                FAILS(MPI_Recv(to, 0, MPI_BYTE, 0, 4, comm, &status), MPI_ERR_TRUNCATE);
                SAME(to[0], 0x55);
            } else {
                OK(MPI_Recv(to, 1, gaps, 0, 4, comm, &status));
                for (int i = 1; i < LONGEST / 64; i++) memmove(to + i * 64, to + i * 128, 64);
                received(to, LONGEST, round);
            }
        }
    }
    OK(MPI_Type_free(&gaps));
    OK(MPI_Comm_free(&comm));
    free(own);
    free(to);
}

/* Both directions at once, to oneself, in place, persistent, buffered, ready, and with freed requests. */
static void every_send(void) {
    int other = rank ^ 1;
    unsigned char *own = allocate(LONGEST), *to = allocate(LONGEST);
    MPI_Request request, requests[2];
    if (rank < 2) {
        for (int round = 0; round < 50; round++) {
            int count = SHORTEST + drawn(LONGEST - SHORTEST + 1);
            fill(own, count, round + rank);
            OK(MPI_Sendrecv(own, count, MPI_BYTE, other, 5, to, LONGEST, MPI_BYTE, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(to, count, round + other);
            OK(MPI_Sendrecv_replace(own, count, MPI_BYTE, other, 5, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(own, count, round + other);
        }
        OK(MPI_Send_init(own, LONGEST, MPI_BYTE, other, 6, MPI_COMM_WORLD, &requests[0]));
        OK(MPI_Recv_init(to, LONGEST, MPI_BYTE, other, 6, MPI_COMM_WORLD, &requests[1]));
        for (int round = 0; round < 50; round++) {
            fill(own, LONGEST, round + rank);
            OK(MPI_Start(&requests[0]));
            if (rank) pause_for(round % 3);
            OK(MPI_Start(&requests[1]));
            OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
            received(to, LONGEST, round + other);
        }
        OK(MPI_Request_free(&requests[0]));
        OK(MPI_Request_free(&requests[1]));
    }
    if (rank == 0) {
        void *attached = allocate(2 * (LONGEST + MPI_BSEND_OVERHEAD));
        int bytes;
        OK(MPI_Buffer_attach(attached, 2 * (LONGEST + MPI_BSEND_OVERHEAD)));
        for (int round = 0; round < 20; round++) {
            fill(own, LONGEST, round);
            OK(MPI_Bsend(own, LONGEST, MPI_BYTE, 1, 7, MPI_COMM_WORLD));
            memset(own, 1, LONGEST);
        }
        OK(MPI_Buffer_detach(&attached, &bytes));
        free(attached);
        /* The receive is posted before the word that it is. */
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        fill(own, LONGEST, 77);
        OK(MPI_Rsend(own, LONGEST, MPI_BYTE, 1, 9, MPI_COMM_WORLD));
        memset(own, 2, LONGEST);
        fill(to, LONGEST, 78);
        OK(MPI_Isend(to, LONGEST, MPI_BYTE, 1, 10, MPI_COMM_WORLD, &request));
        OK(MPI_Request_free(&request));
    } else if (rank == 1) {
        for (int round = 0; round < 20; round++) {
            OK(MPI_Recv(to, LONGEST, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(to, LONGEST, round);
        }
        OK(MPI_Irecv(to, LONGEST, MPI_BYTE, 0, 9, MPI_COMM_WORLD, &request));
        OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 8, MPI_COMM_WORLD));
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        received(to, LONGEST, 77);
        OK(MPI_Recv(to, LONGEST, MPI_BYTE, 0, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        received(to, LONGEST, 78);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(own);
    free(to);
}

/* A send is cancelled, or received: never both, never neither. The wait for it needs no receiver. */
static void cancelled_or_received(void) {
    unsigned char *own = allocate(LONGEST), *to = allocate(LONGEST);
    for (int round = 0; round < 60; round++) {
        if (rank == 0) {
            MPI_Request request;
            MPI_Status status;
            int cancelled;
            fill(own, LONGEST, round);
            OK(MPI_Isend(own, LONGEST, MPI_BYTE, 1, 11, MPI_COMM_WORLD, &request));
            pause_for(round % 3);
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            OK(MPI_Send(&cancelled, 1, MPI_INT, 1, 12, MPI_COMM_WORLD));
            OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else if (rank == 1) {
            int cancelled, there;
            OK(MPI_Recv(&cancelled, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Iprobe(0, 11, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
            SAME(there, !cancelled);
            if (there) {
                OK(MPI_Recv(to, LONGEST, MPI_BYTE, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                received(to, LONGEST, round);
            }
            OK(MPI_Send(NULL, 0, MPI_BYTE, 0, 12, MPI_COMM_WORLD));
        }
    }
    free(own);
    free(to);
}

/* The wait for a cancelled send ends although the receiver makes no call. */
static void cancel_waits_for_nobody(void) {
    unsigned char *own = allocate(LONGEST);
    char name[64] = "";
    for (int round = 0; round < 4; round++) {
        if (rank == 0) {
            MPI_Request request;
            MPI_Status status;
            int cancelled;
            snprintf(name, sizeof name, "shared-sends-%d-%d", (int)getpid(), round);
            fill(own, LONGEST, round);
            OK(MPI_Send(name, sizeof name, MPI_CHAR, 1, 16, MPI_COMM_WORLD));
            OK(MPI_Isend(own, LONGEST, MPI_BYTE, 1, 11, MPI_COMM_WORLD, &request));
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            CHECK(mkdir(name, 0700) == 0, "errno %d", errno);
            OK(MPI_Send(&cancelled, 1, MPI_INT, 1, 12, MPI_COMM_WORLD));
        } else if (rank == 1) {
            int cancelled;
            OK(MPI_Recv(name, sizeof name, MPI_CHAR, 0, 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            while (rmdir(name) != 0) usleep(100);
            OK(MPI_Recv(&cancelled, 1, MPI_INT, 0, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (!cancelled) {
                OK(MPI_Recv(own, LONGEST, MPI_BYTE, 0, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                received(own, LONGEST, round);
            }
        }
    }
    free(own);
}

/* The sender finalizes before the receiver receives. */
static void last_message(unsigned char *bytes) {
    if (rank == 0) {
        fill(bytes, LONGEST, 99);
        OK(MPI_Send(bytes, LONGEST, MPI_BYTE, 1, 13, MPI_COMM_WORLD));
        memset(bytes, 0, LONGEST);
    } else if (rank == 1) {
        usleep(20000);
        OK(MPI_Recv(bytes, LONGEST, MPI_BYTE, 0, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        received(bytes, LONGEST, 99);
    }
}

/* Messages of all lengths in both directions, each with a delay, a mode and a verdict of its own. */
static void at_random(int messages) {
    enum { MOST = 160 << 10, AT_ONCE = 6 };
    unsigned char *own[AT_ONCE], *to[AT_ONCE];
    MPI_Request sends[AT_ONCE], receives[AT_ONCE];
    int counts[AT_ONCE], other = rank ^ 1;
    for (int at = 0; at < AT_ONCE; at++) own[at] = allocate(MOST), to[at] = allocate(MOST);
    for (int first = 0; rank < 2 && first < messages; first += AT_ONCE) {
        int both = drawn(2), blocking = drawn(3) == 0 && !both, late = drawn(8), sender = drawn(2), posted = drawn(2);
        int sends_here = both || rank == sender, receives_here = both || rank != sender;
        for (int at = 0; at < AT_ONCE; at++) {
            counts[at] = drawn(4) ? 16000 + drawn(MOST - 16000) : drawn(16000);
            sends[at] = receives[at] = MPI_REQUEST_NULL;
        }
        if (receives_here && posted)
            for (int at = 0; at < AT_ONCE; at++)
                OK(MPI_Irecv(to[at], MOST, MPI_BYTE, other, at, MPI_COMM_WORLD, &receives[at]));
        for (int at = 0; sends_here && at < AT_ONCE; at++) {
            fill(own[at], (size_t)counts[at], (unsigned)(first + at));
            if (blocking) {
                OK(MPI_Send(own[at], counts[at], MPI_BYTE, other, at, MPI_COMM_WORLD));
                memset(own[at], 0xdd, (size_t)counts[at]);
            } else {
                OK(MPI_Isend(own[at], counts[at], MPI_BYTE, other, at, MPI_COMM_WORLD, &sends[at]));
            }
        }
        if (receives_here && late < 3) pause_for(late);
        if (receives_here && !posted)
            for (int at = AT_ONCE - 1; at >= 0; at--)
                OK(MPI_Irecv(to[at], MOST, MPI_BYTE, other, at, MPI_COMM_WORLD, &receives[at]));
        OK(MPI_Waitall(AT_ONCE, sends, MPI_STATUSES_IGNORE));
        if (sends_here && !blocking)
            for (int at = 0; at < AT_ONCE; at++) memset(own[at], 0xcc, (size_t)counts[at]);
        OK(MPI_Waitall(AT_ONCE, receives, MPI_STATUSES_IGNORE));
        if (receives_here)
            for (int at = 0; at < AT_ONCE; at++) received(to[at], counts[at], first + at);
    }
    for (int at = 0; at < AT_ONCE; at++) free(own[at]), free(to[at]);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A child of the sender lives on while the message is read. */
static void sender_forks(unsigned char *bytes) {
    for (int round = 0; round < 10; round++) {
        if (rank == 0) {
            fill(bytes, LONGEST, round);
            OK(MPI_Send(bytes, LONGEST, MPI_BYTE, 1, 15, MPI_COMM_WORLD));
            pid_t child = fork();
            if (child == 0) {
                memset(bytes, 0x11, LONGEST);
                _exit(0);
            }
            memset(bytes, 0x22, LONGEST);
            waitpid(child, NULL, 0);
        } else if (rank == 1) {
            pause_for(round % 3);
            OK(MPI_Recv(bytes, LONGEST, MPI_BYTE, 0, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            received(bytes, LONGEST, round);
        }
    }
}

/* The system refuses this process the memory of others from now on. */
static void refuse(void) {
    CHECK(refuse_copies() == 0, "errno %d", errno);
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";
    const char *place = getenv("FISHPLATE_RANK");
    if (!strcmp(kind, "refused") && (argc < 3 || (place && !strcmp(place, argv[2])))) refuse();
    start(&argc, &argv);
    unsigned char *bytes = allocate(LONGEST);
    if (!strcmp(kind, "random")) at_random(argc > 2 ? atoi(argv[2]) : 20000);
    /* The system refuses what it allowed before. */
    if (!strcmp(kind, "later")) {
        at_random(2000);
        if (rank == 1) refuse();
    }
    buffer_is_the_programs();
    MPI_Barrier(MPI_COMM_WORLD);
    nobody_receives_yet();
    every_receive();
    every_send();
    cancelled_or_received();
    cancel_waits_for_nobody();
    sender_forks(bytes);
    at_random(1000);
    last_message(bytes);
    /* A message that nobody receives keeps nobody from the end. */
    if (rank == 1 && !strcmp(kind, "unreceived")) OK(MPI_Send(bytes, LONGEST, MPI_BYTE, 0, 14, MPI_COMM_WORLD));
    free(bytes);
    return finish();
}
