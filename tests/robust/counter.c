// Reads the processor's counter where it follows virtual time: around messages, in threads, with every signal blocked, beside a
// handler of the program for the same signal, and in programs that it starts. It ends with status 1 where that does not work.
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <x86intrin.h>

extern char **environ;
static sigjmp_buf place;

static void must(int holds, const char *what) {
    if (!holds) fprintf(stderr, "%s: it did not hold\n", what), exit(1);
}

static void on_fault(int signal) { siglongjmp(place, signal); }

static unsigned long long reading(void) {
    unsigned processor = 1;
    unsigned long long first = __rdtsc(), second = __rdtscp(&processor);
    must(first < second && processor == 0, "the counter goes on");
    return second;
}

static void *in_thread(void *_) {
    must(reading() < 60000000000ULL, "a thread has the counter");
    return _;
}

static int ended(pid_t child) {
    int status = 1;
    must(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

// New programs have the processor's counter, by whichever function they start.
static void starts(void) {
    pid_t child = vfork();
    if (!child) execl("/bin/true", "true", (char *)0), _exit(1);
    must(ended(child) == 0, "execl");
    child = vfork();
    if (!child) execlp("sh", "sh", "-c", "exit $0", "0", "1", "2", "3", "4", "5", (char *)0), _exit(1);
    must(ended(child) == 0, "execlp");
    child = fork();
    if (!child) execle("/bin/true", "true", (char *)0, environ), _exit(1);
    must(ended(child) == 0, "execle");
    must(posix_spawn(&child, "/bin/true", 0, 0, (char *[]){"true", 0}, environ) == 0 && ended(child) == 0, "posix_spawn");
    must(system("true") == 0, "system");
    FILE *pipe = popen("true", "r");
    must(pipe && pclose(pipe) == 0, "popen");
    child = fork();
    if (!child) _exit(__rdtsc() > 60000000000ULL ? 0 : 1);
    must(ended(child) == 0, "a child has the processor's counter");
}

int main(int argc, char **argv) {
    struct sigaction action = {.sa_handler = on_fault}, before;
    sigset_t all;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned long long start = reading();
    double wtime = MPI_Wtime();
    for (int at = 0; at < 100; at++) MPI_Barrier(MPI_COMM_WORLD);
    wtime = MPI_Wtime() - wtime;
    if (!rank) printf("MPI_Wtime %.0f\ncounter %llu\n", wtime * 1e9, reading() - start);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, 0);
    reading();
    pthread_t thread;
    pthread_create(&thread, 0, in_thread, 0);
    pthread_join(thread, 0);
    sigaction(SIGSEGV, &action, 0);
    if (!sigsetjmp(place, 1)) {
        *(volatile int *)8 = 1;
        must(0, "the program's handler gets other faults");
    }
    reading();
    must(sigaction(SIGSEGV, 0, &before) == 0 && before.sa_handler == on_fault, "the program sees its own handler");
    must(signal(SIGSEGV, SIG_DFL) == on_fault, "signal gives the handler before");
    if (!rank) starts();
    reading();
    MPI_Finalize();
    must(__rdtsc() > 60000000000ULL, "after MPI the counter is the processor's");
    return 0;
}
