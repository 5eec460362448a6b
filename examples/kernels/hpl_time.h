/* The time of the computing that a skeleton does not do. It passes before the next MPI call: on a modelled machine in
   virtual time and no other, elsewhere in sleep. */
#ifndef HPL_TIME_H
#define HPL_TIME_H

#include <math.h>
#include <time.h>

/* Exists on modelled machines: advances virtual time. */
extern void fishplate_pass(unsigned long long nanos) __attribute__((weak));

/* Kinds of computing, each with a rate in 10^9 operations per second. At a rate of 0 it takes no time. */
enum { PANEL, TRIANGLE, PRODUCT, KINDS };
static double rates[KINDS];

/* Nanoseconds of computing until now, and those that have passed. */
static double owed;
static long long passed;

/* Computing that is not done takes time. One operation at 10^9 a second takes a nanosecond. */
static void charge(int kind, double operations) {
  if (rates[kind] > 0) owed += operations / rates[kind];
}

static void pass_time(void) {
  enum { SECOND = 1000000000 };
  long long nanos = llround(owed) - passed;
  if (nanos <= 0) return;
  passed += nanos;
  if (fishplate_pass) {
    fishplate_pass(nanos);
    return;
  }
  struct timespec span = {nanos / SECOND, nanos % SECOND};
  nanosleep(&span, NULL);
}

/* Makes an MPI call, after the computing before it. */
#define TIMED(call, ...) (pass_time(), call(__VA_ARGS__))

#endif
