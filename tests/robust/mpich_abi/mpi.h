/* What the tests' programs need of MPICH's ABI, by the numbers of MPICH 4 and 5. It compiles with MPICH's own mpi.h too. */
#include <stddef.h>
#include <stdint.h>

typedef int MPI_Comm, MPI_Datatype, MPI_Op, MPI_Request, MPI_Group, MPI_Errhandler, MPI_Info;
typedef long MPI_Aint;
typedef struct MPI_Status {
    int count_lo, count_hi_and_cancelled, MPI_SOURCE, MPI_TAG, MPI_ERROR;
} MPI_Status;
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_Comm_errhandler_function(MPI_Comm *, int *, ...);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);

#define MPI_COMM_NULL 0x04000000
#define MPI_COMM_WORLD 0x44000000
#define MPI_COMM_SELF 0x44000001
#define MPI_REQUEST_NULL 0x2c000000
#define MPI_DATATYPE_NULL 0x0c000000
#define MPI_CHAR 0x4c000101
#define MPI_BYTE 0x4c00010d
#define MPI_INT 0x4c000405
#define MPI_INT64_T 0x4c00083a
#define MPI_DOUBLE_INT ((int)0x8c000001)
#define MPI_SUM 0x58000003
#define MPI_MAXLOC 0x5800000c
#define MPI_ERRORS_RETURN 0x54000001
#define MPI_INFO_NULL 0x1c000000
#define MPI_IN_PLACE ((void *)-1)
#define MPI_STATUS_IGNORE ((MPI_Status *)1)
#define MPI_STATUSES_IGNORE ((MPI_Status *)1)
#define MPI_PROC_NULL (-1)
#define MPI_ANY_SOURCE (-2)
#define MPI_ANY_TAG (-1)
#define MPI_UNDEFINED (-32766)
#define MPI_BSEND_OVERHEAD 96
#define MPI_CONGRUENT 1
#define MPI_THREAD_MULTIPLE 3
#define MPI_COMM_TYPE_SHARED 1
#define MPI_ORDER_C 56
#define MPI_COMBINER_SUBARRAY 13
#define MPI_CART 2
#define MPI_TAG_UB 0x64400001
#define MPI_LASTUSEDCODE 0x6440000b
#define MPI_SUCCESS 0
#define MPI_ERR_RANK 6
#define MPI_ERR_TRUNCATE 14
#define MPI_ERR_COMM 5
#define MPI_ERR_LASTCODE 0x3fffffff
#define MPI_MAX_PROCESSOR_NAME 128
extern int *const MPI_UNWEIGHTED;

int MPI_Init(int *, char ***);
int MPI_Init_thread(int *, char ***, int, int *);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm, int *);
int MPI_Comm_size(MPI_Comm, int *);
int MPI_Comm_dup(MPI_Comm, MPI_Comm *);
int MPI_Comm_free(MPI_Comm *);
int MPI_Comm_compare(MPI_Comm, MPI_Comm, int *);
int MPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm *);
int MPI_Comm_group(MPI_Comm, MPI_Group *);
int MPI_Group_translate_ranks(MPI_Group, int, const int *, MPI_Group, int *);
int MPI_Group_free(MPI_Group *);
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function *, MPI_Comm_delete_attr_function *, int *, void *);
int MPI_Comm_free_keyval(int *);
int MPI_Comm_set_attr(MPI_Comm, int, void *);
int MPI_Comm_get_attr(MPI_Comm, int, void *, int *);
int MPI_Comm_create_errhandler(MPI_Comm_errhandler_function *, MPI_Errhandler *);
int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int MPI_Comm_get_errhandler(MPI_Comm, MPI_Errhandler *);
int MPI_Errhandler_free(MPI_Errhandler *);
int MPI_Error_class(int, int *);
int MPI_Add_error_class(int *);
int MPI_Add_error_code(int, int *);
int MPI_Send(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Sendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Sendrecv_replace(void *, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Status *);
int MPI_Iprobe(int, int, MPI_Comm, int *, MPI_Status *);
int MPI_Bcast(void *, int, MPI_Datatype, int, MPI_Comm);
int MPI_Bsend(const void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Buffer_attach(void *, int);
int MPI_Buffer_detach(void *, int *);
int MPI_Isend(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Recv_init(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
int MPI_Start(MPI_Request *);
int MPI_Request_free(MPI_Request *);
int MPI_Cancel(MPI_Request *);
int MPI_Wait(MPI_Request *, MPI_Status *);
int MPI_Waitall(int, MPI_Request *, MPI_Status *);
int MPI_Test(MPI_Request *, int *, MPI_Status *);
int MPI_Test_cancelled(const MPI_Status *, int *);
int MPI_Get_count(const MPI_Status *, MPI_Datatype, int *);
int MPI_Op_create(MPI_User_function *, int, MPI_Op *);
int MPI_Op_free(MPI_Op *);
int MPI_Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Ialltoallw(const void *, const int *, const int *, const MPI_Datatype *, void *, const int *, const int *, const MPI_Datatype *,
                   MPI_Comm, MPI_Request *);
int MPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype *);
int MPI_Type_create_subarray(int, const int *, const int *, const int *, int, MPI_Datatype, MPI_Datatype *);
int MPI_Type_get_envelope(MPI_Datatype, int *, int *, int *, int *);
int MPI_Type_get_contents(MPI_Datatype, int, int, int, int *, MPI_Aint *, MPI_Datatype *);
int MPI_Type_commit(MPI_Datatype *);
int MPI_Type_free(MPI_Datatype *);
int MPI_Type_size(MPI_Datatype, int *);
int MPI_Cart_create(MPI_Comm, int, const int *, const int *, int, MPI_Comm *);
int MPI_Cart_shift(MPI_Comm, int, int, int *, int *);
int MPI_Topo_test(MPI_Comm, int *);
int MPI_Dist_graph_create_adjacent(MPI_Comm, int, const int *, const int *, int, const int *, const int *, MPI_Info, int, MPI_Comm *);
int MPI_Dist_graph_neighbors_count(MPI_Comm, int *, int *, int *);
int MPI_Get_processor_name(char *, int *);
int MPI_Barrier(MPI_Comm);
int PMPI_Barrier(MPI_Comm);
