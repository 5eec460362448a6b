/* Envelope and contents: each constructor's own arguments come back, and inner types are handed out
 * as new handles that must be freed. */
#include "check.h"

static int integers[64], n_integers, n_addresses, n_types;
static MPI_Aint addresses[64];
static MPI_Datatype types[64];

static void open_up(const char *name, MPI_Datatype type, int wanted, int ni, int na, int nd) {
    int combiner = -1;
    OK(MPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner));
    CHECK(combiner == wanted, "%s: combiner %d, not %d", name, combiner, wanted);
    CHECK(n_integers == ni && n_addresses == na && n_types == nd, "%s: %d ints, %d addresses, %d types",
          name, n_integers, n_addresses, n_types);
    if (n_integers == ni && n_addresses == na && n_types == nd && wanted != MPI_COMBINER_NAMED)
        OK(MPI_Type_get_contents(type, ni, na, nd, integers, addresses, types));
}

/* The inner type is a copy of `inner`: same envelope; derived ones are freed here. */
static void close_up(MPI_Datatype *type) {
    for (int i = 0; i < n_types; i++) {
        int ni, na, nd, combiner;
        OK(MPI_Type_get_envelope(types[i], &ni, &na, &nd, &combiner));
        if (combiner != MPI_COMBINER_NAMED) OK(MPI_Type_free(&types[i]));
    }
    OK(MPI_Type_free(type));
}

static void ints(const char *name, int count, const int *wanted) {
    for (int i = 0; i < count; i++)
        CHECK(integers[i] == wanted[i], "%s: integer %d is %d, not %d", name, i, integers[i], wanted[i]);
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    MPI_Datatype type, inner;
    const int lengths[] = {2, 3}, places[] = {5, 0};
    const MPI_Aint far[] = {40, 8};

    open_up("named", MPI_DOUBLE, MPI_COMBINER_NAMED, 0, 0, 0);

    OK(MPI_Type_contiguous(7, MPI_INT, &type));
    open_up("contiguous", type, MPI_COMBINER_CONTIGUOUS, 1, 0, 1);
    ints("contiguous", 1, (int[]){7});
    CHECK(types[0] == MPI_INT, "contiguous: inner type");
    close_up(&type);

    OK(MPI_Type_dup(MPI_INT, &type));
    open_up("dup", type, MPI_COMBINER_DUP, 0, 0, 1);
    CHECK(types[0] == MPI_INT, "dup: inner type");
    close_up(&type);

    OK(MPI_Type_vector(3, 2, -5, MPI_INT, &type));
    open_up("vector", type, MPI_COMBINER_VECTOR, 3, 0, 1);
    ints("vector", 3, (int[]){3, 2, -5});
    close_up(&type);

    OK(MPI_Type_create_hvector(3, 2, 17, MPI_INT, &type));
    open_up("hvector", type, MPI_COMBINER_HVECTOR, 2, 1, 1);
    ints("hvector", 2, (int[]){3, 2});
    SAME(addresses[0], 17);
    close_up(&type);

    OK(MPI_Type_indexed(2, lengths, places, MPI_INT, &type));
    open_up("indexed", type, MPI_COMBINER_INDEXED, 5, 0, 1);
    ints("indexed", 5, (int[]){2, 2, 3, 5, 0});
    close_up(&type);

    OK(MPI_Type_create_hindexed(2, lengths, far, MPI_INT, &type));
    open_up("hindexed", type, MPI_COMBINER_HINDEXED, 3, 2, 1);
    ints("hindexed", 3, (int[]){2, 2, 3});
    SAME(addresses[0], 40);
    SAME(addresses[1], 8);
    close_up(&type);

    OK(MPI_Type_create_indexed_block(2, 4, places, MPI_INT, &type));
    open_up("indexed_block", type, MPI_COMBINER_INDEXED_BLOCK, 4, 0, 1);
    ints("indexed_block", 4, (int[]){2, 4, 5, 0});
    close_up(&type);

    OK(MPI_Type_create_hindexed_block(2, 4, far, MPI_INT, &type));
    open_up("hindexed_block", type, MPI_COMBINER_HINDEXED_BLOCK, 2, 2, 1);
    ints("hindexed_block", 2, (int[]){2, 4});
    SAME(addresses[1], 8);
    close_up(&type);

    OK(MPI_Type_contiguous(2, MPI_FLOAT, &inner));
    const MPI_Datatype parts[] = {MPI_CHAR, inner};
    OK(MPI_Type_create_struct(2, lengths, far, parts, &type));
    OK(MPI_Type_free(&inner));
    open_up("struct", type, MPI_COMBINER_STRUCT, 3, 2, 2);
    ints("struct", 3, (int[]){2, 2, 3});
    CHECK(types[0] == MPI_CHAR, "struct: first inner type");
    int combiner = 0, a, b, c, bytes = 0;
    OK(MPI_Type_get_envelope(types[1], &a, &b, &c, &combiner));
    SAME(combiner, MPI_COMBINER_CONTIGUOUS);
    OK(MPI_Type_size(types[1], &bytes));
    SAME(bytes, 8);
    close_up(&type);

    OK(MPI_Type_create_subarray(2, (int[]){6, 7}, (int[]){2, 3}, (int[]){1, 4}, MPI_ORDER_FORTRAN,
                                MPI_INT, &type));
    open_up("subarray", type, MPI_COMBINER_SUBARRAY, 8, 0, 1);
    ints("subarray", 8, (int[]){2, 6, 7, 2, 3, 1, 4, MPI_ORDER_FORTRAN});
    close_up(&type);

    OK(MPI_Type_create_resized(MPI_INT, -3, 11, &type));
    open_up("resized", type, MPI_COMBINER_RESIZED, 0, 2, 1);
    SAME(addresses[0], -3);
    SAME(addresses[1], 11);
    close_up(&type);

    MPI_Count counts = -1, sizes = -1, n_count = -1, n_address = -1, n_inner = -1, large[4];
    MPI_Aint none;
    OK(MPI_Type_contiguous_c((MPI_Count)5 << 32, MPI_CHAR, &type));
    OK(MPI_Type_get_envelope_c(type, &n_count, &n_address, &counts, &n_inner, &combiner));
    SAME(combiner, MPI_COMBINER_CONTIGUOUS);
    SAME(n_count, 0);
    SAME(counts, 1);
    OK(MPI_Type_get_contents_c(type, n_count, n_address, counts, n_inner, integers, &none, large, types));
    SAME(large[0], (MPI_Count)5 << 32);
    OK(MPI_Type_size_c(type, &sizes));
    SAME(sizes, (MPI_Count)5 << 32);
    OK(MPI_Type_free(&type));
    return finish();
}
