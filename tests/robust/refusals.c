/* refusals KIND RANK WHEN: messages of 20 kB to 2 MB in both directions, to and from memory that the system refuses to the other process. Every byte
 * arrives, and no call fails. A program that ends with 77 says why the system refuses nothing here.
 *
 *   holes      pages in the middle of buffers, which processes may read only themselves
 *   dumpable   the memory of rank RANK, to all other processes (PR_SET_DUMPABLE)
 *   caps       the memory of others, to rank RANK, which lacks a capability that they have
 *   seccomp    the memory of others, to rank RANK (a filter of system calls)
 *   none       nothing
 *
 * WHEN is `early`, before MPI_Init, or `later`, amid the messages. */
#define _GNU_SOURCE
#include "../programs/check.h"
#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include "../programs/no_copies.h"

enum { LENGTHS = 7, AT_ONCE = 2, ROUNDS = 8, HOLE = 4096, NOT_HERE = 77 };
static const int lengths[LENGTHS] = {20000, 65536, 131072, 200000, 300000, 1 << 20, (2 << 20) + 777};
enum { MOST = (2 << 20) + 4096 };

static unsigned state = 4711;

/* The same numbers on every rank. */
static int drawn(int below) {
    state = state * 1103515245u + 12345u;
    return (int)((state >> 8) % (unsigned)below);
}

static void not_here(const char *why) {
    fprintf(stderr, "not here: %s: %s\n", why, strerror(errno));
    exit(NOT_HERE);
}

static void drop_ptrace(void) {
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    if (syscall(SYS_capget, &head, data)) not_here("capget");
    unsigned kept = ~(1u << CAP_SYS_PTRACE);
    data[0].effective &= kept, data[0].permitted &= kept, data[0].inheritable &= kept;
    if (syscall(SYS_capset, &head, data)) not_here("capset");
}

static void refuse_calls(void) {
    if (refuse_copies()) not_here("a filter of system calls");
}

/* From now on the system refuses what the kind says. */
static void refuse(const char *kind) {
    if (!strcmp(kind, "dumpable") && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) not_here("PR_SET_DUMPABLE");
    if (!strcmp(kind, "caps")) drop_ptrace();
    if (!strcmp(kind, "seccomp")) refuse_calls();
}

/* True if this process can read a word of the other one. */
static int can_read(long pid, long at) {
    long word;
    struct iovec here = {&word, sizeof word}, there = {(void *)at, sizeof word};
    return process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0) == sizeof word;
}

/* Whether the refusal is in effect, as both ranks see it. */
static void check_refusal(const char *kind, int refuser) {
    static long word;
    long own[2] = {getpid(), (long)&word}, other[2];
    int seen[2], mine = rank == refuser, wanted;
    MPI_Sendrecv(own, 2, MPI_LONG, rank ^ 1, 1, other, 2, MPI_LONG, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    seen[0] = can_read(other[0], other[1]);
    MPI_Sendrecv(&seen[0], 1, MPI_INT, rank ^ 1, 1, &seen[1], 1, MPI_INT, rank ^ 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    /* Seen by the rank that is to be refused. */
    wanted = strcmp(kind, "dumpable") ? seen[!mine] : seen[mine];
    if (wanted && strcmp(kind, "none") && strcmp(kind, "holes")) {
        if (rank == 0) fprintf(stderr, "not here: the system refuses nothing for `%s`\n", kind);
        MPI_Finalize();
        exit(NOT_HERE);
    }
}

/* Puts a page that no other process can read over a page of a buffer. Returns false where the system has no such pages. */
static int make_hole(unsigned char *buffer, size_t at) {
    int file = (int)syscall(SYS_memfd_secret, 0);
    if (file < 0 || ftruncate(file, HOLE)) return 0;
    void *hole = mmap(buffer + at / HOLE * HOLE, HOLE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
    close(file);
    return hole != MAP_FAILED;
}

static unsigned char *buffer_of(int has_hole, size_t at) {
    unsigned char *buffer = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffer == MAP_FAILED) abort();
    if (has_hole && !make_hole(buffer, at)) not_here("memfd_secret");
    return buffer;
}

/* Messages of one length in the direction that `from` says: 0 or 1 sends, or both do. */
static void exchange(unsigned char **own, unsigned char **to, int count, int from, int mode, unsigned seed) {
    int other = rank ^ 1, sends = from == 2 || from == rank, receives = from == 2 || from != rank;
    MPI_Request requests[2 * AT_ONCE];
    for (int at = 0; at < 2 * AT_ONCE; at++) requests[at] = MPI_REQUEST_NULL;
    for (int at = 0; at < AT_ONCE; at++) {
        if (sends) fill(own[at], (size_t)count, seed + (unsigned)(at + rank * 100));
        if (receives) memset(to[at], 0x77, (size_t)count);
    }
    if (mode == 1 && receives) usleep(500);
    if (receives)
        for (int at = 0; at < AT_ONCE; at++) OK(MPI_Irecv(to[at], count, MPI_BYTE, other, at, MPI_COMM_WORLD, &requests[at]));
    if (sends)
        for (int at = 0; at < AT_ONCE; at++) {
            MPI_Request *request = &requests[AT_ONCE + at];
            if (mode == 2 && from != 2) OK(MPI_Send(own[at], count, MPI_BYTE, other, at, MPI_COMM_WORLD));
            else if (mode == 3) OK(MPI_Issend(own[at], count, MPI_BYTE, other, at, MPI_COMM_WORLD, request));
            else OK(MPI_Isend(own[at], count, MPI_BYTE, other, at, MPI_COMM_WORLD, request));
        }
    OK(MPI_Waitall(2 * AT_ONCE, requests, MPI_STATUSES_IGNORE));
    for (int at = 0; receives && at < AT_ONCE; at++) {
        long place = wrong(to[at], (size_t)count, seed + (unsigned)(at + other * 100));
        CHECK(place < 0, "byte %ld of %d, direction %d, mode %d", place, count, from, mode);
    }
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "none", *when = argc > 3 ? argv[3] : "early", *place = getenv("FISHPLATE_RANK");
    int refuser = argc > 2 ? atoi(argv[2]) : 0, early = !strcmp(when, "early"), holes = !strcmp(kind, "holes");
    /* Who may read everything is refused nothing. */
    if (!strcmp(kind, "dumpable")) drop_ptrace();
    if (early && place && atoi(place) == refuser) refuse(kind);
    start(&argc, &argv);
    unsigned char *own[AT_ONCE], *to[AT_ONCE];
    for (int round = 0; round < ROUNDS; round++) {
        if (round == ROUNDS / 2 && !early) {
            if (rank == refuser) refuse(kind);
            MPI_Barrier(MPI_COMM_WORLD);
        }
        if (round == ROUNDS / 2) check_refusal(kind, refuser);
        for (int length = 0; length < LENGTHS; length++) {
            int count = lengths[length], mode = drawn(4), from = drawn(3);
            for (int at = 0; at < AT_ONCE; at++) {
                /* Some pages of the first bytes can be read, so that a part of the message has moved before the refusal. */
                size_t hole = (size_t)drawn(count);
                int kinds = drawn(4);
                own[at] = buffer_of(holes && kinds & 1, hole);
                to[at] = buffer_of(holes && kinds & 2, hole);
            }
            exchange(own, to, count, from, mode, (unsigned)(round * 1000 + length * 10));
            for (int at = 0; at < AT_ONCE; at++) munmap(own[at], MOST), munmap(to[at], MOST);
        }
    }
    return finish();
}
