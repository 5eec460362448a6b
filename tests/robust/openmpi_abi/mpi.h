/* What the tests' programs need of Open MPI's ABI, by the facts of Open MPI 4 and 5. They compile with Open MPI's own mpi.h too. */
#include <stddef.h>
#include <stdint.h>

#define OPEN_MPI 1

/* Handles are addresses; programs never see what lies there. The sizes are the ABI's. */
typedef struct ompi_communicator_t *MPI_Comm;
typedef struct ompi_datatype_t *MPI_Datatype;
typedef struct ompi_errhandler_t *MPI_Errhandler;
typedef struct ompi_group_t *MPI_Group;
typedef struct ompi_info_t *MPI_Info;
typedef struct ompi_op_t *MPI_Op;
typedef struct ompi_request_t *MPI_Request;
typedef ptrdiff_t MPI_Aint;
typedef struct MPI_Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR, _cancelled;
    size_t _ucount;
} MPI_Status;
typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef void MPI_Comm_errhandler_function(MPI_Comm *, int *, ...);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);

#define OBJECT(name, size) extern struct name##_object { char bytes[size]; } name
OBJECT(ompi_mpi_comm_null, 0x200);
OBJECT(ompi_mpi_comm_world, 0x200);
OBJECT(ompi_mpi_comm_self, 0x200);
OBJECT(ompi_request_null, 0x100);
OBJECT(ompi_mpi_datatype_null, 0x200);
OBJECT(ompi_mpi_char, 0x200);
OBJECT(ompi_mpi_lb, 0x200);
OBJECT(ompi_mpi_ub, 0x200);
OBJECT(ompi_mpi_byte, 0x200);
OBJECT(ompi_mpi_int, 0x200);
OBJECT(ompi_mpi_int64_t, 0x200);
OBJECT(ompi_mpi_double_int, 0x200);
OBJECT(ompi_mpi_op_sum, 0x800);
OBJECT(ompi_mpi_op_maxloc, 0x800);
OBJECT(ompi_mpi_errors_return, 0x400);
OBJECT(ompi_mpi_info_null, 0x100);

#define MPI_COMM_NULL ((MPI_Comm)(void *)&ompi_mpi_comm_null)
#define MPI_COMM_WORLD ((MPI_Comm)(void *)&ompi_mpi_comm_world)
#define MPI_COMM_SELF ((MPI_Comm)(void *)&ompi_mpi_comm_self)
#define MPI_REQUEST_NULL ((MPI_Request)(void *)&ompi_request_null)
#define MPI_DATATYPE_NULL ((MPI_Datatype)(void *)&ompi_mpi_datatype_null)
#define MPI_LB ((MPI_Datatype)(void *)&ompi_mpi_lb)
#define MPI_UB ((MPI_Datatype)(void *)&ompi_mpi_ub)
#define MPI_CHAR ((MPI_Datatype)(void *)&ompi_mpi_char)
#define MPI_BYTE ((MPI_Datatype)(void *)&ompi_mpi_byte)
#define MPI_INT ((MPI_Datatype)(void *)&ompi_mpi_int)
#define MPI_INT64_T ((MPI_Datatype)(void *)&ompi_mpi_int64_t)
#define MPI_DOUBLE_INT ((MPI_Datatype)(void *)&ompi_mpi_double_int)
#define MPI_SUM ((MPI_Op)(void *)&ompi_mpi_op_sum)
#define MPI_MAXLOC ((MPI_Op)(void *)&ompi_mpi_op_maxloc)
#define MPI_ERRORS_RETURN ((MPI_Errhandler)(void *)&ompi_mpi_errors_return)
#define MPI_INFO_NULL ((MPI_Info)(void *)&ompi_mpi_info_null)
#define MPI_IN_PLACE ((void *)1)
#define MPI_STATUS_IGNORE ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE ((MPI_Status *)0)
#define MPI_UNWEIGHTED ((int *)2)
#define MPI_PROC_NULL (-2)
#define MPI_ANY_SOURCE (-1)
#define MPI_ANY_TAG (-1)
#define MPI_UNDEFINED (-32766)
#define MPI_BSEND_OVERHEAD 128
#define MPI_CONGRUENT 1
#define MPI_THREAD_MULTIPLE 3
#define MPI_COMM_TYPE_SHARED 0
#define MPI_ORDER_C 0
#define MPI_COMBINER_SUBARRAY 12
#define MPI_ORDER_FORTRAN 1
#define MPI_DISTRIBUTE_BLOCK 0
#define MPI_DISTRIBUTE_CYCLIC 1
#define MPI_DISTRIBUTE_DFLT_DARG (-1)
#define MPI_COMBINER_DARRAY 13
#define MPI_COMBINER_F90_REAL 14
#define MPI_ERR_IO 35
#define MPI_CART 1
#define MPI_TAG_UB 0
#define MPI_LASTUSEDCODE 5
#define MPI_SUCCESS 0
#define MPI_ERR_RANK 6
#define MPI_ERR_TRUNCATE 15
#define MPI_ERR_COMM 5
#define MPI_ERR_LASTCODE 92
#define MPI_MAX_PROCESSOR_NAME 256
#define MPI_MAX_OBJECT_NAME 64
#define MPI_MAX_ERROR_STRING 256
#define MPI_MAX_LIBRARY_VERSION_STRING 256
#define MPI_COMM_DUP_FN OMPI_C_MPI_COMM_DUP_FN
#define MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_COMM_NULL_DELETE_FN

MPI_Comm_copy_attr_function OMPI_C_MPI_COMM_DUP_FN;
MPI_Comm_delete_attr_function OMPI_C_MPI_COMM_NULL_DELETE_FN;

#include "../mpich_abi/procedures.h"
