/* Datatypes of Fortran kinds: one handle for each request, predefined and without a name, told by
 * envelope and contents; messages, reductions, external32. */
#include "check.h"

static int size_of(MPI_Datatype type) {
    int bytes = -1;
    OK(MPI_Type_size(type, &bytes));
    return bytes;
}

static MPI_Datatype real_of(int p, int r) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_f90_real(p, r, &type));
    return type;
}

static MPI_Datatype complex_of(int p, int r) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_f90_complex(p, r, &type));
    return type;
}

static MPI_Datatype integer_of(int r) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_f90_integer(r, &type));
    return type;
}

static void opened(MPI_Datatype type, int wanted, int count, int first, int second) {
    int ni = -1, na = -1, nd = -1, combiner = -1, ints[2] = {0};
    MPI_Aint no_address;
    MPI_Datatype no_type;
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    SAME(combiner, wanted);
    CHECK(ni == count && na == 0 && nd == 0, "%d ints, %d addresses, %d types", ni, na, nd);
    OK(MPI_Type_get_contents(type, 2, 0, 0, ints, &no_address, &no_type));
    SAME(ints[0], first);
    if (count == 2) SAME(ints[1], second);
}

static void kinds(void) {
    SAME(size_of(real_of(6, 37)), 4);
    SAME(size_of(real_of(6, 30)), 4);
    SAME(size_of(real_of(15, 307)), 8);
    SAME(size_of(real_of(MPI_UNDEFINED, 37)), 4);
    SAME(size_of(real_of(7, MPI_UNDEFINED)), 8);
    SAME(size_of(real_of(16, 307)), 16);
    SAME(size_of(complex_of(6, 37)), 8);
    SAME(size_of(complex_of(15, MPI_UNDEFINED)), 16);
    SAME(size_of(integer_of(1)), 1);
    SAME(size_of(integer_of(3)), 2);
    SAME(size_of(integer_of(9)), 4);
    SAME(size_of(integer_of(10)), 8);

    CHECK(real_of(10, 100) == real_of(10, 100), "two handles for one real");
    CHECK(complex_of(10, 100) == complex_of(10, 100), "two handles for one complex");
    CHECK(integer_of(5) == integer_of(5), "two handles for one integer");
    opened(real_of(10, 100), MPI_COMBINER_F90_REAL, 2, 10, 100);
    opened(real_of(11, 100), MPI_COMBINER_F90_REAL, 2, 11, 100);
    opened(complex_of(5, MPI_UNDEFINED), MPI_COMBINER_F90_COMPLEX, 2, 5, MPI_UNDEFINED);
    opened(integer_of(5), MPI_COMBINER_F90_INTEGER, 1, 5, 0);

    /* Predefined: without a name, committed, never freed. */
    MPI_Datatype type = real_of(10, 100), kept = type;
    char name[MPI_MAX_OBJECT_NAME] = "another";
    int length = -1;
    OK(MPI_Type_get_name(type, name, &length));
    SAME(length, 0);
    OK(MPI_Type_commit(&type));
    FAILS(MPI_Type_free(&type), MPI_ERR_TYPE);
    CHECK(type == kept && real_of(10, 100) == kept, "another handle after MPI_Type_free");

    /* As a part of other types it stays the type that it is. */
    MPI_Datatype line, part;
    MPI_Aint no_address;
    int count = -1;
    OK(MPI_Type_contiguous(3, type, &line));
    OK(MPI_Type_get_contents(line, 1, 0, 1, &count, &no_address, &part));
    CHECK(part == kept, "another handle in the contents");
    OK(MPI_Type_free(&line));
    OK(MPI_Type_dup(type, &line));
    OK(MPI_Type_free(&line));
}

static void unavailable(void) {
    MPI_Datatype type;
    FAILS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_real(100, 10, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_real(10, 100000, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_real(-4711, 10, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_complex(100, 10, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_complex(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_integer(39, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_integer(MPI_UNDEFINED, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_integer(2, NULL), MPI_ERR_ARG);
}

static void moved(void) {
    double in[3] = {rank + 0.5, -rank, 3}, out[3] = {0}, sum = 0;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Datatype real = real_of(12, 200);
    MPI_Status status;
    /* The other side names the type by its size. */
    OK(MPI_Sendrecv(in, 3, real, right, 1, out, 3, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &status));
    SAME(out[0] * 2, left * 2 + 1);
    SAME(count_of(&status, real), 3);
    for (int i = 0; i < size; i++) sum += i + 0.5;
    OK(MPI_Allreduce(in, out, 3, real, MPI_SUM, MPI_COMM_WORLD));
    CHECK(out[0] == sum && out[2] == 3.0 * size, "sum %g, not %g", out[0], sum);
    OK(MPI_Allreduce(in, out, 3, real, MPI_MAX, MPI_COMM_WORLD));
    CHECK(out[0] == size - 0.5, "maximum %g", out[0]);
    FAILS(MPI_Allreduce(in, out, 3, real, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);

    float pair[2] = {rank, 1}, product[2] = {0};
    OK(MPI_Allreduce(pair, product, 1, complex_of(6, 37), MPI_SUM, MPI_COMM_WORLD));
    CHECK(product[1] == size, "sum of complex numbers %g", product[1]);
    FAILS(MPI_Allreduce(pair, product, 1, complex_of(6, 37), MPI_MAX, MPI_COMM_WORLD), MPI_ERR_OP);
    short bits = (short)(1 << (rank % 8)), all = 0, wanted = 0;
    for (int i = 0; i < size; i++) wanted |= (short)(1 << (i % 8));
    OK(MPI_Allreduce(&bits, &all, 1, integer_of(4), MPI_BOR, MPI_COMM_WORLD));
    SAME(all, wanted);
    OK(MPI_Reduce_local(&bits, &all, 1, integer_of(4), MPI_BXOR));

    /* External32 has the sizes of section 19.1.9. */
    const struct { MPI_Datatype type; int bytes; } sizes[] = {
        {real_of(6, 37), 4}, {real_of(15, 307), 8}, {real_of(16, 307), 16}, {complex_of(6, 37), 8},
        {complex_of(7, 37), 16}, {integer_of(2), 1}, {integer_of(4), 2}, {integer_of(9), 4},
        {integer_of(18), 8}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        MPI_Aint bytes = -1;
        OK(MPI_Pack_external_size("external32", 5, sizes[i].type, &bytes));
        SAME(bytes, 5 * sizes[i].bytes);
    }
    short value = 0x1234, back = 0;
    unsigned char packed[2] = {0};
    MPI_Aint position = 0;
    OK(MPI_Pack_external("external32", &value, 1, integer_of(4), packed, 2, &position));
    CHECK(packed[0] == 0x12 && packed[1] == 0x34, "packed %x %x", packed[0], packed[1]);
    position = 0;
    OK(MPI_Unpack_external("external32", packed, 2, &position, &back, 1, integer_of(4)));
    SAME(back, value);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    kinds();
    unavailable();
    moved();
    return finish();
}
