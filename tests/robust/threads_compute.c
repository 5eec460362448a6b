/* Two threads that compute outside MPI. Says `ready` when both do. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *compute(void *nothing) {
    (void)nothing;
    for (volatile long i = 0;; i++) {}
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t thread;
    MPI_Init(&argc, &argv);
    if (pthread_create(&thread, NULL, compute, NULL)) abort();
    if (write(1, "ready\n", 6) != 6) abort();
    compute(NULL);
    MPI_Finalize();
    return 0;
}
