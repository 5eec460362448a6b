! The rest of mpi_f08: handles, statuses, users' functions, attributes that C reads, memory, and optional arguments.
module functions_of_users
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  implicit none
  integer :: wrong = 0, me, ranks, handled = 0, deleted = 0, freed = 0
  interface
    ! The attribute as C has it: the integer that its address leads to, or the address itself.
    integer(c_int) function attribute_in_c(comm, keyval, value) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t), intent(out) :: value
    end function
    integer(c_int) function set_in_c(comm, keyval, value) bind(C)
      import
      integer(c_int), value :: comm, keyval
      integer(c_intptr_t), value :: value
    end function
  end interface
contains

  subroutine check(what, good)
    character(*), intent(in) :: what
    logical, intent(in) :: good
    if (good) return
    wrong = wrong + 1
    write (error_unit, '(a, i0, 2a)') 'rank ', me, ': ', what
  end subroutine

  ! The interface is there, and the library says that it lacks the procedure.
  logical function is_missing(code)
    integer, intent(in) :: code
    integer :: class
    call MPI_Error_class(code, class)
    is_missing = class == MPI_ERR_UNSUPPORTED_OPERATION
  end function

  subroutine of_handles()
    type(MPI_Comm) :: comm, copies(2)
    type(MPI_Datatype) :: datatype
    integer :: number
    comm = MPI_COMM_WORLD
    call check('equal', comm == MPI_COMM_WORLD .and. .not. comm /= MPI_COMM_WORLD)
    call check('differ', comm /= MPI_COMM_SELF .and. .not. comm == MPI_COMM_SELF)
    copies = comm
    call check('arrays of handles', all(copies == MPI_COMM_WORLD))
    number = comm
    call check('number', number == comm%MPI_VAL)
    comm = MPI_COMM_SELF%MPI_VAL
    call check('from a number', comm == MPI_COMM_SELF)
    call MPI_Type_contiguous(3, MPI_INTEGER, datatype)
    datatype%MPI_VAL = datatype%MPI_VAL
    call MPI_Type_free(datatype)
    call check('freed', datatype == MPI_DATATYPE_NULL)
  end subroutine

  subroutine of_statuses()
    type(MPI_Status) :: status, again, both(2)
    integer :: numbers(MPI_STATUS_SIZE), code, count, values(2)
    integer(MPI_COUNT_KIND) :: large
    type(MPI_Request) :: requests(2)
    logical :: flag
    values = me
    call MPI_Sendrecv([me, me], 2, MPI_INTEGER, me, 12, values, 2, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
    call MPI_Status_f082f(status, numbers, code)
    call check('numbers of a status', numbers(MPI_SOURCE) == me .and. numbers(MPI_TAG) == 12)
    call MPI_Status_f2f08(numbers, again)
    call check('status of numbers', again%MPI_SOURCE == me .and. again%MPI_TAG == 12)
    call MPI_Get_count(again, MPI_INTEGER, count)
    call MPI_Get_elements(again, MPI_INTEGER, large)
    call check('counts', count == 2 .and. large == 2)
    call MPI_Test_cancelled(again, flag)
    call check('not cancelled', .not. flag)
    call MPI_Irecv(values(1), 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Isend(me, 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, both)
    call check('statuses', both(1)%MPI_TAG == 1 .and. all(requests == MPI_REQUEST_NULL))
    call MPI_Testall(2, requests, flag, MPI_STATUSES_IGNORE)
    call check('nothing to wait for', flag)
  end subroutine

  subroutine copy(oldcomm, comm_keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    attribute_val_out = attribute_val_in + extra_state
    flag = oldcomm == MPI_COMM_WORLD
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete(comm, comm_keyval, attribute_val, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
    if (comm /= MPI_COMM_WORLD .and. attribute_val == 2**30 * 8_MPI_ADDRESS_KIND + extra_state) deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine of_attributes()
    integer :: keyval, plain
    integer(MPI_ADDRESS_KIND) :: value
    integer(c_intptr_t) :: in_c
    logical :: flag
    type(MPI_Comm) :: comm
    call MPI_Comm_create_keyval(copy, delete, keyval, 5_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 2**30 * 8_MPI_ADDRESS_KIND)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, value, flag)
    call check('attribute', flag .and. value == 2**30 * 8_MPI_ADDRESS_KIND)
    call check('attribute in C', attribute_in_c(MPI_COMM_WORLD%MPI_VAL, keyval, in_c) == 1 .and. in_c == value)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_get_attr(comm, keyval, value, flag)
    call check('copied attribute', flag .and. value == 2**30 * 8_MPI_ADDRESS_KIND + 5)
    call MPI_Comm_free(comm)
    call check('deleted attribute', deleted == 1)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, plain, 0_MPI_ADDRESS_KIND)
    call check('set in C', set_in_c(MPI_COMM_SELF%MPI_VAL, plain, 4711_c_intptr_t) == MPI_SUCCESS)
    call MPI_Comm_get_attr(MPI_COMM_SELF, plain, value, flag)
    call check('attribute of C', flag .and. value == 4711)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag)
    call check('predefined attribute', flag .and. value >= 32767)
    call MPI_Comm_free_keyval(plain)
    call MPI_Comm_free_keyval(keyval)
    call check('freed key', keyval == MPI_KEYVAL_INVALID)
  end subroutine

  subroutine handle(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm == MPI_COMM_SELF .and. error_code /= MPI_SUCCESS) handled = handled + 1
  end subroutine

  subroutine of_error_handlers()
    type(MPI_Errhandler) :: handler, got
    integer :: code, class, length
    character(MPI_MAX_ERROR_STRING) :: text
    call MPI_Comm_create_errhandler(handle, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler)
    call MPI_Comm_get_errhandler(MPI_COMM_SELF, got)
    call check('handler', got == handler)
    call MPI_Send(code, -1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, code)
    call MPI_Error_class(code, class)
    ! MPICH's library returns success after the program's handler.
    call check('handled error', handled == 1 .and. (class == MPI_ERR_COUNT .or. code == MPI_SUCCESS))
    code = MPI_ERR_COUNT
    call MPI_Error_string(code, text, length)
    call check('text of an error', length > 0 .and. len_trim(text) == length)
    call MPI_Send(code, 1, MPI_INTEGER, 0, -5, MPI_COMM_SELF)
    call check('handled without ierror', handled == 2)
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call MPI_Errhandler_free(handler)
    call MPI_Errhandler_free(got)
    call check('freed handler', handler == MPI_ERRHANDLER_NULL)
  end subroutine

  ! a := (a, b) with the greater sum.
  subroutine greater(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:, :), b(:, :)
    integer :: i
    if (datatype == MPI_INTEGER) error stop 'datatype of a reduction'
    call c_f_pointer(invec, a, [2, len])
    call c_f_pointer(inoutvec, b, [2, len])
    do i = 1, len
      if (sum(a(:, i)) > sum(b(:, i))) b(:, i) = a(:, i)
    end do
  end subroutine

  subroutine greater_c(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer(MPI_COUNT_KIND) :: len
    type(MPI_Datatype) :: datatype
    call greater(invec, inoutvec, int(len), datatype)
  end subroutine

  subroutine of_reductions()
    type(MPI_Op) :: op, op_c
    type(MPI_Datatype) :: pair
    integer :: pairs(2, 6)
    logical :: commute
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_commit(pair)
    call MPI_Op_create(greater, .true., op)
    call MPI_Op_create_c(greater_c, .true., op_c)
    call MPI_Op_commutative(op, commute)
    call check('commutative', commute)
    pairs = me
    call MPI_Allreduce(MPI_IN_PLACE, pairs, 6, pair, op, MPI_COMM_WORLD)
    call check('user reduction', all(pairs == ranks - 1))
    pairs = -me
    call MPI_Allreduce(MPI_IN_PLACE, pairs(:, ::2), 3, pair, op_c, MPI_COMM_WORLD)
    call check('user reduction of a section', all(pairs(:, ::2) == 0) .and. all(pairs(:, 2::2) == -me))
    call MPI_Op_free(op)
    call MPI_Op_free(op_c)
    call MPI_Type_free(pair)
  end subroutine

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
    status%MPI_TAG = int(extra_state)
    status%MPI_SOURCE = me
    call MPI_Status_set_elements(status, MPI_INTEGER, 3)
    call MPI_Status_set_cancelled(status, .false.)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine free(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    if (extra_state == 77) freed = freed + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    if (.not. complete) freed = freed + 100 * int(extra_state)
    ierror = MPI_SUCCESS
  end subroutine

  subroutine of_generalized_requests()
    type(MPI_Request) :: request
    type(MPI_Status) :: status
    integer :: count, code
    call MPI_Grequest_start(query, free, cancel, 77_MPI_ADDRESS_KIND, request, code)
    if (is_missing(code)) return
    call MPI_Grequest_complete(request)
    call MPI_Wait(request, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check('generalized request', status%MPI_TAG == 77 .and. count == 3 .and. freed == 1)
  end subroutine

  subroutine of_memory()
    type(c_ptr) :: base, attached
    integer, pointer :: numbers(:)
    integer, asynchronous :: room(1000)
    integer(MPI_ADDRESS_KIND) :: first, third
    integer :: size, i
    integer(MPI_COUNT_KIND) :: large
    call MPI_Alloc_mem(400_MPI_ADDRESS_KIND, MPI_INFO_NULL, base)
    call c_f_pointer(base, numbers, [100])
    numbers = [(i, i = 1, 100)]
    call MPI_Get_address(numbers(1), first)
    call MPI_Get_address(numbers(3::2), third)
    call check('addresses', MPI_Aint_diff(third, first) == 8 .and. MPI_Aint_add(first, 8_MPI_ADDRESS_KIND) == third)
    call MPI_Free_mem(numbers)
    ! Compilers assume that no function returns the address of a local variable.
    call MPI_Get_address(room, first)
    call MPI_Buffer_attach(room, 4000)
    call MPI_Buffer_detach(attached, size)
    call check('detached memory', size == 4000 .and. transfer(attached, first) == first)
    call MPI_Buffer_attach(room, 4000_MPI_COUNT_KIND)
    call MPI_Buffer_detach(attached, large)
    call check('detached memory, large', large == 4000 .and. transfer(attached, first) == first)
    call MPI_Sizeof(numbers, size)
    call check('size', size == 4)
    call MPI_F_sync_reg(room)
  end subroutine

  subroutine of_datatypes()
    type(MPI_Datatype) :: made, types(2), inside(2)
    integer :: integers, addresses, counts, combiner, numbers(9), size, code
    integer(MPI_ADDRESS_KIND) :: places(2), got(2), lb, extent
    integer(MPI_COUNT_KIND) :: large
    types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
    places = [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND]
    call MPI_Type_create_struct(2, [1, 2], places, types, made)
    call MPI_Type_get_envelope(made, integers, addresses, counts, combiner)
    call check('envelope', combiner == MPI_COMBINER_STRUCT .and. integers == 3 .and. addresses == 2 .and. counts == 2)
    call MPI_Type_get_contents(made, 3, 2, 2, numbers, got, inside)
    call check('contents', all(got == places) .and. all(inside == types) .and. all(numbers(:3) == [2, 1, 2]))
    call MPI_Type_size(made, size)
    call MPI_Type_size(made, large)
    call MPI_Type_get_extent(made, lb, extent)
    call check('sizes', size == 20 .and. large == 20 .and. lb == 0 .and. extent == 24)
    call MPI_Type_free(made)
    call MPI_Type_create_f90_real(15, 307, made, code)
    if (is_missing(code)) return
    call MPI_Type_size(made, size)
    call check('parametrised type', size == 8)
  end subroutine

  subroutine of_texts()
    character(MPI_MAX_OBJECT_NAME) :: name
    character(10) :: value
    integer :: length
    logical :: flag
    type(MPI_Info) :: info
    call MPI_Comm_set_name(MPI_COMM_SELF, 'alone  ')
    call MPI_Comm_get_name(MPI_COMM_SELF, name, length)
    call check('name', length == 5 .and. name == 'alone')
    call MPI_Info_create(info)
    call MPI_Info_set(info, ' key ', ' value ')
    length = 10
    call MPI_Info_get_string(info, 'key', length, value, flag)
    call check('info', flag .and. value == 'value' .and. length == 5)
    call MPI_Info_free(info)
    call check('freed info', info == MPI_INFO_NULL)
  end subroutine
end module

program f08_objects
  use functions_of_users
  implicit none
  integer :: all_wrong, provided
  logical :: flag
  real(8) :: start
  procedure(MPI_User_function), pointer :: pointed
  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided)
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  start = MPI_Wtime()
  call MPI_Initialized(flag)
  call check('initialized', flag)
  pointed => greater
  call of_handles()
  call of_statuses()
  call of_attributes()
  call of_error_handlers()
  call of_reductions()
  call of_generalized_requests()
  call of_memory()
  call of_datatypes()
  call of_texts()
  call check('clock', PMPI_Wtime() >= start .and. MPI_Wtick() > 0)
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0 .and. all_wrong == 0) print '(a)', 'ok'
  call MPI_Finalize()
end program
