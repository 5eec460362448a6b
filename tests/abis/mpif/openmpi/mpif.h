! The part of the ABI of Open MPI 4 and 5 that program.f90 needs, in free form.
  integer, parameter :: MPI_SUCCESS = 0
  integer, parameter :: MPI_SOURCE = 1
  integer, parameter :: MPI_TAG = 2
  integer, parameter :: MPI_STATUS_SIZE = 6
  integer, parameter :: MPI_ERR_TAG = 4
  integer, parameter :: MPI_ERR_COMM = 5
  integer, parameter :: MPI_ERRORS_RETURN = 2
  integer, parameter :: MPI_SUM = 3
  integer, parameter :: MPI_COMM_WORLD = 0
  integer, parameter :: MPI_COMM_NULL = 2
  integer, parameter :: MPI_FILE_NULL = 0
  integer, parameter :: MPI_OP_NULL = 0
  integer, parameter :: MPI_DATATYPE_NULL = 0
  integer, parameter :: MPI_REQUEST_NULL = 0
  integer, parameter :: MPI_INFO_NULL = 0
  integer, parameter :: MPI_TAG_UB = 0
  integer, parameter :: MPI_MAX_ERROR_STRING = 255
  integer, parameter :: MPI_MAX_OBJECT_NAME = 63
  integer, parameter :: MPI_KEYVAL_INVALID = -1
  integer, parameter :: MPI_ANY_SOURCE = -1
  integer, parameter :: MPI_ANY_TAG = -1
  integer, parameter :: MPI_INTEGER = 7
  integer, parameter :: MPI_MODE_RDWR = 8
  integer, parameter :: MPI_MODE_CREATE = 1
  integer, parameter :: MPI_MODE_DELETE_ON_CLOSE = 16
  integer, parameter :: MPI_ADDRESS_KIND = 8, MPI_OFFSET_KIND = 8
  integer :: MPI_BOTTOM
  common /MPI_FORTRAN_BOTTOM/ MPI_BOTTOM
  integer :: MPI_IN_PLACE
  common /MPI_FORTRAN_IN_PLACE/ MPI_IN_PLACE
  integer :: MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
  common /MPI_FORTRAN_STATUS_IGNORE/ MPI_STATUS_IGNORE
  integer :: MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1)
  common /MPI_FORTRAN_STATUSES_IGNORE/ MPI_STATUSES_IGNORE
  integer :: MPI_UNWEIGHTED(1)
  common /MPI_FORTRAN_UNWEIGHTED/ MPI_UNWEIGHTED
  integer :: MPI_WEIGHTS_EMPTY(1)
  common /MPI_FORTRAN_WEIGHTS_EMPTY/ MPI_WEIGHTS_EMPTY
  external :: MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN
  double precision, external :: MPI_Wtime
