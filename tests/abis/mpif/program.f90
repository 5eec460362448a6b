! A program for the ABI of another library by its mpif.h: variables that are recognised by their addresses, statuses, handles,
! callbacks, attributes, texts, LOGICAL arguments and addresses. It prints `passed` on each rank.
module wrong_results
  implicit none
  integer :: wrong = 0, me, ranks, handled = 0, copied = 0, deleted = 0
contains
  subroutine check(what, good)
    use, intrinsic :: iso_fortran_env, only: error_unit
    character(*), intent(in) :: what
    logical, intent(in) :: good
    if (good) return
    wrong = wrong + 1
    write (error_unit, '(a, i0, 2a)') 'rank ', me, ': ', what
  end subroutine

  subroutine check_call(what, ierror)
    character(*), intent(in) :: what
    integer, intent(in) :: ierror
    call check(what//' returns an error', ierror == 0)
  end subroutine
end module

subroutine largest_of_pairs(in, inout, length, datatype)
  implicit none
  integer :: length, datatype, in(length), inout(length)
  inout = max(in, inout)
end subroutine

subroutine on_error(comm, code)
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: comm, code, class, ierror
  call MPI_Error_class(code, class, ierror)
  if (class == MPI_ERR_TAG) handled = handled + 1
end subroutine

subroutine copy_attribute(comm, keyval, extra, value, new, flag, ierror)
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: comm, keyval, ierror
  integer(MPI_ADDRESS_KIND) :: extra, value, new
  logical :: flag
  copied = copied + 1
  new = value + extra
  flag = .true.
  ierror = MPI_SUCCESS
end subroutine

subroutine delete_attribute(comm, keyval, value, extra, ierror)
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: comm, keyval, ierror
  integer(MPI_ADDRESS_KIND) :: extra, value
  deleted = deleted + 1
  ierror = MPI_SUCCESS
end subroutine

subroutine bottoms
  use wrong_results
  implicit none
  include 'mpif.h'
  integer, target :: values(3)
  integer :: datatype, ierror, total
  integer(MPI_ADDRESS_KIND) :: place, lb, extent
  call MPI_Get_address(values, place, ierror)
  call MPI_Type_create_hindexed(1, [2], [place + 4], MPI_INTEGER, datatype, ierror)
  call check_call('MPI_Type_create_hindexed', ierror)
  call MPI_Type_commit(datatype, ierror)
  values = [7, -1, -1]
  if (me == 0) values = [9, 2, 3]
  call MPI_Bcast(MPI_BOTTOM, 1, datatype, 0, MPI_COMM_WORLD, ierror)
  call check('MPI_BOTTOM', all(values(2:) == [2, 3]))
  call MPI_Type_get_extent(datatype, lb, extent, ierror)
  call check('the extent of a datatype', lb == place + 4 .and. extent == 8)
  call MPI_Type_free(datatype, ierror)
  call check('MPI_Type_free writes the null handle', datatype == MPI_DATATYPE_NULL)
  total = me + 1
  call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check('MPI_IN_PLACE', total == ranks*(ranks + 1)/2)
end subroutine

subroutine statuses
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: from, to, ierror, count, received(2), all_received(4), sent(2), at, done(4), number
  integer :: status(MPI_STATUS_SIZE), array(MPI_STATUS_SIZE, 4), requests(4)
  logical :: flag
  from = mod(me + ranks - 1, ranks)
  to = mod(me + 1, ranks)
  sent = [me, 100 + me]
  call MPI_Sendrecv(sent, 2, MPI_INTEGER, to, 5, received, 2, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
    MPI_COMM_WORLD, status, ierror)
  call check('a status', status(MPI_SOURCE) == from .and. status(MPI_TAG) == 5 .and. all(received == [from, 100 + from]))
  call MPI_Get_count(status, MPI_INTEGER, count, ierror)
  call check('MPI_Get_count', count == 2)
  call MPI_Test_cancelled(status, flag, ierror)
  call check('MPI_Test_cancelled', .not. flag)
  call MPI_Sendrecv(sent, 2, MPI_INTEGER, to, 6, received, 2, MPI_INTEGER, from, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
  call check_call('MPI_STATUS_IGNORE', ierror)
  do at = 1, 2
    call MPI_Irecv(all_received(2*at - 1), 3 - at, MPI_INTEGER, from, at, MPI_COMM_WORLD, requests(at), ierror)
    call MPI_Isend(sent, 3 - at, MPI_INTEGER, to, at, MPI_COMM_WORLD, requests(2 + at), ierror)
  end do
  array = -9
  call MPI_Waitall(4, requests, array, ierror)
  call check('MPI_Waitall', all(requests == MPI_REQUEST_NULL) .and. all(array(MPI_SOURCE, :2) == from) .and. &
    all(array(MPI_TAG, :2) == [1, 2]))
  call MPI_Get_count(array(1, 2), MPI_INTEGER, count, ierror)
  call check('the count of the second status', count == 1)
  do at = 1, 2
    call MPI_Irecv(all_received(2*at - 1), 3 - at, MPI_INTEGER, from, at, MPI_COMM_WORLD, requests(at), ierror)
    call MPI_Isend(sent, 3 - at, MPI_INTEGER, to, at, MPI_COMM_WORLD, requests(2 + at), ierror)
  end do
  call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, ierror)
  call check_call('MPI_STATUSES_IGNORE', ierror)
  requests(:2) = MPI_REQUEST_NULL
  call MPI_Irecv(received, 2, MPI_INTEGER, from, 8, MPI_COMM_WORLD, requests(2), ierror)
  call MPI_Send(sent, 2, MPI_INTEGER, to, 8, MPI_COMM_WORLD, ierror)
  call MPI_Waitsome(2, requests, number, done, array, ierror)
  call check('MPI_Waitsome counts from one', number == 1 .and. done(1) == 2 .and. array(MPI_TAG, 1) == 8)
  call MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, flag, status, ierror)
  call check('MPI_Iprobe', .not. flag)
end subroutine

subroutine callbacks
  use wrong_results
  implicit none
  include 'mpif.h'
  external :: largest_of_pairs, on_error, copy_attribute, delete_attribute
  integer :: op, handler, keyval, comm, ierror, largest, value
  integer(MPI_ADDRESS_KIND) :: attribute
  logical :: flag
  call MPI_Op_create(largest_of_pairs, .true., op, ierror)
  call MPI_Allreduce(me, largest, 1, MPI_INTEGER, op, MPI_COMM_WORLD, ierror)
  call check('a reduction by the program''s function', largest == ranks - 1)
  call MPI_Op_free(op, ierror)
  call check('MPI_Op_free writes the null handle', op == MPI_OP_NULL)
  call MPI_Comm_create_errhandler(on_error, handler, ierror)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierror)
  call MPI_Send(me, 1, MPI_INTEGER, 0, -40, MPI_COMM_WORLD, ierror)
  call check('an error handler', handled == 1)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Send(me, 1, MPI_INTEGER, 0, -40, MPI_COMM_WORLD, ierror)
  call check('MPI_ERRORS_RETURN', ierror /= MPI_SUCCESS .and. handled == 1)
  call MPI_Comm_create_keyval(copy_attribute, delete_attribute, keyval, 10_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 5000000000_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, keyval, attribute, flag, ierror)
  call check('an attribute that a function has copied', flag .and. copied == 1 .and. attribute == 5000000010_MPI_ADDRESS_KIND)
  call MPI_Comm_free(comm, ierror)
  call check('MPI_Comm_free', deleted == 1 .and. comm == MPI_COMM_NULL)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierror)
  call MPI_Comm_free_keyval(keyval, ierror)
  call check('MPI_Comm_free_keyval', deleted == 2 .and. keyval == MPI_KEYVAL_INVALID)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 77_MPI_ADDRESS_KIND, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, keyval, attribute, flag, ierror)
  call check('MPI_COMM_DUP_FN', flag .and. attribute == 77)
  call MPI_Comm_free(comm, ierror)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag, ierror)
  call check('MPI_TAG_UB', flag .and. attribute >= 32767)
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call check('MPI_Attr_get', flag .and. value == attribute)
end subroutine

subroutine graphs_and_grids
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: comm, grid, ierror, in, out, dims(1), coords(1)
  logical :: weighted, periods(1)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(me + ranks - 1, ranks)], MPI_UNWEIGHTED, 1, [mod(me + 1, ranks)], &
    MPI_UNWEIGHTED, MPI_INFO_NULL, .false., comm, ierror)
  call MPI_Dist_graph_neighbors_count(comm, in, out, weighted, ierror)
  call check('MPI_UNWEIGHTED', in == 1 .and. out == 1 .and. .not. weighted)
  call MPI_Comm_free(comm, ierror)
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, [0], MPI_WEIGHTS_EMPTY, 0, [0], MPI_WEIGHTS_EMPTY, &
    MPI_INFO_NULL, .false., comm, ierror)
  call MPI_Dist_graph_neighbors_count(comm, in, out, weighted, ierror)
  call check('MPI_WEIGHTS_EMPTY', in == 0 .and. out == 0 .and. weighted)
  call MPI_Comm_free(comm, ierror)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., grid, ierror)
  call MPI_Cart_get(grid, 1, dims, periods, coords, ierror)
  call check('MPI_Cart_get', dims(1) == ranks .and. periods(1) .and. coords(1) == me)
  call MPI_Comm_free(grid, ierror)
end subroutine

subroutine texts
  use wrong_results
  implicit none
  include 'mpif.h'
  character(MPI_MAX_OBJECT_NAME) :: name
  character(6) :: short
  character(MPI_MAX_ERROR_STRING) :: text
  integer :: length, info, ierror
  logical :: flag
  call MPI_Comm_set_name(MPI_COMM_WORLD, '  a world  ', ierror)
  name = repeat('x', MPI_MAX_OBJECT_NAME)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierror)
  call check('MPI_Comm_get_name', length == len_trim(name) .and. index(name, 'a world') > 0)
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, ' key ', 'a value', ierror)
  call MPI_Info_get(info, 'key', 5, short, flag, ierror)
  call check('MPI_Info_get', flag .and. short == 'a val')
  call MPI_Info_free(info, ierror)
  call check('MPI_Info_free', info == MPI_INFO_NULL)
  call MPI_Error_string(MPI_ERR_COMM, text, length, ierror)
  call check('MPI_Error_string', length > 0 .and. len_trim(text) == length)
end subroutine

subroutine files
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: file, ierror, value, status(MPI_STATUS_SIZE), count
  integer(MPI_OFFSET_KIND) :: bytes
  character(300) :: path
  call get_command_argument(1, path)
  if (path == '') return
  call MPI_File_open(MPI_COMM_WORLD, trim(path), MPI_MODE_CREATE + MPI_MODE_RDWR + MPI_MODE_DELETE_ON_CLOSE, &
    MPI_INFO_NULL, file, ierror)
  call check_call('MPI_File_open', ierror)
  call MPI_File_write_at_all(file, 4_MPI_OFFSET_KIND*me, me, 1, MPI_INTEGER, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, count, ierror)
  call check('MPI_File_write_at_all', count == 1)
  call MPI_File_sync(file, ierror)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_read_at(file, 4_MPI_OFFSET_KIND*(ranks - 1), value, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierror)
  call MPI_File_get_size(file, bytes, ierror)
  call check('MPI_File_read_at', value == ranks - 1 .and. bytes == 4*ranks)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_close(file, ierror)
  call check('MPI_File_close', file == MPI_FILE_NULL)
end subroutine

program other_abi
  use wrong_results
  implicit none
  include 'mpif.h'
  integer :: ierror, all_wrong
  double precision :: start
  logical :: flag
  call MPI_Init(ierror)
  start = MPI_Wtime()
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call MPI_Initialized(flag, ierror)
  call check('MPI_Initialized', flag .and. MPI_Wtime() >= start)
  call bottoms
  call statuses
  call callbacks
  call graphs_and_grids
  call texts
  call files
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (all_wrong == 0) print '(a)', 'passed'
  call MPI_Finalize(ierror)
  if (all_wrong /= 0) stop 1
end program
