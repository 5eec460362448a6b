/* A compute trace of a program that only pretends to compute: the file for `fishplate run --compute replay`.

   A rank's part has a line for each of its MPI calls with the nanoseconds of computing before it. The program walks
   through its steps for one rank after the other, without MPI: each call is noted instead of made. */
#ifndef HPL_TRACE_H
#define HPL_TRACE_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Kinds of computing, each with a rate in 10^9 operations per second. */
enum { PANEL, TRIANGLE, PRODUCT, KINDS };
static double rates[KINDS];

static struct {
  /* Calls are noted and not made. */
  bool on;
  FILE *file;
  /* The lines of the present rank. */
  char *text;
  size_t length, capacity, lines;
  /* Nanoseconds since the last call, and those already noted. */
  double clock;
  long long noted;
  /* Equal calls in a row that return without a result share a line. */
  const char *poll;
  long long poll_nanos, polls;
} trace;

/* Computing that is not done takes time. One operation at 10^9 a second takes a nanosecond. */
static void charge(int kind, double operations) {
  if (trace.on) trace.clock += operations / rates[kind];
}

static long long nanos_since_last(void) {
  long long now = llround(trace.clock), before = trace.noted;
  trace.noted = now;
  return now - before;
}

static void add_line(const char *name, long long nanos, long long times) {
  enum { LONGEST = 96 };
  if (trace.length + LONGEST > trace.capacity) {
    trace.capacity = 2 * trace.capacity + LONGEST;
    trace.text = realloc(trace.text, trace.capacity);
    if (!trace.text) {
      fprintf(stderr, "no memory for a compute trace of %zu lines\n", trace.lines);
      exit(2);
    }
  }
  char *end = trace.text + trace.length;
  int length = times ? snprintf(end, LONGEST, "%s %lld x%lld\n", name, nanos, times)
                     : snprintf(end, LONGEST, "%s %lld\n", name, nanos);
  trace.length += (size_t)length;
  trace.lines++;
}

static void close_polls(void) {
  if (trace.polls) add_line(trace.poll, trace.poll_nanos, trace.polls);
  trace.polls = trace.poll_nanos = 0;
}

/* Notes a call, if calls are noted. */
static bool noted(const char *name) {
  if (trace.on) {
    close_polls();
    add_line(name, nanos_since_last(), 0);
  }
  return trace.on;
}

/* Notes a call that returns without a result, if calls are noted. */
static bool noted_poll(const char *name) {
  if (trace.on) {
    if (trace.polls && strcmp(trace.poll, name) != 0) close_polls();
    trace.poll = name;
    trace.poll_nanos += nanos_since_last();
    trace.polls++;
  }
  return trace.on;
}

/* Makes an MPI call, or notes it. */
#define TRACED(call, ...) (noted(#call) ? MPI_SUCCESS : call(__VA_ARGS__))

static bool begin_trace(const char *file, const char *program, int ranks) {
  trace.file = fopen(file, "w");
  if (!trace.file) return false;
  trace.on = true;
  fprintf(trace.file,
          "# fishplate: what each rank computed before each of its calls, in nanoseconds\nversion 3\nprogram %s\nranks %d\n",
          program, ranks);
  return true;
}

static void write_rank(int rank) {
  close_polls();
  fprintf(trace.file, "rank %d calls %zu\n", rank, trace.lines);
  fwrite(trace.text, 1, trace.length, trace.file);
  trace.length = trace.lines = 0;
  trace.clock = 0;
  trace.noted = 0;
}

static bool end_trace(void) {
  fputs("end\n", trace.file);
  bool written = !ferror(trace.file);
  return fclose(trace.file) == 0 && written;
}

#endif
