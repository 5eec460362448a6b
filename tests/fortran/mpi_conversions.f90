! Each kind of argument through the interfaces of the module mpi.
module callbacks
  use mpi
  implicit none
  integer :: faults = 0, copied = 0, deleted = 0, freed = 0
contains
  subroutine check(right, text)
    logical, intent(in) :: right
    character(len=*), intent(in) :: text
    if (right) return
    print *, 'wrong: ', text
    faults = faults + 1
  end subroutine

  subroutine copy(comm, keyval, extra, value, result, flag, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, result
    logical :: flag
    call check(extra == 2_MPI_ADDRESS_KIND**40, 'extra state')
    copied = copied + 1
    result = value + 1
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, keyval, value, extra, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    call check(extra == 2_MPI_ADDRESS_KIND**40, 'extra state')
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine sum_squares(from, to, length, datatype)
    integer :: length, datatype
    double precision :: from(length), to(length)
    call check(datatype == MPI_DOUBLE_PRECISION, 'datatype')
    to = to + from**2
  end subroutine
end module

program conversions
  use callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: rank, size, ierror, keyval, comm, op, n, request, info, datatype
  integer(kind=MPI_ADDRESS_KIND) :: value, address, lb, extent, memory
  integer :: status(MPI_STATUS_SIZE), types(2), counts(2), displacements(2)
  type(MPI_Status) :: f08_status
  type(c_ptr) :: pointer
  integer, pointer :: array(:)
  integer, target :: matrix(4,4)
  integer, allocatable :: buffer(:)
  double precision :: squares(2)
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=MPI_MAX_ERROR_STRING) :: message
  logical :: flag
  integer(kind=2) :: short(2,2)

  call MPI_Init_thread(MPI_THREAD_SINGLE, n, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(comm=MPI_COMM_WORLD, size=size, ierror=ierror)

  ! Attributes that are addresses.
  call MPI_Comm_create_keyval(copy, delete, keyval, 2_MPI_ADDRESS_KIND**40, ierror)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 2_MPI_ADDRESS_KIND**50, ierror)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, keyval, value, flag, ierror)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**50 + 1, 'copied attribute')
  call MPI_Comm_free(comm, ierror)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierror)
  call check(copied == 1 .and. deleted == 2, 'calls of callbacks')
  call MPI_Comm_free_keyval(keyval, ierror)
  call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierror)
  call MPI_Type_contiguous(3, MPI_INTEGER, types(1), ierror)
  call MPI_Type_set_attr(types(1), keyval, -9_MPI_ADDRESS_KIND, ierror)
  call MPI_Type_dup(types(1), types(2), ierror)
  call MPI_Type_get_attr(types(2), keyval, value, flag, ierror)
  call check(flag .and. value == -9, 'duplicated attribute')
  call MPI_Type_free(types(1), ierror)
  call MPI_Type_free(types(2), ierror)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, value, flag, ierror)
  call check(.not. flag .or. value >= size, 'universe')

  ! Memory as an integer and as a pointer.
  call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, pointer, ierror)
  call c_f_pointer(pointer, array, [10])
  array = rank
  call MPI_Get_address(array, address, ierror)
  call check(address == transfer(pointer, address), 'address of memory')
  call MPI_Free_mem(array, ierror)
  call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory, ierror)
  call check(memory /= 0, 'memory')
  pointer = transfer(memory, pointer)
  call c_f_pointer(pointer, array, [10])
  call MPI_Free_mem(array, ierror)
  call MPI_Get_address(matrix(2,1), value, ierror)
  call MPI_Get_address(matrix(1,1), address, ierror)
  call check(MPI_Aint_diff(value, address) == 4, 'difference of addresses')
  call check(MPI_Aint_add(address, 4_MPI_ADDRESS_KIND) == value, 'sum of addresses')

  ! Absolute addresses: MPI_BOTTOM.
  matrix = rank
  counts(1) = 16
  call MPI_Type_create_struct(1, counts, [address], [MPI_INTEGER], datatype, ierror)
  call MPI_Type_commit(datatype, ierror)
  call MPI_F_sync_reg(matrix)
  call MPI_Bcast(MPI_BOTTOM, 1, datatype, size - 1, MPI_COMM_WORLD, ierror)
  call MPI_F_sync_reg(matrix)
  call check(all(matrix == size - 1), 'bottom')
  call MPI_Type_free(datatype, ierror)
  call check(datatype == MPI_DATATYPE_NULL, 'freed datatype')

  ! A section, which the compiler copies.
  matrix = 0
  if (rank == 0) then
    matrix(:,1) = [1, 2, 3, 4]
    matrix(1,:) = [1, 5, 6, 7]
    call MPI_Send(matrix(1,:), 4, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, ierror)
  else if (rank == 1) then
    call MPI_Recv(matrix(2,1:4), 4, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, status, ierror)
    call check(all(matrix(2,:) == [1, 5, 6, 7]), 'received row')
    call check(status(MPI_SOURCE) == 0 .and. status(MPI_TAG) == 3, 'status')
    call MPI_Get_count(status, MPI_INTEGER, n, ierror)
    call check(n == 4, 'count')
    call MPI_Status_f2f08(status, f08_status, ierror)
    call check(f08_status%MPI_SOURCE == 0 .and. f08_status%MPI_TAG == 3, 'derived status')
    status = 0
    call MPI_Status_f082f(f08_status, status, ierror)
    call check(status(MPI_TAG) == 3, 'status from a derived one')
  end if

  ! A reduction of the program's, and one in place.
  call MPI_Op_create(sum_squares, .true., op, ierror)
  squares = [1d0, 2d0]
  call MPI_Allreduce(MPI_IN_PLACE, squares, 2, MPI_DOUBLE_PRECISION, op, MPI_COMM_SELF, ierror)
  call check(all(squares == [1d0, 2d0]), 'reduction of one')
  call MPI_Op_free(op, ierror)

  ! A datatype for each peer, in an exchange that completes later.
  allocate(buffer(2 * size))
  block
    integer :: scounts(size), sdispls(size), stypes(size)
    integer :: i
    buffer(1:size) = rank
    scounts = 1
    sdispls = [(4 * i, i = 0, size - 1)]
    stypes = MPI_INTEGER
    call MPI_Ialltoallw(buffer, scounts, sdispls, stypes, buffer(size + 1), scounts, sdispls, stypes, &
                        MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call check(all(buffer(size + 1:) == [(i, i = 0, size - 1)]), 'exchange with types')
    call check(request == MPI_REQUEST_NULL, 'completed request')
  end block

  ! Texts.
  call MPI_Get_library_version(version, n, ierror)
  call check(len_trim(version) == n .and. n > 0, 'library version')
  call MPI_Error_string(MPI_ERR_TRUNCATE, message, n, ierror)
  call check(len_trim(message) == n .and. n > 0, 'text of an error')
  call MPI_Info_create(info, ierror)
  call MPI_Info_set(info, 'host', '', ierror)
  call MPI_Info_free(info, ierror)
  call check(info == MPI_INFO_NULL, 'freed info')

  ! Errors come back.
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierror)
  call MPI_Send(matrix, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierror)
  call MPI_Error_class(ierror, n, ierror)
  call check(n == MPI_ERR_COUNT, 'class of an error')

  ! Sizes, bounds.
  call MPI_Sizeof(short, n, ierror)
  call check(n == 2, 'size of a short array')
  call MPI_Sizeof(squares(1), n, ierror)
  call check(n == 8, 'size of a double')
  call PMPI_Sizeof(short, n, ierror)
  call check(n == 2, 'size of a short array, profiling interface')
  call MPI_Type_get_extent(MPI_DOUBLE_PRECISION, lb, extent, ierror)
  call check(lb == 0 .and. extent == 8, 'extent')
  call check(PMPI_Wtime() > 0d0 .and. MPI_Wtick() > 0d0, 'clock')

  call MPI_Allreduce(faults, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  displacements = 0
  if (rank == 0 .and. n == 0) print *, 'ok'
  call MPI_Finalize(ierror)
end program
