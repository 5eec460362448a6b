! The part of the ABI of MPICH 4 and 5 that program.f90 needs, in free form.
  integer, parameter :: MPI_SUCCESS = 0
  integer, parameter :: MPI_SOURCE = 3
  integer, parameter :: MPI_TAG = 4
  integer, parameter :: MPI_STATUS_SIZE = 5
  integer, parameter :: MPI_ERR_TAG = 4
  integer, parameter :: MPI_ERR_COMM = 5
  integer, parameter :: MPI_ERRORS_RETURN = 1409286145
  integer, parameter :: MPI_SUM = 1476395011
  integer, parameter :: MPI_COMM_WORLD = 1140850688
  integer, parameter :: MPI_COMM_NULL = 67108864
  integer, parameter :: MPI_FILE_NULL = 0
  integer, parameter :: MPI_OP_NULL = 402653184
  integer, parameter :: MPI_DATATYPE_NULL = 201326592
  integer, parameter :: MPI_REQUEST_NULL = 738197504
  integer, parameter :: MPI_INFO_NULL = 469762048
  integer, parameter :: MPI_TAG_UB = 1681915906
  integer, parameter :: MPI_MAX_ERROR_STRING = 511
  integer, parameter :: MPI_MAX_OBJECT_NAME = 127
  integer, parameter :: MPI_KEYVAL_INVALID = 603979776
  integer, parameter :: MPI_ANY_SOURCE = -2
  integer, parameter :: MPI_ANY_TAG = -1
  integer, parameter :: MPI_INTEGER = 1275069467
  integer, parameter :: MPI_MODE_RDWR = 8
  integer, parameter :: MPI_MODE_CREATE = 1
  integer, parameter :: MPI_MODE_DELETE_ON_CLOSE = 16
  integer, parameter :: MPI_ADDRESS_KIND = 8, MPI_OFFSET_KIND = 8
  integer :: MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
  common /MPIPRIV1/ MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
  integer :: MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1), MPI_ERRCODES_IGNORE(1)
  common /MPIPRIV2/ MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
  integer :: MPI_UNWEIGHTED(1), MPI_WEIGHTS_EMPTY(1)
  common /MPIFCMB5/ MPI_UNWEIGHTED
  common /MPIFCMB9/ MPI_WEIGHTS_EMPTY
  save /MPIPRIV1/, /MPIPRIV2/, /MPIFCMB5/, /MPIFCMB9/
  external :: MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN
  double precision, external :: MPI_Wtime
