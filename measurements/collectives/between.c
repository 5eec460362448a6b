/* Times collective operations between two groups of equal size: the lower and the upper half of the ranks.
 *
 *     between SECONDS SIZE...
 *
 * A line has the operation, the bytes of a vector or block, and the microseconds of one operation on the slowest rank. Broadcasts
 * alternate between the groups, so that no root runs ahead. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm between;
static int low, rank, remote;
static char *out, *in;

static void bcast(int bytes)
{
    for (int from_low = 1; from_low >= 0; from_low--) {
        int root = from_low != low ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
        MPI_Bcast(out, bytes, MPI_BYTE, root, between);
    }
}

static void allreduce(int bytes)
{
    MPI_Allreduce(out, in, bytes / 4, MPI_INT, MPI_SUM, between);
}

static void alltoall(int bytes)
{
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, between);
}

static void allgather(int bytes)
{
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, between);
}

static void barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(between);
}

static const struct operation {
    const char *name;
    void (*run)(int bytes);
    /* Operations in one run. */
    int count;
} operations[] = {{"bcast", bcast, 2}, {"allreduce", allreduce, 1}, {"alltoall", alltoall, 1}, {"allgather", allgather, 1}, {"barrier", barrier, 1}};

/* The seconds of `runs` runs on the slowest rank. */
static double seconds(const struct operation *of, int bytes, int runs)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int run = 0; run < runs; run++)
        of->run(bytes);
    double own = MPI_Wtime() - begun, slowest;
    MPI_Allreduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    int world, size;
    MPI_Comm half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    low = world < size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, low, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, low ? size / 2 : 0, 1, &between);
    MPI_Comm_rank(between, &rank);
    MPI_Comm_remote_size(between, &remote);
    double limit = atof(argv[1]);
    for (int at = 2; at < argc; at++) {
        int bytes = atoi(argv[at]);
        out = malloc((size_t)bytes * remote + 1);
        in = malloc((size_t)bytes * remote + 1);
        memset(out, 1, (size_t)bytes * remote);
        memset(in, 2, (size_t)bytes * remote);
        for (size_t of = 0; of < sizeof operations / sizeof *operations; of++) {
            const struct operation *operation = &operations[of];
            seconds(operation, bytes, 20);
            double one = seconds(operation, bytes, 20) / 20;
            int runs = (int)(limit / one);
            if (runs < 20)
                runs = 20;
            double time = seconds(operation, bytes, runs) / runs / operation->count;
            if (world == 0)
                printf("%s %d %.3f\n", operation->name, bytes, time * 1e6);
        }
        free(out);
        free(in);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return 0;
}
