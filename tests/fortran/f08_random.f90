! Random sections of arrays of several ranks, up to 15, with random counts, against packed copies: sent, received
! into, reduced, sent by persistent requests, and exchanged in blocks.
! A failure names the seed and the rank of the array; the program takes a seed as its argument.
module random_sections
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc, c_ptr
  use, intrinsic :: iso_fortran_env, only: error_unit, int64
  use mpi_f08
  implicit none
  integer(int64) :: state
  integer :: me, seed, rank_of_array, count, left_out, turn, wrong = 0
  type(MPI_Request) :: requests(2)
  integer, allocatable :: places(:), expected(:)
  integer, allocatable, asynchronous :: other(:)
  integer, pointer, asynchronous :: elements(:)
contains

  subroutine check(what, good)
    character(*), intent(in) :: what
    logical, intent(in) :: good
    if (good) return
    wrong = wrong + 1
    write (error_unit, '(3a, i0, a, i0)') 'section ', what, ' wrongly, rank ', rank_of_array, ', seed ', seed
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

  ! Places of the elements of a section, where element i of the array is i, and what is exchanged for them.
  subroutine prepare(packed, array, length)
    integer, intent(in) :: packed(:), length
    type(c_ptr), intent(in) :: array
    places = packed
    call c_f_pointer(array, elements, [length])
    expected = elements
    count = below(size(places) + 1)
    left_out = below(count + 1)
    if (allocated(other)) deallocate(other)
    allocate(other(size(places) + 1), source=-1)
  end subroutine

  subroutine compare(what)
    character(*), intent(in) :: what
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    call check(what, all(elements == expected))
  end subroutine

  subroutine of_rank_1()
    integer, target, asynchronous :: a(40)
    integer, pointer, asynchronous :: section(:)
    integer :: l(1), u(1), s(1), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1))
    rank_of_array = 1
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_2()
    integer, target, asynchronous :: a(9, 8)
    integer, pointer, asynchronous :: section(:, :)
    integer :: l(2), u(2), s(2), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2))
    rank_of_array = 2
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_3()
    integer, target, asynchronous :: a(6, 5, 7)
    integer, pointer, asynchronous :: section(:, :, :)
    integer :: l(3), u(3), s(3), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3))
    rank_of_array = 3
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_4()
    integer, target, asynchronous :: a(5, 6, 3, 5)
    integer, pointer, asynchronous :: section(:, :, :, :)
    integer :: l(4), u(4), s(4), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4))
    rank_of_array = 4
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_5()
    integer, target, asynchronous :: a(4, 3, 4, 2, 5)
    integer, pointer, asynchronous :: section(:, :, :, :, :)
    integer :: l(5), u(5), s(5), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5))
    rank_of_array = 5
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_6()
    integer, target, asynchronous :: a(3, 4, 2, 3, 2, 4)
    integer, pointer, asynchronous :: section(:, :, :, :, :, :)
    integer :: l(6), u(6), s(6), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6))
    rank_of_array = 6
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_7()
    integer, target, asynchronous :: a(3, 2, 4, 1, 3, 2, 3)
    integer, pointer, asynchronous :: section(:, :, :, :, :, :, :)
    integer :: l(7), u(7), s(7), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7))
    rank_of_array = 7
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_11()
    integer, target, asynchronous :: a(2, 2, 1, 3, 2, 2, 1, 2, 3, 1, 2)
    integer, pointer, asynchronous :: section(:, :, :, :, :, :, :, :, :, :, :)
    integer :: l(11), u(11), s(11), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11))
    rank_of_array = 11
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine

  subroutine of_rank_15()
    integer, target, asynchronous :: a(2, 2, 1, 2, 3, 1, 2, 1, 2, 2, 1, 2, 1, 2, 2)
    integer, pointer, asynchronous :: section(:, :, :, :, :, :, :, :, :, :, :, :, :, :, :)
    integer :: l(15), u(15), s(15), i
    a = reshape([(i, i = 1, size(a))], shape(a))
    call choose(shape(a), l, u, s)
    section => a(l(1):u(1):s(1), l(2):u(2):s(2), l(3):u(3):s(3), l(4):u(4):s(4), l(5):u(5):s(5), l(6):u(6):s(6), &
      l(7):u(7):s(7), l(8):u(8):s(8), l(9):u(9):s(9), l(10):u(10):s(10), l(11):u(11):s(11), l(12):u(12):s(12), &
      l(13):u(13):s(13), l(14):u(14):s(14), l(15):u(15):s(15))
    rank_of_array = 15
    call prepare(pack(section, .true.), c_loc(a), size(a))
    include 'f08_random.inc'
  end subroutine
end module

program f08_random
  use random_sections
  implicit none
  integer :: first, last, all_wrong
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
    call of_rank_1()
    call of_rank_2()
    call of_rank_3()
    call of_rank_4()
    call of_rank_5()
    call of_rank_6()
    call of_rank_7()
    call of_rank_11()
    call of_rank_15()
  end do
  call MPI_Allreduce(wrong, all_wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0 .and. all_wrong == 0) print '(a)', 'ok'
  call MPI_Finalize()
end program
