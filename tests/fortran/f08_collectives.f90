! Sections of arrays in collective operations: blocking, nonblocking and persistent ones, with one block, several blocks and blocks
! of their own for each rank, and reductions. The elements between those of a section must stay.
module collectives_of_sections
  use, intrinsic :: iso_fortran_env, only: error_unit
  use mpi_f08
  implicit none
  integer :: me, ranks, wrong = 0
  integer, parameter :: BLOCKING = 1, NONBLOCKING = 2, PERSISTENT = 3, WIDE = 4
  type(MPI_Comm) :: world
  type(MPI_Request) :: request
  ! Every other column of this and every other element of that are the buffers.
  integer, allocatable, asynchronous :: from(:, :), to(:, :), expected(:, :)
contains

  subroutine check(what, way)
    character(*), intent(in) :: what
    integer, intent(in) :: way
    if (all(to == expected)) return
    wrong = wrong + 1
    write (error_unit, '(a, i0, 3a, i0, a, *(1x, i0))') 'rank ', me, ': ', what, ', way ', way, ':', to
  end subroutine

  ! Two elements for each rank, in the first row of `from` and in the last column of `to`, backwards.
  subroutine prepare()
    integer :: i
    if (.not. allocated(from)) allocate(from(3, 2 * ranks), to(4 * ranks, 2), expected(4 * ranks, 2))
    from = -1
    from(2, :) = [(100 * me + i, i = 1, 2 * ranks)]
    to = -7
    expected = to
  end subroutine

  ! Element `i` of `from` at a rank.
  elemental integer function sent(rank, i)
    integer, intent(in) :: rank, i
    sent = 100 * rank + i
  end function

  ! The place in `to` of an element of the section.
  elemental integer function row(i)
    integer, intent(in) :: i
    row = 4 * ranks - 2 * (i - 1)
  end function

  subroutine finish(way)
    integer, intent(in) :: way
    select case (way)
    case (NONBLOCKING)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    case (PERSISTENT)
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check('persistent', way)
      ! A second time, with other elements.
      from(2, :) = from(2, :) + 1
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      where (expected /= -7) expected = expected + 1
      call MPI_Request_free(request)
    end select
  end subroutine

  subroutine one_block(way)
    integer, intent(in) :: way
    call prepare()
    if (me == 1) to(4 * ranks:1:-2, 2) = from(2, :)
    expected(row([1, 2, 3]), 2) = sent(1, [1, 2, 3])
    if (me == 1) expected = to
    select case (way)
    case (BLOCKING)
      call MPI_Bcast(to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, 1, world)
    case (WIDE)
      call MPI_Bcast(to(4 * ranks:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, 1, world)
    case (NONBLOCKING)
      call MPI_Ibcast(to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, 1, world, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    case (PERSISTENT)
      call MPI_Bcast_init(to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, 1, world, MPI_INFO_NULL, request)
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call MPI_Request_free(request)
    end select
    call check('broadcast', way)
  end subroutine

  subroutine gathered(way)
    integer, intent(in) :: way
    integer :: r
    call prepare()
    if (me == 1) then
      do r = 0, ranks - 1
        expected(row([2 * r + 1, 2 * r + 2]), 2) = sent(r, [1, 2])
      end do
    end if
    select case (way)
    case (BLOCKING)
      call MPI_Gather(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world)
    case (WIDE)
      call MPI_Gather(from(2, :), 2_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2_MPI_COUNT_KIND, MPI_INTEGER, 1, world)
    case (NONBLOCKING)
      call MPI_Igather(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world, request)
    case (PERSISTENT)
      call MPI_Gather_init(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world, MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('gather', way)
    call prepare()
    do r = 0, ranks - 1
      expected(row([2 * r + 1, 2 * r + 2]), 2) = sent(r, [1, 2])
    end do
    select case (way)
    case (BLOCKING)
      call MPI_Allgather(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world)
    case (WIDE)
      to(row(2 * me + 1), 2) = sent(me, 1)
      to(row(2 * me + 2), 2) = sent(me, 2)
      call MPI_Allgather(MPI_IN_PLACE, 0_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2_MPI_COUNT_KIND, MPI_INTEGER, world)
    case (NONBLOCKING)
      call MPI_Iallgather(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world, request)
    case (PERSISTENT)
      call MPI_Allgather_init(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world, MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('allgather', way)
  end subroutine

  subroutine scattered(way)
    integer, intent(in) :: way
    call prepare()
    expected(row([1, 2]), 2) = sent(1, [2 * me + 1, 2 * me + 2])
    select case (way)
    case (BLOCKING)
      call MPI_Scatter(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world)
    case (WIDE)
      call MPI_Scatter(from(2, :), 2_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2_MPI_COUNT_KIND, MPI_INTEGER, 1, world)
    case (NONBLOCKING)
      call MPI_Iscatter(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world, request)
    case (PERSISTENT)
      call MPI_Scatter_init(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, 1, world, MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('scatter', way)
  end subroutine

  subroutine exchanged(way)
    integer, intent(in) :: way
    integer :: r
    call prepare()
    do r = 0, ranks - 1
      expected(row([2 * r + 1, 2 * r + 2]), 2) = sent(r, [2 * me + 1, 2 * me + 2])
    end do
    select case (way)
    case (BLOCKING)
      call MPI_Alltoall(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world)
    case (WIDE)
      call MPI_Alltoall(from(2, :), 2_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2_MPI_COUNT_KIND, MPI_INTEGER, world)
    case (NONBLOCKING)
      call MPI_Ialltoall(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world, request)
    case (PERSISTENT)
      call MPI_Alltoall_init(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, world, MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('alltoall', way)
  end subroutine

  ! One element for each rank, at every second place of the sections.
  subroutine of_vectors(way)
    integer, intent(in) :: way
    integer, asynchronous :: counts(ranks), places(ranks)
    integer(MPI_COUNT_KIND) :: many(ranks)
    integer(MPI_ADDRESS_KIND) :: far(ranks)
    integer :: r
    counts = 1
    places = [(2 * r + 1, r = 0, ranks - 1)]
    many = counts
    far = places
    call prepare()
    if (me == 0) expected(row(places + 1), 2) = sent([(r, r = 0, ranks - 1)], 1)
    select case (way)
    case (BLOCKING)
      call MPI_Gatherv(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, 0, world)
    case (WIDE)
      call MPI_Gatherv(from(2, :), 1_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), many, far, MPI_INTEGER, 0, world)
    case (NONBLOCKING)
      call MPI_Igatherv(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, 0, world, request)
      ! What lies between the blocks is the program's.
      to(row(places), 2) = -8
      expected(row(places), 2) = -8
    case (PERSISTENT)
      call MPI_Gatherv_init(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, 0, world, &
        MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('gatherv', way)
    call prepare()
    expected(row(places + 1), 2) = sent([(r, r = 0, ranks - 1)], 1)
    select case (way)
    case (BLOCKING)
      call MPI_Allgatherv(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world)
    case (WIDE)
      call MPI_Allgatherv(from(2, :), 1_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), many, far, MPI_INTEGER, world)
    case (NONBLOCKING)
      call MPI_Iallgatherv(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world, request)
    case (PERSISTENT)
      call MPI_Allgatherv_init(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world, &
        MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('allgatherv', way)
    call prepare()
    expected(row(1), 2) = sent(0, places(me + 1) + 1)
    select case (way)
    case (BLOCKING)
      call MPI_Scatterv(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, 0, world)
    case (WIDE)
      call MPI_Scatterv(from(2, :), many, far, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1_MPI_COUNT_KIND, MPI_INTEGER, 0, world)
    case (NONBLOCKING)
      call MPI_Iscatterv(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, 0, world, request)
    case (PERSISTENT)
      call MPI_Scatterv_init(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, 0, world, &
        MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('scatterv', way)
    call prepare()
    expected(row(places + 1), 2) = sent([(r, r = 0, ranks - 1)], places(me + 1) + 1)
    select case (way)
    case (BLOCKING)
      call MPI_Alltoallv(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world)
    case (WIDE)
      call MPI_Alltoallv(from(2, :), many, far, MPI_INTEGER, to(4 * ranks:1:-2, 2), many, far, MPI_INTEGER, world)
    case (NONBLOCKING)
      call MPI_Ialltoallv(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world, &
        request)
    case (PERSISTENT)
      call MPI_Alltoallv_init(from(2, :), counts, places, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, world, &
        MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('alltoallv', way)
  end subroutine

  ! Datatypes that differ among ranks.
  subroutine of_datatypes(way)
    integer, intent(in) :: way
    integer, asynchronous :: counts(ranks), places(ranks)
    integer(MPI_COUNT_KIND) :: many(ranks)
    integer(MPI_ADDRESS_KIND) :: far(ranks)
    type(MPI_Datatype), asynchronous :: types(ranks)
    integer :: r
    counts = [(merge(4, 1, mod(r + me, 2) == 1), r = 0, ranks - 1)]
    types = [(merge(MPI_BYTE, MPI_INTEGER, mod(r + me, 2) == 1), r = 0, ranks - 1)]
    places = [(4 * (2 * r + 1), r = 0, ranks - 1)]
    many = counts
    far = places
    call prepare()
    expected(row(places / 4 + 1), 2) = sent([(r, r = 0, ranks - 1)], places(me + 1) / 4 + 1)
    select case (way)
    case (BLOCKING)
      call MPI_Alltoallw(from(2, :), counts, places, types, to(4 * ranks:1:-2, 2), counts, places, types, world)
    case (WIDE)
      call MPI_Alltoallw(from(2, :), many, far, types, to(4 * ranks:1:-2, 2), many, far, types, world)
    case (NONBLOCKING)
      call MPI_Ialltoallw(from(2, :), counts, places, types, to(4 * ranks:1:-2, 2), counts, places, types, world, request)
    case (PERSISTENT)
      call MPI_Alltoallw_init(from(2, :), counts, places, types, to(4 * ranks:1:-2, 2), counts, places, types, world, &
        MPI_INFO_NULL, request)
    end select
    call finish(way)
    call check('alltoallw', way)
    if (way == BLOCKING) call of_nothing()
  end subroutine

  ! Blocks without elements use no bytes of a section, so a datatype that lies before its address may stand there.
  subroutine of_nothing()
    integer :: none(ranks), places(ranks)
    type(MPI_Datatype) :: before, types(ranks)
    call MPI_Type_create_hindexed_block(1, 1, [-4_MPI_ADDRESS_KIND], MPI_INTEGER, before)
    call MPI_Type_commit(before)
    none = 0
    places = 0
    types = before
    call prepare()
    call MPI_Alltoallw(from(2, :), none, places, types, to(4 * ranks:1:-2, 2), none, places, types, world)
    call check('alltoallw of nothing', BLOCKING)
    call MPI_Type_free(before)
  end subroutine

  ! The sum over ranks of an element.
  elemental integer function sum_of(i, least, most)
    integer, intent(in) :: i, least, most
    integer :: r
    sum_of = sum([(sent(r, i), r = least, most)])
  end function

  subroutine reduced(way)
    integer, intent(in) :: way
    integer :: i, all_of_them(3)
    all_of_them = [(i, i = 1, 3)]
    call prepare()
    if (me == 1) expected(row(all_of_them), 2) = sum_of(all_of_them, 0, ranks - 1)
    select case (way)
    case (BLOCKING)
      call MPI_Reduce(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, 1, world)
    case (WIDE)
      call MPI_Reduce(from(2, :), to(4 * ranks:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, 1, world)
    case (NONBLOCKING)
      call MPI_Ireduce(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, 1, world, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    case (PERSISTENT)
      call MPI_Reduce_init(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, 1, world, MPI_INFO_NULL, request)
      call restart()
    end select
    call check('reduce', way)
    call prepare()
    expected(row(all_of_them), 2) = sum_of(all_of_them, 0, ranks - 1)
    select case (way)
    case (BLOCKING)
      call MPI_Allreduce(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world)
    case (WIDE)
      to(4 * ranks:1:-2, 2) = from(2, :)
      expected(row([(i, i = 4, 2 * ranks)]), 2) = sent(me, [(i, i = 4, 2 * ranks)])
      call MPI_Allreduce(MPI_IN_PLACE, to(4 * ranks:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, world)
    case (NONBLOCKING)
      call MPI_Iallreduce(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, request)
      call poll()
    case (PERSISTENT)
      call MPI_Allreduce_init(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
      call restart()
    end select
    call check('allreduce', way)
    call prepare()
    expected(row(all_of_them), 2) = sum_of(all_of_them, 0, me)
    select case (way)
    case (BLOCKING)
      call MPI_Scan(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world)
    case (WIDE)
      call MPI_Scan(from(2, :), to(4 * ranks:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, world)
    case (NONBLOCKING)
      call MPI_Iscan(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, request)
      call poll()
    case (PERSISTENT)
      call MPI_Scan_init(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
      call restart()
    end select
    call check('scan', way)
    call prepare()
    if (me > 0) expected(row(all_of_them), 2) = sum_of(all_of_them, 0, me - 1)
    select case (way)
    case (BLOCKING)
      call MPI_Exscan(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world)
    case (WIDE)
      call MPI_Exscan(from(2, :), to(4 * ranks:1:-2, 2), 3_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, world)
    case (NONBLOCKING)
      call MPI_Iexscan(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, request)
      call poll()
    case (PERSISTENT)
      call MPI_Exscan_init(from(2, :), to(4 * ranks:1:-2, 2), 3, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
      call restart()
    end select
    ! Rank 0 gets nothing that is defined.
    if (me > 0) call check('exscan', way)
  end subroutine

  subroutine reduced_and_scattered(way)
    integer, intent(in) :: way
    integer, asynchronous :: counts(ranks)
    integer :: r, before
    call prepare()
    expected(row([1, 2]), 2) = sum_of([2 * me + 1, 2 * me + 2], 0, ranks - 1)
    select case (way)
    case (BLOCKING)
      call MPI_Reduce_scatter_block(from(2, :), to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, MPI_SUM, world)
    case (WIDE)
      call MPI_Reduce_scatter_block(from(2, :), to(4 * ranks:1:-2, 2), 2_MPI_COUNT_KIND, MPI_INTEGER, MPI_SUM, world)
    case (NONBLOCKING)
      call MPI_Ireduce_scatter_block(from(2, :), to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, MPI_SUM, world, request)
      call poll()
    case (PERSISTENT)
      call MPI_Reduce_scatter_block_init(from(2, :), to(4 * ranks:1:-2, 2), 2, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
      call restart()
    end select
    call check('reduce_scatter_block', way)
    counts = [(merge(1, 2, r == 0), r = 0, ranks - 1)]
    before = sum(counts(:me))
    call prepare()
    expected(row([(r, r = 1, counts(me + 1))]), 2) = sum_of([(before + r, r = 1, counts(me + 1))], 0, ranks - 1)
    select case (way)
    case (BLOCKING)
      call MPI_Reduce_scatter(from(2, :), to(4 * ranks:1:-2, 2), counts, MPI_INTEGER, MPI_SUM, world)
    case (WIDE)
      call MPI_Reduce_scatter(from(2, :), to(4 * ranks:1:-2, 2), int(counts, MPI_COUNT_KIND), MPI_INTEGER, MPI_SUM, world)
    case (NONBLOCKING)
      call MPI_Ireduce_scatter(from(2, :), to(4 * ranks:1:-2, 2), counts, MPI_INTEGER, MPI_SUM, world, request)
      call poll()
    case (PERSISTENT)
      call MPI_Reduce_scatter_init(from(2, :), to(4 * ranks:1:-2, 2), counts, MPI_INTEGER, MPI_SUM, world, MPI_INFO_NULL, request)
      call restart()
    end select
    call check('reduce_scatter', way)
  end subroutine

  ! Completion by other calls than MPI_Wait.
  subroutine poll()
    integer :: place
    logical :: flag
    type(MPI_Request) :: requests(2)
    requests = [MPI_REQUEST_NULL, request]
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(2, requests, place, flag, MPI_STATUS_IGNORE)
    end do
    request = requests(2)
  end subroutine

  ! A persistent operation whose completion is seen by another call.
  subroutine restart()
    integer :: count, places(2)
    type(MPI_Request) :: requests(2)
    requests = [request, MPI_REQUEST_NULL]
    call MPI_Startall(1, requests)
    call MPI_Waitsome(2, requests, count, places, MPI_STATUSES_IGNORE)
    request = requests(1)
    call MPI_Request_free(request)
  end subroutine

  ! Neighbours on a ring.
  subroutine of_neighbours(way)
    integer, intent(in) :: way
    integer, asynchronous :: counts(2), ones(2), places(2)
    integer(MPI_ADDRESS_KIND), asynchronous :: far(2)
    type(MPI_Datatype), asynchronous :: types(2)
    type(MPI_Comm) :: ring
    integer :: left, right
    call MPI_Cart_create(world, 1, [ranks], [.true.], .false., ring)
    call MPI_Cart_shift(ring, 0, 1, left, right)
    counts = 2
    ones = 1
    places = [0, 3]
    far = [0, 4]
    types = MPI_INTEGER
    call prepare()
    expected(row([1, 2]), 2) = sent([left, right], 1)
    select case (way)
    case (BLOCKING)
      call MPI_Neighbor_allgather(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, ring)
    case (WIDE)
      call MPI_Neighbor_allgather(from(2, :), 1_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1_MPI_COUNT_KIND, MPI_INTEGER, &
        ring)
    case (NONBLOCKING)
      call MPI_Ineighbor_allgather(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, ring, request)
    case (PERSISTENT)
      call MPI_Neighbor_allgather_init(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, ring, MPI_INFO_NULL, &
        request)
    end select
    call finish(way)
    call check('neighbor_allgather', way)
    call prepare()
    expected(row([1, 2]), 2) = sent(left, 1)
    expected(row([1, 4]), 2) = sent([left, right], 1)
    expected(row([2, 5]), 2) = sent([left, right], 2)
    select case (way)
    case (BLOCKING)
      call MPI_Neighbor_allgatherv(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), [2, 2], [0, 3], MPI_INTEGER, ring)
    case (WIDE)
      call MPI_Neighbor_allgatherv(from(2, :), 2_MPI_COUNT_KIND, MPI_INTEGER, to(4 * ranks:1:-2, 2), [2_MPI_COUNT_KIND, &
        2_MPI_COUNT_KIND], [0_MPI_ADDRESS_KIND, 3_MPI_ADDRESS_KIND], MPI_INTEGER, ring)
    case default
      call MPI_Ineighbor_allgatherv(from(2, :), 2, MPI_INTEGER, to(4 * ranks:1:-2, 2), counts, places, MPI_INTEGER, ring, request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
    end select
    call check('neighbor_allgatherv', way)
    ! A block for the left neighbour, and one for the right one.
    call prepare()
    expected(row([1, 2]), 2) = sent([left, right], [2, 1])
    select case (way)
    case (BLOCKING)
      call MPI_Neighbor_alltoall(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, ring)
    case (WIDE)
      call MPI_Neighbor_alltoallv(from(2, :), [1, 1], [0, 1], MPI_INTEGER, to(4 * ranks:1:-2, 2), [1, 1], [0, 1], MPI_INTEGER, ring)
    case (NONBLOCKING)
      call MPI_Ineighbor_alltoallw(from(2, :), ones, far, types, to(4 * ranks:1:-2, 2), ones, far, types, ring, request)
    case (PERSISTENT)
      call MPI_Neighbor_alltoall_init(from(2, :), 1, MPI_INTEGER, to(4 * ranks:1:-2, 2), 1, MPI_INTEGER, ring, MPI_INFO_NULL, &
        request)
    end select
    call finish(way)
    call check('neighbor_alltoall', way)
    call MPI_Comm_free(ring)
  end subroutine
end module

program f08_collectives
  use collectives_of_sections
  implicit none
  integer :: all_wrong, way, local(7), i
  call MPI_Init()
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, me)
  call MPI_Comm_size(world, ranks)
  do way = BLOCKING, WIDE
    call one_block(way)
    call gathered(way)
    call scattered(way)
    call exchanged(way)
    call of_vectors(way)
    call of_datatypes(way)
    call reduced(way)
    call reduced_and_scattered(way)
    if (ranks > 2) call of_neighbours(way)
  end do
  local = [(i, i = 1, 7)]
  call MPI_Reduce_local(local(1:3), local(7:3:-2), 3, MPI_INTEGER, MPI_PROD)
  if (any(local /= [1, 2, 9, 4, 10, 6, 7])) then
    write (error_unit, *) 'reduce_local', local
    wrong = wrong + 1
  end if
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, world)
  if (me == 0 .and. all_wrong == 0) print '(a)', 'ok'
  call MPI_Finalize()
end program
