/* Every datatype constructor: size, bounds, true bounds, and which bytes it touches, in which order.
 * The order is seen by packing: the packed bytes are the memory's bytes taken by the type map. */
#include "check.h"
#include <stddef.h>

enum { ROOM = 4096, ORIGIN = 1024 };

/* The bytes that one element moves, in order: offsets from the buffer's address. */
typedef struct { int offsets[1024], count; } bytes;

static void span(bytes *map, int from, int length) {
    for (int i = 0; i < length; i++) map->offsets[map->count++] = from + i;
}

static void look(const char *name, MPI_Datatype type, int low, int extent, const bytes *map) {
    unsigned char memory[ROOM], packed[ROOM], back[ROOM];
    MPI_Aint lb = -1, ex = -1, true_lb = -1, true_ex = -1;
    MPI_Count big_lb = -1, big_ex = -1, big_size = -1;
    int bytes_in = -1, position = 0, room = 0, least = ROOM, most = -ROOM;
    for (int i = 0; i < map->count; i++) {
        if (map->offsets[i] < least) least = map->offsets[i];
        if (map->offsets[i] + 1 > most) most = map->offsets[i] + 1;
    }
    OK(MPI_Type_commit(&type));
    OK(MPI_Type_size(type, &bytes_in));
    OK(MPI_Type_get_extent(type, &lb, &ex));
    OK(MPI_Type_get_true_extent(type, &true_lb, &true_ex));
    OK(MPI_Type_size_c(type, &big_size));
    OK(MPI_Type_get_extent_c(type, &big_lb, &big_ex));
    CHECK(bytes_in == map->count && big_size == map->count, "%s: size %d, not %d", name, bytes_in,
          map->count);
    CHECK(lb == low && ex == extent, "%s: bounds %ld + %ld, not %d + %d", name, (long)lb, (long)ex,
          low, extent);
    CHECK(big_lb == low && big_ex == extent, "%s: large bounds %lld + %lld", name,
          (long long)big_lb, (long long)big_ex);
    if (map->count)
        CHECK(true_lb == least && true_ex == most - least, "%s: true bounds %ld + %ld, not %d + %d",
              name, (long)true_lb, (long)true_ex, least, most - least);

    enum { COUNT = 3 };
    fill(memory, ROOM, 5);
    memset(packed, 0xee, ROOM);
    OK(MPI_Pack_size(COUNT, type, MPI_COMM_SELF, &room));
    CHECK(room >= COUNT * map->count, "%s: Pack_size says %d", name, room);
    OK(MPI_Pack(memory + ORIGIN, COUNT, type, packed, ROOM, &position, MPI_COMM_SELF));
    CHECK(position == COUNT * map->count, "%s: packed %d bytes", name, position);
    for (int i = 0; i < COUNT * map->count; i++) {
        int place = ORIGIN + i / map->count * extent + map->offsets[i % map->count];
        if (packed[i] != memory[place]) {
            WRONG("%s: packed byte %d is not the one at %d", name, i, place - ORIGIN);
            break;
        }
    }
    /* Sent as the type and received as bytes, then back; the gaps stay unchanged. */
    unsigned char line[ROOM];
    MPI_Request request;
    memset(line, 0xee, ROOM);
    OK(MPI_Isend(memory + ORIGIN, COUNT, type, 0, 0, MPI_COMM_SELF, &request));
    OK(MPI_Recv(line, ROOM, MPI_BYTE, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK(memcmp(line, packed, COUNT * map->count) == 0, "%s: sent is not as packed", name);
    for (int way = 0; way < 2; way++) {
        memset(back, 0x33, ROOM);
        if (way) {
            OK(MPI_Isend(line, COUNT * map->count, MPI_BYTE, 0, 0, MPI_COMM_SELF, &request));
            OK(MPI_Recv(back + ORIGIN, COUNT, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            position = 0;
            OK(MPI_Unpack(packed, COUNT * map->count, &position, back + ORIGIN, COUNT, type,
                          MPI_COMM_SELF));
        }
        unsigned char wanted[ROOM];
        memset(wanted, 0x33, ROOM);
        for (int i = 0; i < COUNT * map->count; i++)
            wanted[ORIGIN + i / map->count * extent + map->offsets[i % map->count]] = packed[i];
        CHECK(memcmp(back, wanted, ROOM) == 0, "%s: %s", name, way ? "received" : "unpacked");
    }
    OK(MPI_Type_free(&type));
    CHECK(type == MPI_DATATYPE_NULL, "%s: after Type_free", name);
}

static void simple(void) {
    MPI_Datatype type, inner;
    bytes map = {.count = 0};

    span(&map, 0, 20);
    OK(MPI_Type_contiguous(5, MPI_INT, &type));
    look("contiguous", type, 0, 20, &map);

    map.count = 0;
    for (int i = 0; i < 3; i++) span(&map, i * 20, 8);
    OK(MPI_Type_vector(3, 2, 5, MPI_INT, &type));
    look("vector", type, 0, 48, &map);

    map.count = 0;
    for (int i = 0; i < 3; i++) span(&map, i * -12, 8);
    OK(MPI_Type_vector(3, 2, -3, MPI_INT, &type));
    look("vector backwards", type, -24, 32, &map);

    map.count = 0;
    for (int i = 0; i < 3; i++) span(&map, i * 9, 4);
    OK(MPI_Type_create_hvector(3, 2, 9, MPI_SHORT, &type));
    look("hvector", type, 0, 22, &map);

    const int lengths[] = {2, 0, 1}, places[] = {4, 0, -1};
    map.count = 0;
    span(&map, 16, 8);
    span(&map, -4, 4);
    OK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type));
    look("indexed", type, -4, 28, &map);

    const MPI_Aint far[] = {31, 0, 5};
    map.count = 0;
    span(&map, 31, 4);
    span(&map, 5, 2);
    OK(MPI_Type_create_hindexed(3, lengths, far, MPI_SHORT, &type));
    look("hindexed", type, 5, 30, &map);

    map.count = 0;
    span(&map, 32, 16);
    span(&map, 0, 16);
    span(&map, -8, 16);
    OK(MPI_Type_create_indexed_block(3, 2, places, MPI_DOUBLE, &type));
    look("indexed_block", type, -8, 56, &map);

    map.count = 0;
    span(&map, 31, 2);
    span(&map, 0, 2);
    span(&map, 5, 2);
    OK(MPI_Type_create_hindexed_block(3, 2, far, MPI_CHAR, &type));
    look("hindexed_block", type, 0, 33, &map);

    map.count = 0;
    span(&map, 0, 8);
    OK(MPI_Type_dup(MPI_DOUBLE, &type));
    look("dup", type, 0, 8, &map);

    map.count = 0;
    for (int i = 0; i < 2; i++) span(&map, i * 12, 8);
    OK(MPI_Type_vector(2, 2, 3, MPI_INT, &inner));
    OK(MPI_Type_create_resized(inner, -4, 28, &type));
    OK(MPI_Type_free(&inner)); /* the type built on it stays */
    look("resized", type, -4, 28, &map);

    map.count = 0;
    OK(MPI_Type_contiguous(0, MPI_INT, &type));
    look("empty contiguous", type, 0, 0, &map);
}

/* A C struct with padding, then one with parts out of order. */
static void structures(void) {
    struct record { char c; double d; short s[3]; int i; } r = {0};
    MPI_Datatype type;
    bytes map = {.count = 0};
    const int lengths[] = {1, 1, 3, 1};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT};
    MPI_Aint places[4], base;
    OK(MPI_Get_address(&r, &base));
    OK(MPI_Get_address(&r.c, &places[0]));
    OK(MPI_Get_address(&r.d, &places[1]));
    OK(MPI_Get_address(&r.s, &places[2]));
    OK(MPI_Get_address(&r.i, &places[3]));
    for (int i = 0; i < 4; i++) places[i] = MPI_Aint_diff(places[i], base);
    span(&map, offsetof(struct record, c), 1);
    span(&map, offsetof(struct record, d), 8);
    span(&map, offsetof(struct record, s), 6);
    span(&map, offsetof(struct record, i), 4);
    OK(MPI_Type_create_struct(4, lengths, places, types, &type));
    look("struct", type, 0, sizeof r, &map);

    /* The extent is rounded up to the largest alignment among the parts. */
    const MPI_Aint swapped[] = {8, 0};
    const int ones[] = {1, 1};
    MPI_Datatype two[] = {MPI_CHAR, MPI_DOUBLE};
    map.count = 0;
    span(&map, 8, 1);
    span(&map, 0, 8);
    OK(MPI_Type_create_struct(2, ones, swapped, two, &type));
    look("struct out of order", type, 0, 16, &map);
}

/* A box of a three-dimensional array, in C's and in Fortran's order. */
static void subarrays(void) {
    const int sizes[] = {4, 5, 6}, box[] = {2, 3, 2}, starts[] = {1, 2, 3};
    MPI_Datatype type;
    bytes map = {.count = 0};
    for (int i = 1; i < 3; i++)
        for (int j = 2; j < 5; j++) span(&map, ((i * 5 + j) * 6 + 3) * 2, 2 * 2);
    OK(MPI_Type_create_subarray(3, sizes, box, starts, MPI_ORDER_C, MPI_SHORT, &type));
    look("subarray C", type, 0, 4 * 5 * 6 * 2, &map);
    map.count = 0;
    for (int k = 3; k < 5; k++)
        for (int j = 2; j < 5; j++) span(&map, ((k * 5 + j) * 4 + 1) * 2, 2 * 2);
    OK(MPI_Type_create_subarray(3, sizes, box, starts, MPI_ORDER_FORTRAN, MPI_SHORT, &type));
    look("subarray Fortran", type, 0, 4 * 5 * 6 * 2, &map);
}

/* Types of types of types. */
static void nested(void) {
    MPI_Datatype row, block, type;
    bytes map = {.count = 0};
    OK(MPI_Type_vector(3, 1, 2, MPI_SHORT, &row));    /* bytes 0-1, 4-5, 8-9; extent 10 */
    OK(MPI_Type_create_hvector(2, 2, 30, row, &block)); /* rows at 0, 10, 30, 40; extent 50 */
    const int lengths[] = {1, 2};
    const MPI_Aint places[] = {64, 0};
    MPI_Datatype types[] = {block, MPI_CHAR};
    OK(MPI_Type_create_struct(2, lengths, places, types, &type));
    for (int outer = 0; outer < 2; outer++)
        for (int r = 0; r < 2; r++)
            for (int i = 0; i < 3; i++) span(&map, 64 + outer * 30 + r * 10 + i * 4, 2);
    span(&map, 0, 2);
    OK(MPI_Type_free(&row));
    OK(MPI_Type_free(&block));
    look("struct of hvector of vector", type, 0, 114, &map);
}

/* The large-count constructors give the same. */
static void large(void) {
    MPI_Datatype type;
    bytes map = {.count = 0};
    const MPI_Count lengths[] = {2, 1}, places[] = {3, 0};
    span(&map, 12, 8);
    span(&map, 0, 4);
    OK(MPI_Type_indexed_c(2, lengths, places, MPI_INT, &type));
    look("indexed_c", type, 0, 20, &map);
    map.count = 0;
    for (int i = 0; i < 3; i++) span(&map, i * 20, 8);
    OK(MPI_Type_vector_c(3, 2, 5, MPI_INT, &type));
    look("vector_c", type, 0, 48, &map);
    MPI_Datatype huge;
    MPI_Count bytes_in = 0, lb, extent;
    int small_size = 0;
    OK(MPI_Type_contiguous_c((MPI_Count)3 << 31, MPI_INT, &huge));
    OK(MPI_Type_size_c(huge, &bytes_in));
    SAME(bytes_in, (MPI_Count)12 << 31);
    OK(MPI_Type_get_extent_c(huge, &lb, &extent));
    SAME(extent, (MPI_Count)12 << 31);
    OK(MPI_Type_size(huge, &small_size));
    SAME(small_size, MPI_UNDEFINED);
    OK(MPI_Type_free(&huge));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    simple();
    structures();
    subarrays();
    nested();
    large();
    return finish();
}
