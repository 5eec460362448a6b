/* The part of the probe in C: compares a descriptor with what it must be (crates/faces/fortran_convert/src/sections/descriptor.rs). */
#include <stdint.h>
#include <string.h>

static int same(const unsigned char *descriptor, int rank, int element, const int *extents, const int *strides)
{
    uint64_t kind;
    memcpy(&kind, descriptor + 16, sizeof kind);
    int is_gnu = kind >> 32 == 0;
    uint64_t length = kind;
    int64_t span = 1;
    int has_rank = (signed char)descriptor[is_gnu ? 28 : 20];
    if (is_gnu)
        memcpy(&span, descriptor + 32, sizeof span);
    else
        memcpy(&length, descriptor + 8, sizeof length);
    if (has_rank != rank || length != (uint64_t)element)
        return 0;
    for (int at = 0; at < rank; at++) {
        int64_t d[3];
        memcpy(d, descriptor + (is_gnu ? 40 : 24) + 24 * at, sizeof d);
        int64_t stride = is_gnu ? d[0] * span : d[2];
        int64_t extent = is_gnu ? d[2] - d[1] + 1 : d[1];
        int is_unknown = is_gnu ? d[1] == 1 && d[2] == -1 : extent == -1;
        if (extents[at] == -1 ? !is_unknown : extent != extents[at])
            return 0;
        /* Strides of what is empty do not matter. */
        int is_empty = 0;
        for (int other = 0; other < rank; other++)
            is_empty |= extents[other] == 0;
        if (!is_empty && stride != strides[at])
            return 0;
    }
    return 1;
}

void probe_c_(const void *d, const int *rank, const int *element, const int *extents, const int *strides, int *good)
{
    *good += same(d, *rank, *element, extents, strides);
}

void probe_native_(const void *d, const int *rank, const int *element, const int *extents, const int *strides, int *good)
{
    *good += same(d, *rank, *element, extents, strides);
}
