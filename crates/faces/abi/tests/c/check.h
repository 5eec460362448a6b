/* For the programs of this folder: CHECK ends the program with the line that failed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(fact)                                                \
    do {                                                           \
        if (!(fact)) {                                             \
            fprintf(stderr, "line %d: not %s\n", __LINE__, #fact); \
            exit(1);                                               \
        }                                                          \
    } while (0)
