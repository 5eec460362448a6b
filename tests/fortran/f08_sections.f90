! Sections of arrays in exchanges of two ranks: ranks 1 to 7, strides of either sign, empty ones, parts of a section, derived types.
! What arrives is compared with a packed copy.
module sections_of_arrays
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  implicit none
  integer :: me, other, wrong = 0, handled = 0
  integer, allocatable, asynchronous :: got(:)
  integer, allocatable :: packed(:)
  type(MPI_Request) :: incoming
  type :: particle
    integer :: id
    real(8) :: place(3)
    integer :: kind
  end type
contains

  subroutine check(what, good)
    character(*), intent(in) :: what
    logical, intent(in) :: good
    if (good) return
    wrong = wrong + 1
    write (error_unit, '(a, i0, 2a)') 'rank ', me, ': ', what
  end subroutine

  ! Announces a message; then a section is sent, and the elements are compared.
  subroutine expect(elements)
    integer, intent(in) :: elements(:)
    packed = elements
    if (allocated(got)) deallocate(got)
    allocate(got(size(packed) + 1))
    got = -1
    call MPI_Irecv(got, size(got), MPI_INTEGER, other, 1, MPI_COMM_WORLD, incoming)
    ! A ready send needs a receive that has begun.
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine compare(what)
    character(*), intent(in) :: what
    integer :: n, count
    type(MPI_Status) :: status
    n = size(packed)
    call MPI_Wait(incoming, status)
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(what // ': count of a message', count == n)
    call check(what // ': elements of a message', all(got(:n) == packed) .and. got(n + 1) == -1)
  end subroutine

  ! The other rank's message: so many numbers.
  subroutine give(n)
    integer, intent(in) :: n
    integer :: i
    call MPI_Send([(1000 + i, i = 1, n)], n, MPI_INTEGER, other, 50, MPI_COMM_WORLD)
  end subroutine

  subroutine of_rank_2()
    integer, asynchronous :: a(20, 12), before(20, 12), expected(20, 12)
    integer, allocatable, asynchronous :: selected(:)
    type(MPI_Request) :: request
    integer :: i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call expect(pack(a, .true.))
    call MPI_Send(a, size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('whole')
    call expect(pack(a(1:20:2, :), .true.))
    call MPI_Isend(a(1:20:2, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('rows')
    call expect(pack(a(:, 2::3), .true.))
    call MPI_Ssend(a(:, 2::3), size(packed, kind=MPI_COUNT_KIND), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('columns')
    call expect(pack(a(1:20:3, 1:12:2), .true.))
    call MPI_Send_init(a(1:20:3, 1:12:2), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call compare('both')
    call expect(reshape(a(1:20:3, 1:12:2), [41]))
    call MPI_Bsend(a(1:20:3, 1:12:2), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('all but one')
    call expect(a(1:13:3, 1))
    call MPI_Rsend(a(1:20:3, 1:12:2), size(packed, kind=MPI_COUNT_KIND), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('part of a column')
    call expect(pack(a(20:1:-1, 12:1:-5), .true.))
    call MPI_Issend(a(20:1:-1, 12:1:-5), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('backwards')
    call expect(a(7, :))
    call MPI_Bsend_init(a(7, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call compare('one row')
    call expect(a(:, 7))
    call MPI_Send(a(:, 7), size(packed, kind=MPI_COUNT_KIND), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('one column')
    call expect([integer ::])
    call MPI_Isend(a(5:4, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('empty')
    call expect([integer ::])
    call MPI_Ssend(a(1::2, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('nothing of it')
    call expect([a(5, 5)])
    call MPI_Send_init(a(5, 5), size(packed, kind=MPI_COUNT_KIND), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call compare('element')
    call expect([a(19, 3), a(20, 3), a(1, 4)])
    call MPI_Bsend(a(19, 3), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('from an element on')
    selected = pack(a, mod(a, 7) == 3)
    call expect(selected)
    call MPI_Send(selected, size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('an array that PACK allocates')
    call expect(selected(::3))
    call MPI_Isend(selected(::3), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('a section of an array that PACK allocates')
    before = a
    expected = a
    expected(2:20:4, 12:1:-2) = reshape([(1000 + i, i = 1, 30)], [5, 6])
    call MPI_Irecv(a(2:20:4, 12:1:-2), 30, MPI_INTEGER, other, 50, MPI_COMM_WORLD, request)
    call give(30)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check('received into a section', all(a == expected))
    a = before
    expected = a
    expected(2:20:4, 12) = [(1000 + i, i = 1, 5)]
    expected(2:6:4, 10) = [(1005 + i, i = 1, 2)]
    call MPI_Recv_init(a(2:20:4, 12:1:-2), 7_MPI_COUNT_KIND, MPI_INTEGER, other, 50, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call give(7)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call check('received into a part of a section', all(a == expected))
    a = before
    call MPI_Irecv(a(2:20:4, 12:1:-2), 30, MPI_INTEGER, other, 50, MPI_COMM_WORLD, request)
    call give(7)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check('a short message for a section', all(a == expected))
  end subroutine

  subroutine of_rank_7()
    integer, asynchronous :: a(3, 4, 2, 3, 2, 3, 4), expected(3, 4, 2, 3, 2, 3, 4)
    type(MPI_Request) :: request
    integer :: i, numbers
    a = reshape([(i, i = 1, size(a))], shape(a))
    call expect(pack(a(::2, 4:1:-1, :, 1:3:2, 2:1:-1, :, 2:3), .true.))
    call MPI_Rsend(a(::2, 4:1:-1, :, 1:3:2, 2:1:-1, :, 2:3), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('rank 7')
    call expect(pack(a(2, ::3, :, 3, :, ::2, :), .true.))
    call MPI_Issend(a(2, ::3, :, 3, :, ::2, :), size(packed, kind=MPI_COUNT_KIND), &
      MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('rank 5 of 7')
    call expect(pack(a(:, 2, :, 3, 1, 2, :), .true.))
    call MPI_Bsend_init(a(:, 2, :, 3, 1, 2, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call compare('rank 3 of 7')
    numbers = size(a(::2, 4:1:-1, :, 1:3:2, 2:1:-1, :, 2:3))
    expected = a
    expected(::2, 4:1:-1, :, 1:3:2, 2:1:-1, :, 2:3) = reshape([(1000 + i, i = 1, numbers)], [2, 4, 2, 2, 2, 3, 2])
    call MPI_Irecv(a(::2, 4:1:-1, :, 1:3:2, 2:1:-1, :, 2:3), numbers, MPI_INTEGER, other, 50, MPI_COMM_WORLD, request)
    call give(numbers)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check('received into a section of rank 7', all(a == expected))
  end subroutine

  ! Ranks 1 and 4 to 6, by a pointer and an allocatable array, and an argument of assumed size.
  subroutine of_other_ranks()
    integer, allocatable, target, asynchronous :: a(:, :, :, :, :, :)
    integer, pointer, asynchronous :: p(:, :, :, :)
    type(MPI_Request) :: request
    integer :: i
    allocate(a(0:4, 3, 2, 3, 2, -2:0))
    a = reshape([(i, i = 1, size(a))], shape(a))
    call expect(pack(a(::2, :, 2:1:-1, ::2, :, :), .true.))
    call MPI_Send(a(::2, :, 2:1:-1, ::2, :, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('rank 6')
    call expect(a(0::3, 1, 1, 1, 1, 0))
    call MPI_Isend(a(0::3, 1, 1, 1, 1, 0), size(packed, kind=MPI_COUNT_KIND), &
      MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call compare('rank 1')
    p => a(:, ::2, 2, :, 1, :)
    call expect(pack(p, .true.))
    call MPI_Ssend(p, size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('pointer')
    call expect(pack(p(3::2, :, 2, :), .true.))
    call MPI_Send_init(p(3::2, :, 2, :), size(packed), MPI_INTEGER, other, 1, MPI_COMM_WORLD, request)
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Request_free(request)
    call compare('section of a pointer')
    call assumed_size(a, a(0, 1, 1, 1, 1, -2))
  end subroutine

  subroutine assumed_size(a, first)
    integer, intent(in), asynchronous :: a(3, 5, *), first(*)
    type(MPI_Request) :: request
    call expect(pack(a(::2, 5:1:-2, :4), .true.))
    call MPI_Bsend(a(::2, 5:1:-2, :4), size(packed, kind=MPI_COUNT_KIND), MPI_INTEGER, other, 1, MPI_COMM_WORLD)
    call compare('section of assumed size')
    call sends_assumed(first, a)
  end subroutine

  subroutine sends_assumed(first, a)
    integer, intent(in), asynchronous :: first(*), a(3, 5, *)
    integer, asynchronous :: both(2, 9)
    call MPI_Sendrecv(first, 9, MPI_INTEGER, other, 1, both(1, :), 9, MPI_INTEGER, other, 1, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call MPI_Sendrecv(a, 9, MPI_INTEGER, other, 1, both(2, :), 9, MPI_INTEGER, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('assumed size', all(both(1, :) == first(:9)) .and. all(both(2, :) == first(:9)))
  end subroutine

  ! Elements of derived types, their components, and datatypes that are not those of an element.
  subroutine of_types()
    type(particle), asynchronous, target :: all_of_it(10), got(4)
    integer, asynchronous :: ids(5), kinds(12), numbers(12), expected(12)
    real(8), asynchronous :: places(3, 5)
    complex, asynchronous :: z(8)
    real, asynchronous :: parts(16)
    type(MPI_Datatype) :: pair, spread, swapped, three
    character :: external(24)
    integer(MPI_ADDRESS_KIND) :: position
    type(MPI_Request) :: request
    integer :: i, bytes
    bytes = storage_size(all_of_it) / 8
    do i = 1, 10
      all_of_it(i) = particle(i, [i, i + 100, i + 200] * 1d0, -i)
    end do
    got = particle(0, 0d0, 0)
    call MPI_Sendrecv(all_of_it(10:1:-3), 4 * bytes, MPI_BYTE, other, 2, got, 4 * bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check('derived types', all(got%id == [10, 7, 4, 1]) .and. all(got%kind == -[10, 7, 4, 1]))
    ! Components are not copied by the compiler, so they outlast the call.
    ids = 0
    call MPI_Irecv(all_of_it(2::2)%id, 5, MPI_INTEGER, other, 3, MPI_COMM_WORLD, request)
    ids = [21, 22, 23, 24, 25]
    call MPI_Send(ids, 5, MPI_INTEGER, other, 3, MPI_COMM_WORLD)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check('components', all(all_of_it(2::2)%id == ids) .and. all(all_of_it(1::2)%id == [1, 3, 5, 7, 9]))
    places = 0
    call MPI_Sendrecv(all_of_it(1::2)%place(2), 5, MPI_REAL8, other, 4, places(2, :), 5, MPI_REAL8, other, 4, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check('elements of components', all(places(2, :) == [101d0, 103d0, 105d0, 107d0, 109d0]) .and. &
      all(places(1, :) == 0 .and. places(3, :) == 0))
    ! Two numbers for each element, and a datatype for several elements.
    z = [(cmplx(i, -i), i = 1, 8)]
    call MPI_Sendrecv(z(8:1:-2), 8, MPI_REAL, other, 5, parts, 8, MPI_REAL, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('parts of complex numbers', all(parts(:8) == [8, -8, 6, -6, 4, -4, 2, -2]))
    call MPI_Sendrecv(z(8:1:-2), 3, MPI_REAL, other, 5, parts, 3, MPI_REAL, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('an odd number of parts', all(parts(:3) == [8, -8, 6]))
    kinds = [(i, i = 1, 12)]
    call MPI_Type_contiguous(2, MPI_INTEGER, pair)
    call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, 12_MPI_ADDRESS_KIND, spread)
    call MPI_Type_create_indexed_block(2, 1, [1, 0], MPI_INTEGER, swapped)
    call MPI_Type_vector(2, 1, 3, MPI_INTEGER, three)
    call MPI_Type_commit(pair)
    call MPI_Type_commit(spread)
    call MPI_Type_commit(swapped)
    call MPI_Type_commit(three)
    numbers = 0
    call MPI_Sendrecv(kinds(1::2), 3, pair, other, 6, numbers, 6, MPI_INTEGER, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('pairs', all(numbers(:6) == [1, 3, 5, 7, 9, 11]))
    call MPI_Sendrecv(kinds(12:1:-2), 2, spread, other, 6, numbers, 2, MPI_INTEGER, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('datatype with gaps', all(numbers(:2) == [12, 6]))
    call MPI_Sendrecv(kinds(1::2), 3, swapped, other, 6, numbers, 6, MPI_INTEGER, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('datatype in another order', all(numbers(:6) == [3, 1, 7, 5, 11, 9]))
    expected = numbers
    expected(1:7:6) = [1, 3]
    call MPI_Sendrecv(kinds(1::2), 2, MPI_INTEGER, other, 6, numbers(1::2), 1, three, other, 6, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check('received with gaps', all(numbers == expected))
    ! A conversion knows the numbers, wherever they lie.
    position = 0
    call MPI_Pack_external('external32', kinds(1::2), 3, swapped, external, int(size(external), MPI_ADDRESS_KIND), position)
    call check('external32', position == 24 .and. all(ichar(external(4:24:4)) == [3, 1, 7, 5, 11, 9]))
    numbers = -1
    position = 0
    call MPI_Unpack_external('external32', external, int(size(external), MPI_ADDRESS_KIND), position, numbers(2::2), 3, pair)
    call check('from external32', all(numbers(2::2) == [3, 1, 7, 5, 11, 9]) .and. all(numbers(1::2) == -1))
    call MPI_Type_free(pair)
    call MPI_Type_free(spread)
    call MPI_Type_free(swapped)
    call MPI_Type_free(three)
  end subroutine

  subroutine of_texts()
    character(5), asynchronous :: texts(6), got(6)
    texts = ['alpha', 'beta ', 'gamma', 'delta', 'zeta ', 'theta']
    got = '*'
    call MPI_Sendrecv(texts(6:1:-2), 15, MPI_CHARACTER, other, 7, got(2::2), 15, MPI_CHARACTER, other, 7, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check('texts', all(got(2::2) == texts(6:1:-2)) .and. all(got(1::2) == '*'))
    call MPI_Sendrecv(texts(:)(2:3), 12, MPI_CHARACTER, other, 7, got, 12, MPI_CHARACTER, other, 7, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE)
    call check('parts of texts', got(1) == 'lpeta' .and. got(2) == 'melet')
  end subroutine

  ! Arguments that a vector subscript chooses: the compiler copies.
  subroutine of_subscripts()
    integer :: a(6), got(3), chosen(3) = [6, 1, 4]
    a = [1, 2, 3, 4, 5, 6]
    call MPI_Sendrecv(a(chosen), 3, MPI_INTEGER, other, 8, got, 3, MPI_INTEGER, other, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call check('vector subscript', all(got == chosen))
  end subroutine

  ! What cannot be done is an error, and the communicator's handler gets it.
  subroutine of_errors()
    integer :: a(10), code, class
    type(MPI_Errhandler) :: handler
    type(MPI_Comm) :: comm
    handled = 0
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_create_errhandler(count_errors, handler)
    call MPI_Comm_set_errhandler(comm, handler)
    a = 0
    call MPI_Send(a(1::2), 6, MPI_INTEGER, other, 9, comm, code)
    call MPI_Error_class(code, class)
    call check('more elements than the section has', class == MPI_ERR_COUNT .and. handled == 1)
    call MPI_Allreduce(MPI_IN_PLACE, a(1::3), 5, MPI_INTEGER, MPI_SUM, comm, code)
    call MPI_Error_class(code, class)
    call check('more elements to reduce', class == MPI_ERR_COUNT .and. handled == 2)
    call MPI_Send(a(1::2), 2, MPI_INTEGER, -77, 9, comm, code)
    call check('an error of the library', handled == 3)
    call MPI_Errhandler_free(handler)
    call MPI_Comm_free(comm)
  end subroutine

  subroutine count_errors(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code
    if (comm /= MPI_COMM_NULL .and. error_code /= MPI_SUCCESS) handled = handled + 1
  end subroutine
end module

program f08_sections
  use sections_of_arrays
  implicit none
  integer :: all_wrong
  integer, allocatable, target :: room(:)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  other = 1 - me
  allocate(room(100000))
  call MPI_Buffer_attach(room, 400000)
  call check('MPI_SUBARRAYS_SUPPORTED', MPI_SUBARRAYS_SUPPORTED .and. MPI_ASYNC_PROTECTS_NONBLOCKING)
  call of_rank_2()
  call of_rank_7()
  call of_other_ranks()
  call of_types()
  call of_texts()
  call of_subscripts()
  call of_errors()
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0 .and. all_wrong == 0) print '(a)', 'ok'
  call MPI_Finalize()
end program
