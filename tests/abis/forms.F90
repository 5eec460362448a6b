! Procedures whose conversions differ between the ABIs, by mpif.h, by the module mpi (-DMODULE) and by mpi_f08 (-DF08), as the
! modules of another library have them. Every rank prints "passed".

#ifdef F08
#define HANDLE(class) type(class)
#define SOURCE(status) status%MPI_SOURCE
#define SOURCE_AT(statuses, at) statuses(at)%MPI_SOURCE
#define USE_MPI use mpi_f08
#elif defined(MODULE)
#define HANDLE(class) integer
#define SOURCE(status) status(MPI_SOURCE)
#define SOURCE_AT(statuses, at) statuses(MPI_SOURCE, at)
#define USE_MPI use mpi
#else
#define HANDLE(class) integer
#define SOURCE(status) status(MPI_SOURCE)
#define SOURCE_AT(statuses, at) statuses(MPI_SOURCE, at)
#define USE_MPI
#endif

module functions
  implicit none
  integer :: failures = 0, handled = 0
contains
  subroutine check(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (.not. is_right) then
      failures = failures + 1
      print '(2a)', 'wrong: ', what
    end if
  end subroutine check

#ifdef F08
  subroutine larger(in, inout, length, datatype)
    use mpi_f08
    use, intrinsic :: iso_c_binding
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: one(:), other(:)
    call c_f_pointer(in, one, [length])
    call c_f_pointer(inout, other, [length])
    call check(datatype == MPI_INTEGER, 'the datatype of a reduction')
    other = max(one, other)
  end subroutine larger

  subroutine handle(comm, code)
    use mpi_f08
    type(MPI_Comm) :: comm
    integer :: code
    call check(comm /= MPI_COMM_NULL, 'the communicator of an error')
    if (code /= MPI_SUCCESS) handled = handled + 1
  end subroutine handle
#else
  subroutine larger(in, inout, length, datatype)
    integer :: length, datatype
    integer :: in(length), inout(length)
    call check(datatype /= 0, 'the datatype of a reduction')
    inout = max(in, inout)
  end subroutine larger

  subroutine handle(comm, code)
    integer :: comm, code
    call check(comm /= -1, 'the communicator of an error')
    if (code /= 0) handled = handled + 1
  end subroutine handle
#endif
end module functions

program forms
  USE_MPI
  use functions
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#endif
  integer :: rank, ranks, left, right, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  left = modulo(rank - 1, ranks)
  right = modulo(rank + 1, ranks)
  call exchanges
  call reductions
  call memory
  call attributes
  call texts
  call errors
  call graph
  call sizes
#if defined(F08) || defined(MODULE)
  call pointers
#endif
  call MPI_Finalize(ierror)
  if (failures > 0) error stop 1
  print '(a)', 'passed'
contains
  subroutine exchanges
    integer :: values(2), got(2), number
    logical :: flag
    HANDLE(MPI_Request) :: requests(2)
#ifdef F08
    type(MPI_Status) :: status, statuses(2)
#else
    integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 2)
#endif
    values = [rank, 100 * rank]
    call MPI_Sendrecv(values, 2, MPI_INTEGER, right, 7, got, 2, MPI_INTEGER, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, status, ierror)
    call check(all(got == [left, 100 * left]) .and. SOURCE(status) == left, 'an exchange and its status')
    call MPI_Get_count(status, MPI_INTEGER, number, ierror)
    call check(number == 2, 'the count of a status')
    call MPI_Sendrecv(values, 2, MPI_INTEGER, left, 8, got, 2, MPI_INTEGER, right, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, &
                      ierror)
    call check(all(got == [right, 100 * right]), 'an exchange without a status')
    call MPI_Irecv(got, 2, MPI_INTEGER, left, 9, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(values, 2, MPI_INTEGER, right, 9, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, statuses, ierror)
    call check(SOURCE_AT(statuses, 1) == left .and. all(got == [left, 100 * left]), 'two requests and their statuses')
    call check(requests(1) == MPI_REQUEST_NULL .and. .not. requests(2) /= MPI_REQUEST_NULL, 'requests that are complete')
    call MPI_Irecv(got, 2, MPI_INTEGER, right, 10, MPI_COMM_WORLD, requests(1), ierror)
    call MPI_Isend(values, 2, MPI_INTEGER, left, 10, MPI_COMM_WORLD, requests(2), ierror)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierror)
    call check(all(got == [right, 100 * right]), 'two requests without statuses')
    call MPI_Iprobe(MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, flag, MPI_STATUS_IGNORE, ierror)
    call check(.not. flag, 'a logical')
  end subroutine exchanges

  subroutine reductions
    integer :: values(3), most
    HANDLE(MPI_Op) :: op
    values = [1, rank, 2 * rank]
    call MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call check(all(values == [ranks, ranks * (ranks - 1) / 2, ranks * (ranks - 1)]), 'a reduction in place')
    call MPI_Op_create(larger, .true., op, ierror)
    call MPI_Allreduce(rank, most, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
    call check(most == ranks - 1, 'a reduction of the program')
    call MPI_Op_free(op, ierror)
    call check(op == MPI_OP_NULL, 'an operation that is freed')
  end subroutine reductions

  subroutine memory
    ! Of a buffer at MPI_BOTTOM, the compiler learns nothing else.
    integer, volatile :: values(4)
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    HANDLE(MPI_Datatype) :: datatype
    integer :: column(9), part(5)
    values = [rank, -1, -1, rank + 1]
    call MPI_Get_address(values(1), places(1), ierror)
    call MPI_Get_address(values(4), places(2), ierror)
    call MPI_Type_create_hindexed(2, [1, 1], places, MPI_INTEGER, datatype, ierror)
    call MPI_Type_commit(datatype, ierror)
    call MPI_Bcast(MPI_BOTTOM, 1, datatype, 0, MPI_COMM_WORLD, ierror)
    call check(all(values == [0, -1, -1, 1]), 'addresses from MPI_BOTTOM')
    call MPI_Type_free(datatype, ierror)
    ! Marks of bounds, which the standard has no more.
    call MPI_Type_create_struct(3, [1, 1, 1], [-4_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND, 20_MPI_ADDRESS_KIND], &
                                [MPI_LB, MPI_INTEGER, MPI_UB], datatype, ierror)
    call MPI_Type_get_extent(datatype, places(1), places(2), ierror)
    call check(all(places == [-4, 24]), 'marks of bounds')
    call MPI_Type_free(datatype, ierror)
    column = -1
    column(1:9:2) = [1, 2, 3, 4, 5] * (rank + 1)
    call MPI_Sendrecv(column(1:9:2), 5, MPI_INTEGER, right, 12, part, 5, MPI_INTEGER, left, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE, &
                      ierror)
    call check(all(part == [1, 2, 3, 4, 5] * (left + 1)), 'a section')
  end subroutine memory

  subroutine attributes
    integer :: key
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    HANDLE(MPI_Comm) :: copy
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierror)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, int(1000 + rank, MPI_ADDRESS_KIND), ierror)
    call MPI_Comm_dup(MPI_COMM_WORLD, copy, ierror)
    call MPI_Comm_get_attr(copy, key, value, flag, ierror)
    call check(flag .and. value == 1000 + rank, 'an attribute that is copied')
    call MPI_Comm_free(copy, ierror)
    call check(copy == MPI_COMM_NULL, 'a communicator that is freed')
    call MPI_Comm_free_keyval(key, ierror)
    call check(key == MPI_KEYVAL_INVALID, 'a key that is freed')
  end subroutine attributes

  subroutine texts
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    call MPI_Comm_set_name(MPI_COMM_WORLD, 'all of them  ', ierror)
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierror)
    call check(length == 11 .and. name == 'all of them', 'a name')
  end subroutine texts

  subroutine errors
    HANDLE(MPI_Errhandler) :: errhandler
    HANDLE(MPI_Comm) :: copy
    integer :: code, class
    call MPI_Comm_dup(MPI_COMM_SELF, copy, ierror)
    call MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN, ierror)
    call MPI_Send(rank, 1, MPI_INTEGER, 5, 1, copy, code)
    call MPI_Error_class(code, class, ierror)
    call check(class == MPI_ERR_RANK, 'an error code')
    call MPI_Comm_create_errhandler(handle, errhandler, ierror)
    call MPI_Comm_set_errhandler(copy, errhandler, ierror)
    call MPI_Send(rank, 1, MPI_INTEGER, 5, 1, copy, code)
    call check(handled == 1, 'an error handler of the program')
    call MPI_Errhandler_free(errhandler, ierror)
    call MPI_Comm_free(copy, ierror)
  end subroutine errors

  subroutine graph
    HANDLE(MPI_Comm) :: ring
    integer :: in, out
    logical :: is_weighted
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [left], MPI_UNWEIGHTED, 1, [right], MPI_UNWEIGHTED, MPI_INFO_NULL, &
                                        .false., ring, ierror)
    call MPI_Dist_graph_neighbors_count(ring, in, out, is_weighted, ierror)
    call check(in == 1 .and. out == 1 .and. .not. is_weighted, 'a graph without weights')
    call MPI_Comm_free(ring, ierror)
  end subroutine graph

  subroutine sizes
    double precision :: number
    integer :: array(3), bytes
    HANDLE(MPI_Datatype) :: datatype
    number = 0
    array = 0
    call MPI_Type_create_f90_real(15, 300, datatype, ierror)
    call MPI_Type_size(datatype, bytes, ierror)
    call check(bytes == 8, 'a type by its precision')
#if defined(F08) || defined(MODULE)
    call MPI_Sizeof(number, bytes, ierror)
    call check(bytes == 8, 'the size of a number')
    call MPI_Sizeof(array, bytes, ierror)
    call check(bytes == 4, 'the size of a number in an array')
#endif
  end subroutine sizes

#if defined(F08) || defined(MODULE)
  subroutine pointers
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: address
    integer, pointer :: values(:)
    integer, target :: got
    integer(kind=MPI_ADDRESS_KIND), parameter :: bytes = 8, none = 0
    HANDLE(MPI_Win) :: window
    got = -1
    call MPI_Alloc_mem(bytes, MPI_INFO_NULL, address, ierror)
    call c_f_pointer(address, values, [2])
    values = [rank, -rank]
    call check(all(values == [rank, -rank]), 'memory by an address of C')
    call MPI_Free_mem(values, ierror)
    call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, address, window, ierror)
    call c_f_pointer(address, values, [2])
    values = [10 * rank, 20 * rank]
    call MPI_Win_fence(0, window, ierror)
    call MPI_Get(got, 1, MPI_INTEGER, right, none + 1, 1, MPI_INTEGER, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    call check(got == 20 * right, 'a window by an address of C')
    call MPI_Win_free(window, ierror)
    call check(window == MPI_WIN_NULL, 'a window that is freed')
  end subroutine pointers
#endif
end program forms
