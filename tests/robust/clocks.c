// Reads every clock around messages, and sleeps and waits by them, for a test of virtual time. It prints one line for each span of
// time in nanoseconds, and ends with status 1 where a wait behaves as no clock allows.
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CLOCKS = 7, MESSAGES = 100, SIZE = 65536 };
static const clockid_t CLOCK[CLOCKS] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                                        CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
static const char *NAME[CLOCKS] = {"REALTIME", "MONOTONIC", "MONOTONIC_RAW", "REALTIME_COARSE", "MONOTONIC_COARSE",
                                   "BOOTTIME", "TAI"};
static int rank;

static long long nanos(clockid_t clock) {
    struct timespec now;
    if (clock_gettime(clock, &now)) perror("clock_gettime"), exit(1);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static struct timespec later(clockid_t clock, long long span) {
    long long at = nanos(clock) + span;
    return (struct timespec){at / 1000000000, at % 1000000000};
}

static void say(const char *what, long long span) {
    if (!rank) printf("%s %lld\n", what, span);
}

static void must(int holds, const char *what) {
    if (!holds) fprintf(stderr, "%s: it did not hold\n", what), exit(1);
}

static void messages(void) {
    static char buffer[SIZE];
    for (int at = 0; at < MESSAGES; at++) {
        if (rank == 0) MPI_Send(buffer, SIZE, MPI_CHAR, 1, 0, MPI_COMM_WORLD), MPI_Recv(buffer, SIZE, MPI_CHAR, 1, 0, MPI_COMM_WORLD, 0);
        if (rank == 1) MPI_Recv(buffer, SIZE, MPI_CHAR, 0, 0, MPI_COMM_WORLD, 0), MPI_Send(buffer, SIZE, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

static void around_messages(void) {
    long long before[CLOCKS];
    struct timeval day[2];
    struct timespec got[2];
    double wtime = MPI_Wtime();
    time_t date = time(0);
    gettimeofday(&day[0], 0);
    must(timespec_get(&got[0], TIME_UTC) == TIME_UTC, "timespec_get");
    for (int at = 0; at < CLOCKS; at++) before[at] = nanos(CLOCK[at]);
    messages();
    for (int at = 0; at < CLOCKS; at++) say(NAME[at], nanos(CLOCK[at]) - before[at]);
    timespec_get(&got[1], TIME_UTC);
    gettimeofday(&day[1], 0);
    say("timespec_get", (got[1].tv_sec - got[0].tv_sec) * 1000000000LL + got[1].tv_nsec - got[0].tv_nsec);
    say("gettimeofday", (day[1].tv_sec - day[0].tv_sec) * 1000000000LL + (day[1].tv_usec - day[0].tv_usec) * 1000LL);
    say("time", (time(0) - date) * 1000000000LL);
    say("MPI_Wtime", (MPI_Wtime() - wtime) * 1e9 + 0.5);
    say("date", date);
}

// Clocks of processor time, by constants and by negative numbers, go on while the virtual ones hardly do.
static void processor_time(void) {
    clockid_t own;
    must(!clock_getcpuclockid(0, &own) && own < 0, "clock_getcpuclockid");
    long long process = nanos(CLOCK_PROCESS_CPUTIME_ID), thread = nanos(CLOCK_THREAD_CPUTIME_ID), by_number = nanos(own);
    while (nanos(CLOCK_PROCESS_CPUTIME_ID) - process < 20000000) {}
    must(nanos(CLOCK_THREAD_CPUTIME_ID) - thread > 10000000, "the thread's processor time goes on");
    must(nanos(own) - by_number > 10000000, "the processor time of a clock with a number goes on");
}

static void deadlines(void) {
    enum { SPAN = 2000000 };
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, held = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t by_date = PTHREAD_COND_INITIALIZER, monotonic;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic, &attributes);
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&held);
    sem_t none;
    sem_init(&none, 0, 0);
    long long start = nanos(CLOCK_MONOTONIC);
    struct timespec until = later(CLOCK_REALTIME, SPAN);
    must(pthread_cond_timedwait(&by_date, &mutex, &until) == ETIMEDOUT, "pthread_cond_timedwait");
    must(nanos(CLOCK_REALTIME) >= until.tv_sec * 1000000000LL + until.tv_nsec, "its deadline has passed");
    until = later(CLOCK_MONOTONIC, SPAN);
    must(pthread_cond_timedwait(&monotonic, &mutex, &until) == ETIMEDOUT, "pthread_cond_timedwait, monotonic");
    must(nanos(CLOCK_MONOTONIC) >= until.tv_sec * 1000000000LL + until.tv_nsec, "its deadline has passed");
    until = later(CLOCK_MONOTONIC, SPAN);
    must(pthread_cond_clockwait(&by_date, &mutex, CLOCK_MONOTONIC, &until) == ETIMEDOUT, "pthread_cond_clockwait");
    until = later(CLOCK_REALTIME, SPAN);
    must(pthread_mutex_timedlock(&held, &until) == ETIMEDOUT, "pthread_mutex_timedlock");
    until = later(CLOCK_REALTIME, SPAN);
    must(sem_timedwait(&none, &until) == -1 && errno == ETIMEDOUT, "sem_timedwait");
    until = later(CLOCK_MONOTONIC, SPAN);
    must(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0) == 0, "clock_nanosleep");
    until = (struct timespec){0, SPAN};
    must(nanosleep(&until, 0) == 0 && usleep(SPAN / 1000) == 0, "nanosleep, usleep");
    must(poll(0, 0, SPAN / 1000000) == 0, "poll");
    struct timeval span = {0, SPAN / 1000};
    must(select(0, 0, 0, 0, &span) == 0, "select");
    long long passed = nanos(CLOCK_MONOTONIC) - start;
    must(passed >= 10 * SPAN, "ten waits take ten spans");
    say("deadlines", passed);
    until = (struct timespec){1, -1};
    must(pthread_cond_timedwait(&by_date, &mutex, &until) == EINVAL, "an invalid deadline");
}

static void *other_thread(void *unused) {
    // The loop ends although the first thread, which has the virtual time, waits for it.
    long long start = nanos(CLOCK_MONOTONIC), last = start;
    while (last - start < 3000000) {
        long long now = nanos(CLOCK_MONOTONIC);
        must(now > last, "time goes on in another thread");
        last = now;
    }
    struct timespec until = later(CLOCK_REALTIME, 3000000);
    must(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, 0) == 0, "clock_nanosleep in another thread");
    must(nanos(CLOCK_REALTIME) >= until.tv_sec * 1000000000LL + until.tv_nsec, "its deadline has passed");
    return unused;
}

int main(int argc, char **argv) {
    long long first = nanos(CLOCK_MONOTONIC), date = nanos(CLOCK_REALTIME);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    must(nanos(CLOCK_MONOTONIC) > first && nanos(CLOCK_REALTIME) > date, "time goes on from before MPI");
    around_messages();
    if (argc > 1 && !strcmp(argv[1], "waits")) {
        processor_time();
        deadlines();
        pthread_t thread;
        pthread_create(&thread, 0, other_thread, 0);
        pthread_join(thread, 0);
        // A child has no rank: it has a clock all the same.
        long long before = nanos(CLOCK_MONOTONIC);
        pid_t child = fork();
        if (!child) _exit(nanos(CLOCK_MONOTONIC) > before && nanos(CLOCK_MONOTONIC) < before + 60000000000LL ? 0 : 1);
        int status = 1;
        waitpid(child, &status, 0);
        must(status == 0, "a child's clock goes on");
    }
    if (argc > 1 && !strcmp(argv[1], "polls")) {
        // A program that works until its clock has advanced.
        long long start = nanos(CLOCK_MONOTONIC), readings = 0;
        while (nanos(CLOCK_MONOTONIC) - start < 200000) readings++;
        say("readings", readings);
    }
    long long last = nanos(CLOCK_MONOTONIC);
    MPI_Finalize();
    long long after = nanos(CLOCK_MONOTONIC);
    must(after >= last && nanos(CLOCK_MONOTONIC) > after, "time goes on after MPI");
    say("whole", after - first);
    return 0;
}
