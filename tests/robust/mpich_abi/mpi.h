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
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);

#define MPI_COMM_NULL 0x04000000
#define MPI_COMM_WORLD 0x44000000
#define MPI_COMM_SELF 0x44000001
#define MPI_REQUEST_NULL 0x2c000000
#define MPI_DATATYPE_NULL 0x0c000000
#define MPI_CHAR 0x4c000101
#define MPI_LB 0x4c000010
#define MPI_UB 0x4c000011
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
#define MPI_ORDER_FORTRAN 57
#define MPI_DISTRIBUTE_BLOCK 121
#define MPI_DISTRIBUTE_CYCLIC 122
#define MPI_DISTRIBUTE_DFLT_DARG (-49767)
#define MPI_COMBINER_DARRAY 14
#define MPI_COMBINER_F90_REAL 15
#define MPI_ERR_IO 32
#define MPI_CART 2
#define MPI_TAG_UB 0x64400001
#define MPI_LASTUSEDCODE 0x6440000b
#define MPI_SUCCESS 0
#define MPI_ERR_RANK 6
#define MPI_ERR_TRUNCATE 14
#define MPI_ERR_COMM 5
#define MPI_ERR_LASTCODE 0x3fffffff
#define MPI_MAX_PROCESSOR_NAME 128
#define MPI_MAX_OBJECT_NAME 128
#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
extern int *const MPI_UNWEIGHTED;

MPI_Comm_copy_attr_function MPIR_Dup_fn;
#define MPI_COMM_DUP_FN MPIR_Dup_fn
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)

#include "procedures.h"
