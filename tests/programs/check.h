/* Shared by the C programs: start, count what is wrong and say where, close.
 *
 * A program ends with `return finish();`. Rank 0 then prints ` ok` when it saw nothing wrong; every
 * rank that did see something has said what, and exits with 1. Compiled with the wrapper under
 * test, so this header may use nothing but what C11 and C++17 share, POSIX and mpi.h. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 10 };

static int failures;
static int rank = -1, size = -1;

/* Counts a failure and prints it, up to MOST_LINES of them a rank. Any thread may call it. */
static inline void failed(const char *file, int line, const char *format, ...) {
    if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) >= MOST_LINES) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s:%d: rank %d: %s\n", file, line, rank, text);
}

/* Reports a failure that no single condition expresses. */
#define WRONG(...) failed(__FILE__, __LINE__, __VA_ARGS__)

/* CHECK(condition, "format", ...): the text gives the values seen. */
#define CHECK(condition, ...) \
    do { if (!(condition)) failed(__FILE__, __LINE__, #condition ": " __VA_ARGS__); } while (0)

#define SAME(seen, wanted) \
    do { \
        long long seen_ = (long long)(seen), wanted_ = (long long)(wanted); \
        if (seen_ != wanted_) \
            failed(__FILE__, __LINE__, "%s is %lld, not %lld", #seen, seen_, wanted_); \
    } while (0)

/* The call must succeed. */
#define OK(call) \
    do { \
        int code_ = (call); \
        if (code_ != MPI_SUCCESS) failed(__FILE__, __LINE__, "%s gave code %d", #call, code_); \
    } while (0)

/* The call must fail, with a code of this class (under MPI_ERRORS_RETURN). */
#define FAILS(call, wanted) \
    do { \
        int class_ = MPI_SUCCESS, code_ = (call); \
        if (code_ != MPI_SUCCESS) MPI_Error_class(code_, &class_); \
        if (class_ != (wanted)) \
            failed(__FILE__, __LINE__, "%s gave class %d, not %s (%d)", #call, class_, #wanted, \
                   (wanted)); \
    } while (0)

/* The call must fail, by whatever class: the standard names none. */
#define REFUSED(call) \
    do { \
        if ((call) == MPI_SUCCESS) failed(__FILE__, __LINE__, "%s succeeded", #call); \
    } while (0)

static inline void start(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
}

static inline int verdict(void) {
    if (failures == 0 && rank <= 0) printf(" ok\n");
    if (failures > MOST_LINES) fprintf(stderr, "rank %d: %d failures in all\n", rank, failures);
    fflush(stdout);
    return failures != 0;
}

static inline int finish(void) {
    MPI_Finalize();
    return verdict();
}

/* A byte that depends on its place and on a seed, and repeats with no power of two. */
static inline unsigned char byte_at(size_t place, unsigned seed) {
    return (unsigned char)((place * 131 + place / 251 + seed * 7919u) >> 1);
}

static inline void fill(void *buffer, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++) ((unsigned char *)buffer)[i] = byte_at(i, seed);
}

/* The place of the first wrong byte, or -1. */
static inline long wrong(const void *buffer, size_t bytes, unsigned seed) {
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)buffer)[i] != byte_at(i, seed)) return (long)i;
    return -1;
}

static inline void *allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "rank %d: out of memory for %zu bytes\n", rank, bytes);
        abort();
    }
    return memory;
}

/* MPI_Get_count as a value. */
static inline int count_of(const MPI_Status *status, MPI_Datatype type) {
    int count = -12345;
    MPI_Get_count(status, type, &count);
    return count;
}

#endif
