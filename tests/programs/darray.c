/* Distributed arrays: each rank's part by every distribution, against owners computed element by
 * element; exchanged with rank 0, which holds the whole array; envelope, contents, errors. */
#include "check.h"

enum { MOST = 8 * 9 * 10, DIMS = 3 };

struct array {
    int ndims, order, gsizes[DIMS], distribs[DIMS], dargs[DIMS], psizes[DIMS];
};

/* The process that holds an element, by the definition of the distributions. */
static int owner(const struct array *a, int element) {
    int index[DIMS], holder = 0;
    for (int i = 0; i < a->ndims; i++) {
        int dim = a->order == MPI_ORDER_C ? a->ndims - 1 - i : i;
        index[dim] = element % a->gsizes[dim];
        element /= a->gsizes[dim];
    }
    for (int i = 0; i < a->ndims; i++) {
        int g = a->gsizes[i], p = a->psizes[i], d = a->dargs[i], at = 0;
        if (a->distribs[i] == MPI_DISTRIBUTE_BLOCK)
            at = index[i] / (d == MPI_DISTRIBUTE_DFLT_DARG ? (g + p - 1) / p : d);
        if (a->distribs[i] == MPI_DISTRIBUTE_CYCLIC)
            at = index[i] / (d == MPI_DISTRIBUTE_DFLT_DARG ? 1 : d) % p;
        holder = holder * p + at;
    }
    return holder;
}

static int total(const struct array *a) {
    int all = 1;
    for (int i = 0; i < a->ndims; i++) all *= a->gsizes[i];
    return all;
}

static int grid(const struct array *a) {
    int all = 1;
    for (int i = 0; i < a->ndims; i++) all *= a->psizes[i];
    return all;
}

static MPI_Datatype make(const struct array *a, int place, MPI_Datatype old) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    OK(MPI_Type_create_darray(grid(a), place, a->ndims, a->gsizes, a->distribs, a->dargs, a->psizes,
                              a->order, old, &type));
    OK(MPI_Type_commit(&type));
    return type;
}

/* All parts of an array on this rank alone: packing takes the owner's elements in order. */
static void parts(const struct array *a, int width, MPI_Datatype old) {
    int all = total(a), size_of = -1;
    MPI_Aint lb = -1, extent = -1;
    int *whole = allocate(sizeof(int) * all * width), *packed = allocate(sizeof(int) * all * width);
    for (int i = 0; i < all * width; i++) whole[i] = i * 3 + 1;
    for (int place = 0; place < grid(a); place++) {
        MPI_Datatype type = make(a, place, old);
        int position = 0, n = 0;
        OK(MPI_Type_get_extent(type, &lb, &extent));
        SAME(lb, 0);
        SAME(extent, (MPI_Aint)(sizeof(int) * all * width));
        OK(MPI_Type_size(type, &size_of));
        OK(MPI_Pack(whole, 1, type, packed, (int)(sizeof(int) * all * width), &position, MPI_COMM_SELF));
        SAME(position, size_of);
        for (int element = 0; element < all; element++)
            if (owner(a, element) == place)
                for (int i = 0; i < width; i++, n++)
                    if (n * (int)sizeof(int) < position) SAME(packed[n], whole[element * width + i]);
        SAME(n * (int)sizeof(int), size_of);
        OK(MPI_Type_free(&type));
    }
    free(whole);
    free(packed);
}

/* Rank 0 gets the parts of all ranks into their places, and hands them back. */
static void exchanged(const struct array *a) {
    int all = total(a), mine = 0, n = 0;
    int *whole = allocate(sizeof(int) * all), *part = allocate(sizeof(int) * all);
    for (int i = 0; i < all; i++) mine += owner(a, i) == rank;
    for (int i = 0; i < mine; i++) part[i] = rank * 1000 + i;
    for (int i = 0; i < all; i++) whole[i] = -1;
    MPI_Request request;
    OK(MPI_Isend(part, mine, MPI_INT, 0, 1, MPI_COMM_WORLD, &request));
    if (rank == 0) {
        int seen[64] = {0};
        for (int from = 0; from < size; from++) {
            MPI_Datatype type = make(a, from, MPI_INT);
            OK(MPI_Recv(whole, 1, type, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            OK(MPI_Type_free(&type));
        }
        for (int i = 0; i < all; i++) {
            int holder = owner(a, i);
            SAME(whole[i], holder * 1000 + seen[holder]++);
        }
    }
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    OK(MPI_Bcast(whole, all, MPI_INT, 0, MPI_COMM_WORLD));
    /* A copy of the type, in the representation for files. */
    MPI_Datatype type = make(a, rank, MPI_INT), copy;
    OK(MPI_Type_dup(type, &copy));
    OK(MPI_Type_free(&type));
    MPI_Aint external = -1, position = 0;
    OK(MPI_Pack_external_size("external32", 1, copy, &external));
    SAME(external, 4 * mine);
    unsigned char *bytes = allocate(4 * all);
    OK(MPI_Pack_external("external32", whole, 1, copy, bytes, external, &position));
    SAME(position, external);
    for (int i = 0; i < all; i++)
        if (owner(a, i) == rank) {
            const unsigned char *at = bytes + 4 * n++;
            SAME((at[0] << 24) | (at[1] << 16) | (at[2] << 8) | at[3], whole[i]);
        }
    OK(MPI_Type_free(&copy));
    free(bytes);
    free(whole);
    free(part);
}

static void arrays(void) {
    const int kinds[] = {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    const int gsizes[] = {1, 5, 8};
    MPI_Datatype pair;
    OK(MPI_Type_contiguous(2, MPI_INT, &pair));
    for (int order = 0; order < 2; order++)
        for (int choice = 0; choice < 243; choice++) {
            struct array a = {2, order ? MPI_ORDER_FORTRAN : MPI_ORDER_C, {0}, {0}, {0}, {0}};
            int rest = choice;
            for (int i = 0; i < 2; i++) {
                a.distribs[i] = kinds[rest % 3];
                a.gsizes[i] = gsizes[(rest /= 3) % 3];
                rest /= 3;
                a.psizes[i] = a.distribs[i] == MPI_DISTRIBUTE_NONE ? 1 : 2 + i;
                a.dargs[i] = choice / 81 == 0 ? MPI_DISTRIBUTE_DFLT_DARG
                             : a.distribs[i] == MPI_DISTRIBUTE_BLOCK ? 5 - i + choice / 162 : choice / 81;
            }
            parts(&a, 2, pair);
        }
    OK(MPI_Type_free(&pair));
    struct array cube = {3, MPI_ORDER_C, {8, 9, 10},
                         {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_BLOCK},
                         {3, 0, MPI_DISTRIBUTE_DFLT_DARG}, {size, 1, 1}};
    for (int i = 0; i < 2; i++) {
        exchanged(&cube);
        cube.order = MPI_ORDER_FORTRAN;
        exchanged(&cube);
        cube.psizes[0] = 1;
        cube.psizes[2] = size;
        cube.dargs[0] = MPI_DISTRIBUTE_DFLT_DARG;
    }
}

static void contents(void) {
    const struct array a = {2, MPI_ORDER_FORTRAN, {10, 11}, {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                            {MPI_DISTRIBUTE_DFLT_DARG, 5}, {2, 3}};
    MPI_Datatype type = make(&a, 4, MPI_DOUBLE), old;
    int ni = -1, na = -1, nd = -1, combiner = -1, ints[12] = {0};
    const int wanted[12] = {6, 4, 2, 10, 11, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC,
                            MPI_DISTRIBUTE_DFLT_DARG, 5, 2, 3, MPI_ORDER_FORTRAN};
    MPI_Aint none;
    OK(MPI_Type_get_envelope(type, &ni, &na, &nd, &combiner));
    SAME(combiner, MPI_COMBINER_DARRAY);
    CHECK(ni == 12 && na == 0 && nd == 1, "%d ints, %d addresses, %d types", ni, na, nd);
    OK(MPI_Type_get_contents(type, 12, 0, 1, ints, &none, &old));
    for (int i = 0; i < 12; i++) SAME(ints[i], wanted[i]);
    CHECK(old == MPI_DOUBLE, "another inner type");
    OK(MPI_Type_free(&type));
    /* The form with large counts: a distribution of 2^40 elements in each dimension. */
    const MPI_Count gsizes[2] = {(MPI_Count)1 << 40, (MPI_Count)1 << 20};
    MPI_Count ci = -1, ca = -1, cc = -1, ct = -1, counts[2], bytes = -1, lb, extent;
    OK(MPI_Type_create_darray_c(6, 4, 2, gsizes, a.distribs, a.dargs, a.psizes, MPI_ORDER_C, MPI_CHAR,
                                &type));
    OK(MPI_Type_get_envelope_c(type, &ci, &ca, &cc, &ct, &combiner));
    CHECK(ci == 10 && ca == 0 && cc == 2 && ct == 1, "%d ints, %d counts", (int)ci, (int)cc);
    OK(MPI_Type_get_contents_c(type, 10, 0, 2, 1, ints, &none, counts, &old));
    SAME(counts[0], gsizes[0]);
    SAME(counts[1], gsizes[1]);
    SAME(ints[2], 2);
    SAME(ints[3], MPI_DISTRIBUTE_BLOCK);
    SAME(ints[9], MPI_ORDER_C);
    OK(MPI_Type_get_extent_c(type, &lb, &extent));
    SAME(extent, (MPI_Count)1 << 60);
    OK(MPI_Type_size_c(type, &bytes));
    /* Column blocks 5 to 9, 20 to 24 and so on up to 2^20, of half of the rows. */
    SAME(bytes, ((MPI_Count)1 << 39) * 349525);
    OK(MPI_Type_free(&type));
}

static void wrong_arguments(void) {
    struct array a = {1, MPI_ORDER_C, {10}, {MPI_DISTRIBUTE_BLOCK}, {MPI_DISTRIBUTE_DFLT_DARG}, {2}};
    MPI_Datatype type;
#define TRY(size_, place, dims, old) \
    REFUSED(MPI_Type_create_darray(size_, place, dims, a.gsizes, a.distribs, a.dargs, a.psizes, a.order, old, &type))
    TRY(0, 0, 1, MPI_INT);
    TRY(-2, 0, 1, MPI_INT);
    TRY(2, 2, 1, MPI_INT);
    TRY(2, -1, 1, MPI_INT);
    TRY(3, 0, 1, MPI_INT);
    TRY(2, 0, 0, MPI_INT);
    TRY(2, 0, -1, MPI_INT);
    TRY(2, 0, 1, MPI_DATATYPE_NULL);
    a.order = 4711;
    TRY(2, 0, 1, MPI_INT);
    a.order = MPI_ORDER_C;
    a.distribs[0] = 4711;
    TRY(2, 0, 1, MPI_INT);
    a.distribs[0] = MPI_DISTRIBUTE_NONE;
    TRY(2, 0, 1, MPI_INT);
    a.distribs[0] = MPI_DISTRIBUTE_BLOCK;
    a.dargs[0] = 4;
    TRY(2, 0, 1, MPI_INT);
    a.dargs[0] = -4711;
    TRY(2, 0, 1, MPI_INT);
    a.distribs[0] = MPI_DISTRIBUTE_CYCLIC;
    a.dargs[0] = 0;
    TRY(2, 0, 1, MPI_INT);
    a.dargs[0] = 1;
    a.gsizes[0] = 0;
    TRY(2, 0, 1, MPI_INT);
    a.gsizes[0] = 10;
    a.psizes[0] = 0;
    TRY(2, 0, 1, MPI_INT);
    REFUSED(MPI_Type_create_darray(2, 0, 1, NULL, a.distribs, a.dargs, a.psizes, a.order, MPI_INT, &type));
    REFUSED(MPI_Type_create_darray(2, 0, 1, a.gsizes, a.distribs, a.dargs, a.psizes, a.order, MPI_INT, NULL));
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    arrays();
    contents();
    wrong_arguments();
    return finish();
}
