/* Messages whose send buffers have gaps, of lengths that a receiver on the same host may read where they lie: every kind of type against every
 * other, buffers and types that vanish right after a send, late receivers, and every way in which a message can end. */
#include "check.h"
#include <sys/mman.h>
#include <unistd.h>

enum { SHORTEST = 20000, EAGER = 128 << 10, LONGEST = 3 << 20, ROOM = 2 * LONGEST + (1 << 20), MOST = 2000 };
enum kind { DENSE, VECTOR, SHORT_RUNS, INDEXED, STRUCT, RESIZED, ABSOLUTE, KINDS };

/* A type and, in its order, the runs of bytes that `count` elements of it have in `memory`. */
typedef struct {
    MPI_Datatype type;
    int count, runs;
    long bytes;
    long offset[MOST], length[MOST];
    unsigned char *memory;
    void *address; /* the argument of the calls */
} Shape;

static unsigned state = 4711;

/* The same numbers on every rank. */
static int drawn(int below) {
    state = state * 1103515245u + 12345u;
    return (int)((state >> 8) % (unsigned)below);
}

static void add(Shape *shape, long offset, long length) {
    shape->offset[shape->runs] = offset;
    shape->length[shape->runs++] = length;
    shape->bytes += length;
}

static MPI_Datatype of_runs(const Shape *shape, MPI_Aint base) {
    static int lengths[MOST];
    static MPI_Aint offsets[MOST];
    MPI_Datatype type;
    for (int i = 0; i < shape->runs; i++) lengths[i] = (int)shape->length[i], offsets[i] = base + shape->offset[i];
    OK(MPI_Type_create_hindexed(shape->runs, lengths, offsets, MPI_BYTE, &type));
    return type;
}

/* Makes about `bytes` bytes of data in the memory, in runs of about `run` bytes. */
static void make(Shape *shape, enum kind kind, long bytes, long run, unsigned char *memory) {
    MPI_Aint here;
    int runs;
    if (kind == SHORT_RUNS) run = bytes / 1500 + 8;
    run &= ~7L;
    if (run < bytes / 1500) run = (bytes / 1500 + 8) & ~7L;
    runs = (int)((bytes + run - 1) / run);
    shape->count = 1, shape->runs = 0, shape->bytes = 0;
    shape->memory = memory, shape->address = memory;
    if (kind == DENSE) {
        add(shape, 0, bytes);
        OK(MPI_Type_contiguous((int)bytes, MPI_BYTE, &shape->type));
    } else if (kind == VECTOR || kind == SHORT_RUNS) {
        for (int i = 0; i < runs; i++) add(shape, i * 2 * run, run);
        OK(MPI_Type_vector(runs, (int)run, 2 * (int)run, MPI_BYTE, &shape->type));
    } else if (kind == RESIZED) {
        MPI_Datatype one;
        for (int i = 0; i < runs; i++) add(shape, i * (run + run / 2), run);
        OK(MPI_Type_contiguous((int)run, MPI_BYTE, &one));
        OK(MPI_Type_create_resized(one, 0, run + run / 2, &shape->type));
        OK(MPI_Type_free(&one));
        shape->count = runs;
    } else if (kind == STRUCT) {
        MPI_Datatype parts[3] = {MPI_BYTE, MPI_DATATYPE_NULL, MPI_BYTE};
        long first = run / 2, left;
        add(shape, 4, first);
        for (int i = 0; i < runs - 1; i++) add(shape, run + i * 2 * run, run);
        left = bytes - shape->bytes > 0 ? bytes - shape->bytes : 1;
        add(shape, 2 * run * runs + 13, left);
        OK(MPI_Type_vector(runs - 1, (int)run, 2 * (int)run, MPI_BYTE, &parts[1]));
        OK(MPI_Type_create_struct(3, (int[]){(int)first, 1, (int)left}, (MPI_Aint[]){4, run, 2 * run * runs + 13}, parts, &shape->type));
        OK(MPI_Type_free(&parts[1]));
    } else {
        /* Runs of all lengths, empty ones too, the last one first in memory. */
        long end = ROOM;
        while (shape->bytes < bytes && shape->runs < MOST) {
            long length = drawn(8) ? drawn(2 * (int)run) + (shape->runs > 1200) * run : 0;
            if (length > bytes - shape->bytes) length = bytes - shape->bytes;
            end -= length + drawn(100);
            add(shape, end, length);
        }
        OK(MPI_Get_address(memory, &here));
        shape->type = of_runs(shape, kind == ABSOLUTE ? here : 0);
        if (kind == ABSOLUTE) shape->address = MPI_BOTTOM;
    }
    OK(MPI_Type_commit(&shape->type));
}

static unsigned char *plain;

static void put(Shape *shape, int seed) {
    long at = 0;
    fill(plain, (size_t)shape->bytes, (unsigned)seed);
    for (int i = 0; i < shape->runs; at += shape->length[i++])
        memcpy(shape->memory + shape->offset[i], plain + at, (size_t)shape->length[i]);
}

/* The first `bytes` bytes of the data are those of the message; the memory beside them is as it was. */
static void received(Shape *shape, long bytes, int seed) {
    long at = 0, others = 0, wrong_at;
    for (int i = 0; i < shape->runs && at < bytes; i++) {
        long length = shape->length[i] < bytes - at ? shape->length[i] : bytes - at;
        memcpy(plain + at, shape->memory + shape->offset[i], (size_t)length);
        memset(shape->memory + shape->offset[i], 0x55, (size_t)length);
        at += length;
    }
    wrong_at = wrong(plain, (size_t)bytes, (unsigned)seed);
    CHECK(wrong_at < 0, "byte %ld of %ld of message %d", wrong_at, bytes, seed);
    for (long i = 0; i < ROOM; i++) others += shape->memory[i] != 0x55;
    SAME(others, 0);
}

static void pause_for(int kind) {
    if (kind == 1) for (volatile int i = 0; i < 3000; i++) {}
    if (kind == 2) usleep(300);
}

static Shape from, to;
static const long LENGTHS[] = {SHORTEST, 64 << 10, EAGER, 300 << 10, LONGEST - 5000};

/* Every kind against every other. The type and the buffer are gone as soon as the calls allow. */
static void every_kind(unsigned char *own, unsigned char *other) {
    int round = 0;
    memset(other, 0x55, ROOM);
    for (int at = 0; at < 5; at++)
        for (enum kind sent = DENSE; sent < KINDS; sent++)
            for (enum kind got = DENSE; got < KINDS; got++, round++) {
                long bytes = LENGTHS[at] - drawn(3000), run = 1024L << drawn(6);
                MPI_Request request;
                MPI_Status status;
                int late = drawn(3);
                make(&from, sent, bytes, run, own);
                make(&to, got, bytes + 40000, run / (1 + drawn(3)), other);
                if (rank == 0) {
                    put(&from, round);
                    if (round % 3 == 0) {
                        OK(MPI_Isend(from.address, from.count, from.type, 1, 1, MPI_COMM_WORLD, &request));
                        OK(MPI_Type_free(&from.type));
                        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                    } else {
                        int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm) = round % 5 ? MPI_Send : MPI_Ssend;
                        OK(send(from.address, from.count, from.type, 1, 1, MPI_COMM_WORLD));
                        OK(MPI_Type_free(&from.type));
                    }
                    memset(own, 0xee, ROOM);
                } else if (rank == 1) {
                    pause_for(late);
                    OK(MPI_Recv(to.address, to.count, to.type, 0, 1, MPI_COMM_WORLD, &status));
                    SAME(count_of(&status, MPI_BYTE), from.bytes);
                    received(&to, from.bytes, round);
                }
                if (rank != 0) OK(MPI_Type_free(&from.type));
                OK(MPI_Type_free(&to.type));
            }
}

/* The buffer is unmapped as soon as the send returns, before the receive begins. */
static void buffers_vanish(unsigned char *other) {
    for (int round = 0; round < 100; round++) {
        enum kind kind = (enum kind)(1 + round % (KINDS - 1));
        if (rank == 0) {
            unsigned char *own = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            make(&from, kind, SHORTEST + drawn(EAGER - 5000 - SHORTEST), 1024L << round % 6, own);
            put(&from, round);
            OK(MPI_Send(from.address, from.count, from.type, 1, 2, MPI_COMM_WORLD));
            munmap(own, ROOM);
            OK(MPI_Type_free(&from.type));
            OK(MPI_Send(&from.bytes, 1, MPI_LONG, 1, 3, MPI_COMM_WORLD));
        } else if (rank == 1) {
            long bytes = 0;
            if (round % 2) OK(MPI_Recv(&bytes, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Recv(other, ROOM, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            if (!(round % 2)) OK(MPI_Recv(&bytes, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(wrong(other, (size_t)bytes, (unsigned)round) < 0, "message %d", round);
        }
    }
}

/* Many sends before the first receive, by calls that do not wait. */
static void nobody_receives_yet(unsigned char *own, unsigned char *other) {
    enum { MANY = 24 };
    MPI_Request requests[MANY];
    state = 2;
    make(&from, VECTOR, 100 << 10, 4096, own);
    if (rank == 0) {
        for (int blocking = 0; blocking < 2; blocking++)
            for (int i = 0; i < MANY; i++) {
                put(&from, 55);
                if (blocking) OK(MPI_Send(from.address, 1, from.type, 1, 4, MPI_COMM_WORLD));
                else OK(MPI_Isend(from.address, 1, from.type, 1, 4, MPI_COMM_WORLD, &requests[i]));
            }
        OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        memset(own, 0, ROOM);
        OK(MPI_Send(NULL, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD));
    } else if (rank == 1) {
        OK(MPI_Recv(NULL, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < 2 * MANY; i++) {
            OK(MPI_Recv(other, ROOM, MPI_BYTE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK(wrong(other, (size_t)from.bytes, 55) < 0, "message %d", i);
        }
    }
    OK(MPI_Type_free(&from.type));
}

/* Matched probes, truncation, receives of nothing, cancelled sends. */
static void every_end(unsigned char *own, unsigned char *other) {
    MPI_Comm comm;
    state = 3;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (int round = 0; round < 120; round++) {
        int end = round % 4, cancelled = 0, there;
        long short_by = 5001;
        MPI_Request request;
        MPI_Message message;
        MPI_Status status;
        make(&from, (enum kind)(1 + round % (KINDS - 1)), LENGTHS[round / 4 % 5] - 5000 + drawn(3000), 2048L << round % 4, own);
        if (rank == 0) {
            put(&from, round);
            OK(MPI_Isend(from.address, from.count, from.type, 1, 6, comm, &request));
            if (end == 3) pause_for(round / 4 % 3);
            if (end == 3) OK(MPI_Cancel(&request));
            OK(MPI_Type_free(&from.type));
            OK(MPI_Wait(&request, &status));
            memset(own, 0xcc, ROOM);
            if (end == 3) OK(MPI_Test_cancelled(&status, &cancelled));
            OK(MPI_Send(&cancelled, 1, MPI_INT, 1, 7, comm));
        } else if (rank == 1) {
            memset(other, 0x55, ROOM);
            pause_for(round / 4 % 3);
            if (end == 0) {
                OK(MPI_Mprobe(0, 6, comm, &message, &status));
                SAME(count_of(&status, MPI_BYTE), from.bytes);
                OK(MPI_Mrecv(other, ROOM, MPI_BYTE, &message, &status));
                CHECK(wrong(other, (size_t)from.bytes, (unsigned)round) < 0, "message %d", round);
            } else if (end == 1) {
                FAILS(MPI_Recv(other, (int)(from.bytes - short_by), MPI_BYTE, 0, 6, comm, &status), MPI_ERR_TRUNCATE);
                CHECK(wrong(other, (size_t)(from.bytes - short_by), (unsigned)round) < 0, "message %d", round);
                SAME(other[from.bytes - short_by], 0x55);
            } else if (end == 2) {
                FAILS(MPI_Recv(other, 0, MPI_BYTE, 0, 6, comm, &status), MPI_ERR_TRUNCATE);
                SAME(other[0], 0x55);
            }
            OK(MPI_Recv(&cancelled, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE));
            if (end == 3) {
                OK(MPI_Iprobe(0, 6, comm, &there, MPI_STATUS_IGNORE));
                SAME(there, !cancelled);
                if (there) {
                    OK(MPI_Recv(other, ROOM, MPI_BYTE, 0, 6, comm, MPI_STATUS_IGNORE));
                    CHECK(wrong(other, (size_t)from.bytes, (unsigned)round) < 0, "message %d", round);
                }
            }
        }
        if (rank != 0) OK(MPI_Type_free(&from.type));
        MPI_Barrier(comm);
    }
    OK(MPI_Comm_free(&comm));
}

/* Both directions at once, and to oneself. */
static void both_ways(unsigned char *own, unsigned char *other) {
    int peer = rank ^ 1;
    for (int round = 0; round < 60 && rank < 2; round++) {
        int with = round % 6 == 5 ? rank : peer;
        make(&from, (enum kind)(round % KINDS), LENGTHS[round % 5] - 5000, 4096, own);
        put(&from, round + rank);
        OK(MPI_Sendrecv(from.address, from.count, from.type, with, 8, other, ROOM, MPI_BYTE, with, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(wrong(other, (size_t)from.bytes, (unsigned)(round + with)) < 0, "message %d", round);
        OK(MPI_Type_free(&from.type));
    }
}

/* The sender finalizes before the receiver receives. */
static void last_message(unsigned char *own, unsigned char *other) {
    make(&from, VECTOR, 120000, 8192, own);
    if (rank == 0) {
        put(&from, 99);
        OK(MPI_Send(from.address, from.count, from.type, 1, 9, MPI_COMM_WORLD));
        memset(own, 0, ROOM);
    } else if (rank == 1) {
        usleep(20000);
        OK(MPI_Recv(other, ROOM, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK(wrong(other, (size_t)from.bytes, 99) < 0, "the last message");
    }
    OK(MPI_Type_free(&from.type));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    unsigned char *own = allocate(ROOM), *other = allocate(ROOM);
    plain = allocate(ROOM);
    every_kind(own, other);
    buffers_vanish(other);
    nobody_receives_yet(own, other);
    every_end(own, other);
    both_ways(own, other);
    last_message(own, other);
    free(own);
    free(other);
    free(plain);
    return finish();
}
