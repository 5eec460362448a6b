/* A tool of the profiling interface: it is preloaded, counts the program's calls, and prints the counts when MPI ends. It is built for
 * each ABI, by the ABI's own mpi.h. A call that the library makes to itself must not reach it. */
#include <mpi.h>
#include <stdio.h>

enum { INIT, SEND, RECV, ISEND, IRECV, WAITALL, BARRIER, FINALIZE, KINDS };

static int calls[KINDS];

/* MPI_##NAME counts and calls PMPI_##NAME. */
#define WRAP(NAME, KIND, PARAMETERS, ARGUMENTS) \
    int PMPI_##NAME PARAMETERS;                 \
    int MPI_##NAME PARAMETERS {                 \
        calls[KIND]++;                          \
        return PMPI_##NAME ARGUMENTS;           \
    }

WRAP(Init, INIT, (int *argc, char ***argv), (argc, argv))
WRAP(Send, SEND, (const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm), (buffer, count, type, to, tag, comm))
WRAP(Recv, RECV, (void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
     (buffer, count, type, from, tag, comm, status))
WRAP(Isend, ISEND, (const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
     (buffer, count, type, to, tag, comm, request))
WRAP(Irecv, IRECV, (void *buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
     (buffer, count, type, from, tag, comm, request))
WRAP(Waitall, WAITALL, (int count, MPI_Request *requests, MPI_Status *statuses), (count, requests, statuses))
WRAP(Barrier, BARRIER, (MPI_Comm comm), (comm))

int PMPI_Finalize(void);

int MPI_Finalize(void) {
    int code = PMPI_Finalize();
    calls[FINALIZE]++;
    printf("calls");
    for (int kind = 0; kind < KINDS; kind++) printf(" %d", calls[kind]);
    puts("");
    return code;
}
