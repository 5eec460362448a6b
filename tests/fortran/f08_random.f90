! Random sections of arrays of several ranks, up to 15, with random counts, against packed copies: sent, received into and reduced.
! A failure names the seed and the rank of the array; the program takes a seed as its argument.
module random_sections
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use mpi_f08
  implicit none
  integer(int64) :: state
  integer :: me, wrong = 0
contains

  subroutine check(seed, rank, what, good)
    integer, intent(in) :: seed, rank
    character(*), intent(in) :: what
    logical, intent(in) :: good
    if (good) return
    wrong = wrong + 1
    write (error_unit, '(3a, i0, a, i0)') 'section ', what, ' wrongly, rank ', rank, ', seed ', seed
  end subroutine

  ! A random number from 0 to n - 1.
  integer function below(n)
    integer, intent(in) :: n
    state = mod(state * 48271, 2147483647_int64)
    below = int(mod(state / 16, int(n, int64)))
  end function

  ! Bounds and strides of a section, now and then an empty one.
  subroutine choose(extents, l, u, s)
    integer, intent(in) :: extents(:)
    integer, intent(out) :: l(:), u(:), s(:)
    integer :: at, held
    do at = 1, size(extents)
      s(at) = 1 + below(3)
      l(at) = 1 + below(extents(at))
      u(at) = l(at) + below(extents(at) - l(at) + 1)
      if (below(3) > 0) then
        l(at) = 1
        u(at) = extents(at)
      end if
      if (below(4) == 0) then
        held = l(at)
        l(at) = u(at)
        u(at) = held
        s(at) = -s(at)
      end if
      if (below(12 * size(extents)) == 0) u(at) = l(at) - sign(1, s(at))
    end do
  end subroutine

  subroutine of_rank_1(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(1) = [40]
    integer, asynchronous :: a(40), expected(40)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(1), u(1), s(1), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 1, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1)) = reshape(packed, shape(a(l(1):u(1):s(1))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 1, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1)) = reshape(packed, shape(a(l(1):u(1):s(1))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1)), count, MPI_INTEGER, MPI_SUM)
    call check(seed, 1, 'reduced', all(a == expected))
  end subroutine

  subroutine of_rank_2(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(2) = [9, 8]
    integer, asynchronous :: a(9, 8), expected(9, 8)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(2), u(2), s(2), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1), l(2):u(2):s(2)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1), l(2):u(2):s(2)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 2, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1), l(2):u(2):s(2)) = reshape(packed, shape(a(l(1):u(1):s(1), l(2):u(2):s(2))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1), l(2):u(2):s(2)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 2, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1), l(2):u(2):s(2)) = reshape(packed, shape(a(l(1):u(1):s(1), l(2):u(2):s(2))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1), l(2):u(2):s(2)), count, MPI_INTEGER, MPI_SUM)
    call check(seed, 2, 'reduced', all(a == expected))
  end subroutine

  subroutine of_rank_3(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(3) = [6, 5, 7]
    integer, asynchronous :: a(6, 5, 7), expected(6, 5, 7)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(3), u(3), s(3), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)), count, MPI_INTEGER, me, 1, &
      MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 3, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)) = reshape(packed, shape(a(l(1):u(1):s(1), &
      l(2):u(2):s(2), l(3):u(3):s(3))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)), count, MPI_INTEGER, me, 1, &
      MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 3, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)) = reshape(packed, shape(a(l(1):u(1):s(1), &
      l(2):u(2):s(2), l(3):u(3):s(3))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3)), count, MPI_INTEGER, &
      MPI_SUM)
    call check(seed, 3, 'reduced', all(a == expected))
  end subroutine

  subroutine of_rank_4(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(4) = [5, 6, 3, 5]
    integer, asynchronous :: a(5, 6, 3, 5), expected(5, 6, 3, 5)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(4), u(4), s(4), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)), count, MPI_INTEGER, me, &
      1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 4, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)) = reshape(packed, &
      shape(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)), count, MPI_INTEGER, me, &
      1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 4, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)) = reshape(packed, &
      shape(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4)), count, &
      MPI_INTEGER, MPI_SUM)
    call check(seed, 4, 'reduced', all(a == expected))
  end subroutine

  subroutine of_rank_7(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(7) = [3, 2, 4, 1, 3, 2, 3]
    integer, asynchronous :: a(3, 2, 4, 1, 3, 2, 3), expected(3, 2, 4, 1, 3, 2, 3)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(7), u(7), s(7), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 7, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7)) = reshape(packed, shape(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), &
      l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7)), count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 7, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7)) = reshape(packed, shape(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), &
      l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), &
      l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7)), count, MPI_INTEGER, MPI_SUM)
    call check(seed, 7, 'reduced', all(a == expected))
  end subroutine

  subroutine of_rank_15(seed)
    integer, intent(in) :: seed
    integer, parameter :: EXTENTS(15) = [2, 2, 1, 2, 3, 1, 2, 1, 2, 2, 1, 2, 1, 2, 2]
    integer, asynchronous :: a(2, 2, 1, 2, 3, 1, 2, 1, 2, 2, 1, 2, 1, 2, 2), expected(2, 2, 1, 2, 3, 1, 2, 1, 2, 2, 1, 2, 1, 2, 2)
    integer, allocatable, asynchronous :: packed(:), arrived(:)
    integer :: l(15), u(15), s(15), n, count, i
    type(MPI_Request) :: requests(2)
    call choose(EXTENTS, l, u, s)
    a = reshape([(i, i = 1, product(EXTENTS))], EXTENTS)
    packed = pack(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), &
      l(12):u(12):s(12), l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)), .true.)
    n = size(packed)
    count = below(n + 1)
    arrived = [(-1, i = 1, n + 1)]
    call MPI_Isend(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), &
      l(12):u(12):s(12), l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)), count, MPI_INTEGER, me, 1, &
      MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(arrived, n + 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 15, 'sent', all(arrived(:count) == packed(:count)) .and. all(arrived(count + 1:) == -1))
    ! The first elements of the section get others.
    packed(:count) = -packed(:count)
    expected = a
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), l(12):u(12):s(12), &
      l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)) = reshape(packed, shape(a(l(1):u(1):s(1), &
      l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7), &
      l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), l(12):u(12):s(12), &
      l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15))))
    call MPI_Isend(packed, count, MPI_INTEGER, me, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), &
      l(6):u(6):s(6), l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), &
      l(12):u(12):s(12), l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)), count, MPI_INTEGER, me, 1, &
      MPI_COMM_WORLD, requests(2))
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(seed, 15, 'received', all(a == expected))
    ! Twice the elements.
    arrived = packed
    packed(:count) = 2 * packed(:count)
    expected(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), l(12):u(12):s(12), &
      l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)) = reshape(packed, shape(a(l(1):u(1):s(1), &
      l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7), &
      l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), l(12):u(12):s(12), &
      l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15))))
    call MPI_Reduce_local(arrived, a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), &
      l(5):u(5):s(5), l(6):u(6):s(6), l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), &
      l(11):u(11):s(11), l(12):u(12):s(12), l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15)), count, &
      MPI_INTEGER, MPI_SUM)
    call check(seed, 15, 'reduced', all(a == expected))
  end subroutine
end module

program f08_random
  use random_sections
  implicit none
  integer :: seed, first, last, all_wrong
  character(20) :: word
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  first = 1
  last = 100
  if (command_argument_count() == 1) then
    call get_command_argument(1, word)
    read (word, *) first
    last = first
  end if
  do seed = first, last
    state = 2 * seed + 1
    call of_rank_1(seed)
    call of_rank_2(seed)
    call of_rank_3(seed)
    call of_rank_4(seed)
    call of_rank_7(seed)
    call of_rank_15(seed)
  end do
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0 .and. all_wrong == 0) print '(a)', 'ok'
  call MPI_Finalize()
end program
