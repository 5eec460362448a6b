/* The large-count forms, point to point and packing: the same results by MPI_Count arguments. */
#include "check.h"

enum { COUNT = 5000 };
static int out[COUNT], in[COUNT];
static int right, left;

static void clear(void) {
    for (int i = 0; i < COUNT; i++) out[i] = rank * COUNT + i, in[i] = -1;
}

static void see(const char *what) {
    for (int i = 0; i < COUNT; i++)
        if (in[i] != left * COUNT + i) {
            WRONG("%s: element %d is %d", what, i, in[i]);
            return;
        }
}

typedef int (*send_c)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm);
typedef int (*isend_c)(const void *, MPI_Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static void sends(void) {
    const send_c blocking[] = {MPI_Send_c, MPI_Ssend_c, MPI_Bsend_c, MPI_Rsend_c};
    const isend_c nonblocking[] = {MPI_Isend_c, MPI_Issend_c, MPI_Ibsend_c, MPI_Irsend_c};
    const isend_c persistent[] = {MPI_Send_init_c, MPI_Ssend_init_c, MPI_Bsend_init_c, MPI_Rsend_init_c};
    for (int mode = 0; mode < 4; mode++) {
        MPI_Request receive, send;
        clear();
        OK(MPI_Irecv_c(in, COUNT, MPI_INT, left, 1, MPI_COMM_WORLD, &receive));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(blocking[mode](out, COUNT, MPI_INT, right, 1, MPI_COMM_WORLD));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        see("blocking");
        clear();
        OK(MPI_Irecv_c(in, COUNT, MPI_INT, left, 2, MPI_COMM_WORLD, &receive));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(nonblocking[mode](out, COUNT, MPI_INT, right, 2, MPI_COMM_WORLD, &send));
        OK(MPI_Waitall(2, (MPI_Request[]){receive, send}, MPI_STATUSES_IGNORE));
        see("nonblocking");
        clear();
        OK(MPI_Recv_init_c(in, COUNT, MPI_INT, left, 3, MPI_COMM_WORLD, &receive));
        OK(persistent[mode](out, COUNT, MPI_INT, right, 3, MPI_COMM_WORLD, &send));
        OK(MPI_Start(&receive));
        MPI_Barrier(MPI_COMM_WORLD);
        OK(MPI_Start(&send));
        OK(MPI_Wait(&receive, MPI_STATUS_IGNORE));
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&receive));
        OK(MPI_Request_free(&send));
        see("persistent");
    }
}

static void others(void) {
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    MPI_Count count = -1;
    clear();
    OK(MPI_Sendrecv_c(out, COUNT, MPI_INT, right, 4, in, COUNT, MPI_INT, left, 4, MPI_COMM_WORLD,
                      &status));
    OK(MPI_Get_count_c(&status, MPI_INT, &count));
    SAME(count, COUNT);
    see("Sendrecv_c");
    clear();
    memcpy(in, out, sizeof in);
    OK(MPI_Sendrecv_replace_c(in, COUNT, MPI_INT, right, 5, left, 5, MPI_COMM_WORLD, &status));
    see("Sendrecv_replace_c");
    for (int way = 0; way < 2; way++) {
        clear();
        OK(MPI_Isend_c(out, COUNT, MPI_INT, right, 6, MPI_COMM_WORLD, &request));
        OK(MPI_Mprobe(left, 6, MPI_COMM_WORLD, &message, &status));
        if (way) {
            MPI_Request receive;
            OK(MPI_Imrecv_c(in, COUNT, MPI_INT, &message, &receive));
            OK(MPI_Wait(&receive, &status));
        } else {
            OK(MPI_Mrecv_c(in, COUNT, MPI_INT, &message, &status));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        see("Mrecv_c");
    }
}

static void packing(void) {
    MPI_Count room = -1, position = 0;
    clear();
    OK(MPI_Pack_size_c(COUNT, MPI_INT, MPI_COMM_WORLD, &room));
    CHECK(room >= (MPI_Count)sizeof out, "Pack_size_c says %lld", (long long)room);
    char *packed = allocate((size_t)room);
    OK(MPI_Pack_c(out, COUNT, MPI_INT, packed, room, &position, MPI_COMM_WORLD));
    SAME(position, sizeof out);
    position = 0;
    OK(MPI_Unpack_c(packed, room, &position, in, COUNT, MPI_INT, MPI_COMM_WORLD));
    CHECK(memcmp(in, out, sizeof in) == 0, "unpacked");
    position = 0;
    memset(in, 0, sizeof in);
    OK(MPI_Pack_external_c("external32", out, COUNT, MPI_INT, packed, room, &position));
    position = 0;
    OK(MPI_Unpack_external_c("external32", packed, room, &position, in, COUNT, MPI_INT));
    CHECK(memcmp(in, out, sizeof in) == 0, "unpacked from external32");
    free(packed);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    right = (rank + 1) % size;
    left = (rank + size - 1) % size;
    MPI_Count room = sizeof out + 2 * MPI_BSEND_OVERHEAD, given = -1;
    void *memory = allocate((size_t)room), *back = NULL;
    OK(MPI_Buffer_attach_c(memory, room));
    sends();
    others();
    packing();
    OK(MPI_Buffer_detach_c(&back, &given));
    CHECK(back == memory && given == room, "detached %lld bytes", (long long)given);
    free(memory);
    return finish();
}
