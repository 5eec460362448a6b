/* Every predefined operation on every type that it is defined for, by Reduce_local and by Allreduce,
 * against plain C; and that other combinations are refused. */
#include "check.h"
#include <complex.h>
#include <stdbool.h>
#include <wchar.h>

enum { COUNT = 9 };

/* A rank's values. They stay small, so products fit into 8 bits on few ranks, and 0 occurs. */
static int small(int r, int i) { return (r + i) % 3; }

#define TRY(ctype, type, op, as_truth, combine) \
    do { \
        ctype mine[COUNT], other[COUNT], result[COUNT]; \
        for (int i = 0; i < COUNT; i++) mine[i] = (ctype)small(rank, i); \
        for (int i = 0; i < COUNT; i++) other[i] = (ctype)small(rank + 1, i); \
        OK(MPI_Reduce_local(mine, other, COUNT, type, op)); \
        for (int i = 0; i < COUNT; i++) { \
            ctype a = (ctype)small(rank, i), b = (ctype)small(rank + 1, i), wanted; \
            wanted = (ctype)(combine); \
            CHECK(other[i] == wanted, #op " on " #type " by Reduce_local, element %d", i); \
        } \
        OK(MPI_Allreduce(mine, result, COUNT, type, op, MPI_COMM_WORLD)); \
        for (int i = 0; i < COUNT; i++) { \
            ctype a = (ctype)small(0, i); \
            for (int r = 1; r < size; r++) { \
                ctype b = (ctype)small(r, i); \
                a = (ctype)(combine); \
            } \
            if (as_truth) a = (ctype)!!a; \
            CHECK(result[i] == a, #op " on " #type " by Allreduce, element %d", i); \
        } \
    } while (0)

#define ORDERED(ctype, type) \
    do { \
        TRY(ctype, type, MPI_MAX, 0, a > b ? a : b); \
        TRY(ctype, type, MPI_MIN, 0, a < b ? a : b); \
    } while (0)
#define ARITHMETIC(ctype, type) \
    do { \
        TRY(ctype, type, MPI_SUM, 0, a + b); \
        TRY(ctype, type, MPI_PROD, 0, a * b); \
    } while (0)
#define LOGICAL(ctype, type) \
    do { \
        TRY(ctype, type, MPI_LAND, size > 1, a && b); \
        TRY(ctype, type, MPI_LOR, size > 1, a || b); \
        TRY(ctype, type, MPI_LXOR, size > 1, !a != !b); \
    } while (0)
#define BITS(ctype, type) \
    do { \
        TRY(ctype, type, MPI_BAND, 0, a & b); \
        TRY(ctype, type, MPI_BOR, 0, a | b); \
        TRY(ctype, type, MPI_BXOR, 0, a ^ b); \
    } while (0)
#define INTEGER(ctype, type) \
    do { \
        ORDERED(ctype, type); \
        ARITHMETIC(ctype, type); \
        LOGICAL(ctype, type); \
        BITS(ctype, type); \
    } while (0)
#define FLOATING(ctype, type) \
    do { \
        ORDERED(ctype, type); \
        ARITHMETIC(ctype, type); \
    } while (0)

static void scalars(void) {
    INTEGER(signed char, MPI_SIGNED_CHAR);
    INTEGER(unsigned char, MPI_UNSIGNED_CHAR);
    INTEGER(short, MPI_SHORT);
    INTEGER(unsigned short, MPI_UNSIGNED_SHORT);
    INTEGER(int, MPI_INT);
    INTEGER(unsigned, MPI_UNSIGNED);
    INTEGER(long, MPI_LONG);
    INTEGER(unsigned long, MPI_UNSIGNED_LONG);
    INTEGER(long long, MPI_LONG_LONG);
    INTEGER(unsigned long long, MPI_UNSIGNED_LONG_LONG);
    INTEGER(int8_t, MPI_INT8_T);
    INTEGER(uint8_t, MPI_UINT8_T);
    INTEGER(int16_t, MPI_INT16_T);
    INTEGER(uint16_t, MPI_UINT16_T);
    INTEGER(int32_t, MPI_INT32_T);
    INTEGER(uint32_t, MPI_UINT32_T);
    INTEGER(int64_t, MPI_INT64_T);
    INTEGER(uint64_t, MPI_UINT64_T);
    INTEGER(MPI_Aint, MPI_AINT);
    INTEGER(MPI_Offset, MPI_OFFSET);
    INTEGER(MPI_Count, MPI_COUNT);
    FLOATING(float, MPI_FLOAT);
    FLOATING(double, MPI_DOUBLE);
    FLOATING(long double, MPI_LONG_DOUBLE);
    ARITHMETIC(float complex, MPI_C_FLOAT_COMPLEX);
    ARITHMETIC(double complex, MPI_C_DOUBLE_COMPLEX);
    ARITHMETIC(long double complex, MPI_C_LONG_DOUBLE_COMPLEX);
    LOGICAL(bool, MPI_C_BOOL);
    BITS(unsigned char, MPI_BYTE);
}

/* MINLOC and MAXLOC: of equal values the least index wins. */
#define PAIR(ctype, type) \
    do { \
        struct { ctype value; int index; } mine[COUNT], result[COUNT]; \
        memset(mine, 0, sizeof mine); \
        for (int least = 0; least < 2; least++) { \
            for (int i = 0; i < COUNT; i++) { \
                mine[i].value = (ctype)small(rank, i); \
                mine[i].index = size - rank; \
            } \
            OK(MPI_Allreduce(mine, result, COUNT, type, least ? MPI_MINLOC : MPI_MAXLOC, \
                             MPI_COMM_WORLD)); \
            for (int i = 0; i < COUNT; i++) { \
                int value = small(0, i), index = size; \
                for (int r = 1; r < size; r++) { \
                    int v = small(r, i); \
                    if ((least ? v < value : v > value) || (v == value && size - r < index)) \
                        value = v, index = size - r; \
                } \
                CHECK(result[i].value == (ctype)value && result[i].index == index, \
                      #type " %s, element %d: index %d, not %d", least ? "MINLOC" : "MAXLOC", i, \
                      result[i].index, index); \
            } \
        } \
    } while (0)

static void pairs(void) {
    PAIR(float, MPI_FLOAT_INT);
    PAIR(double, MPI_DOUBLE_INT);
    PAIR(long, MPI_LONG_INT);
    PAIR(int, MPI_2INT);
    PAIR(short, MPI_SHORT_INT);
    PAIR(long double, MPI_LONG_DOUBLE_INT);
}

static void refusals(void) {
    double d[2] = {0}, e[2] = {0};
    MPI_Datatype own;
    OK(MPI_Type_contiguous(1, MPI_INT, &own));
    OK(MPI_Type_commit(&own));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    FAILS(MPI_Allreduce(d, e, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(d, e, 1, MPI_DOUBLE, MPI_MAXLOC, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(d, e, 1, MPI_C_DOUBLE_COMPLEX, MPI_MAX, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(d, e, 1, own, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(d, e, 1, MPI_2INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(d, e, 1, MPI_INT, MPI_OP_NULL, MPI_COMM_WORLD), MPI_ERR_OP);
    OK(MPI_Type_free(&own));
    const MPI_Op predefined[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND, MPI_LOR, MPI_LXOR,
                                 MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    for (unsigned i = 0; i < sizeof predefined / sizeof *predefined; i++) {
        int commutes = -1;
        OK(MPI_Op_commutative(predefined[i], &commutes));
        SAME(commutes, 1);
    }
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    scalars();
    pairs();
    refusals();
    return finish();
}
