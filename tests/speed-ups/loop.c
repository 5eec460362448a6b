/* Steps of computing and one exchange, whose times add up by hand. Arguments: exchange, steps, microseconds of computing, bytes.

   sum        MPI_Allreduce of a double
   transpose  MPI_Alltoall, so many bytes to each rank
   halo       so many bytes to both neighbours of a ring, all at once
   master     tasks of so many microseconds from the first rank to whoever is free, 8 bytes there and back */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int rank, size;

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void compute(double microseconds) {
    for (double end = processor_time() + microseconds; processor_time() < end;);
}

static void halo(char *data, int bytes) {
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Request requests[4];
    MPI_Irecv(data, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data + bytes, bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(data + 2L * bytes, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(data + 3L * bytes, bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void master(int tasks) {
    enum { TASK, END };
    double value = 0;
    int busy = 0;
    for (int worker = 1; worker < size; worker++, busy++) MPI_Send(&value, 1, MPI_DOUBLE, worker, TASK, MPI_COMM_WORLD);
    for (int handed = busy; busy > 0;) {
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TASK, MPI_COMM_WORLD, &status);
        int tag = handed < tasks ? TASK : END;
        MPI_Send(&value, 1, MPI_DOUBLE, status.MPI_SOURCE, tag, MPI_COMM_WORLD);
        if (tag == TASK) handed++;
        else busy--;
    }
}

static void worker(double microseconds) {
    double value;
    for (;;) {
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        if (status.MPI_TAG) return;
        compute(microseconds);
        MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) {
        fprintf(stderr, "usage: loop sum|transpose|halo|master STEPS MICROSECONDS BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *exchange = argv[1];
    int steps = atoi(argv[2]), bytes = atoi(argv[4]), parts = size > 4 ? size : 4;
    double microseconds = atof(argv[3]), one = 1, all;
    char *data = malloc((long)parts * bytes), *other = malloc((long)parts * bytes);
    memset(data, 1, (long)parts * bytes);
    memset(other, 1, (long)parts * bytes);
    if (!strcmp(exchange, "master")) {
        if (rank) worker(microseconds);
        else master(steps);
    } else
        for (int step = 0; step < steps; step++) {
            compute(microseconds);
            if (!strcmp(exchange, "sum")) MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
            else if (!strcmp(exchange, "transpose")) MPI_Alltoall(data, bytes, MPI_BYTE, other, bytes, MPI_BYTE, MPI_COMM_WORLD);
            else halo(data, bytes);
        }
    MPI_Finalize();
    return 0;
}
