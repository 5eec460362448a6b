! Times messages of 1 MiB out of a section of an array into a section of another, by mpi_f08 and packed by hand. Rank 0 prints the
! median of half a round trip in microseconds: of every other column, and of every other element of each column; or `wrong`.
module sections
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use mpi_f08
  implicit none
  integer, parameter :: ROWS = 1024, COLUMNS = 256, NUMBERS = ROWS * COLUMNS / 2
  real(real64), allocatable, asynchronous :: from(:, :), to(:, :)
  real(real64), allocatable :: packed(:), took(:)
  integer :: turns, rank, size, turn
  integer(int64) :: rate
contains

  subroutine columns_by_section()
    if (rank == 0) call MPI_Send(from(:, 1::2), NUMBERS, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD)
    call MPI_Recv(to(:, 1::2), NUMBERS, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (rank == 1) call MPI_Send(to(:, 1::2), NUMBERS, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD)
  end subroutine

  subroutine elements_by_section()
    if (rank == 0) call MPI_Send(from(1::2, :), NUMBERS, MPI_DOUBLE_PRECISION, 1, 0, MPI_COMM_WORLD)
    call MPI_Recv(to(1::2, :), NUMBERS, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    if (rank == 1) call MPI_Send(to(1::2, :), NUMBERS, MPI_DOUBLE_PRECISION, 0, 0, MPI_COMM_WORLD)
  end subroutine

  subroutine columns_packed()
    if (rank == 0) call give(reshape(from(:, 1::2), [NUMBERS]), 1)
    call MPI_Recv(packed, NUMBERS, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    to(:, 1::2) = reshape(packed, [ROWS, COLUMNS / 2])
    if (rank == 1) call give(reshape(to(:, 1::2), [NUMBERS]), 0)
  end subroutine

  subroutine elements_packed()
    if (rank == 0) call give(reshape(from(1::2, :), [NUMBERS]), 1)
    call MPI_Recv(packed, NUMBERS, MPI_DOUBLE_PRECISION, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    to(1::2, :) = reshape(packed, [ROWS / 2, COLUMNS])
    if (rank == 1) call give(reshape(to(1::2, :), [NUMBERS]), 0)
  end subroutine

  subroutine give(numbers_of_section, target)
    real(real64), intent(in) :: numbers_of_section(NUMBERS)
    integer, intent(in) :: target
    call MPI_Send(numbers_of_section, NUMBERS, MPI_DOUBLE_PRECISION, target, 0, MPI_COMM_WORLD)
  end subroutine

  subroutine timed(name, called)
    character(*), intent(in) :: name
    interface
      subroutine called()
      end subroutine
    end interface
    integer(int64) :: began, ended
    to = 0
    do turn = 1, turns
      call MPI_Barrier(MPI_COMM_WORLD)
      call system_clock(began)
      call called()
      call system_clock(ended)
      took(turn) = 1e6_real64 * (ended - began) / rate / 2
    end do
    if (rank == 0 .and. same(name)) print '(a, 1x, f0.1)', name, median()
    if (rank == 0 .and. .not. same(name)) print '(a, a)', name, ' wrong'
  end subroutine

  ! Whether what came back is what left.
  logical function same(name)
    character(*), intent(in) :: name
    if (name(1:1) == 'c') then
      same = all(to(:, 1::2) == from(:, 1::2)) .and. all(to(:, 2::2) == 0)
    else
      same = all(to(1::2, :) == from(1::2, :)) .and. all(to(2::2, :) == 0)
    end if
  end function

  real(real64) function median()
    integer :: i, j
    real(real64) :: held
    do i = 2, turns
      held = took(i)
      do j = i - 1, 1, -1
        if (took(j) <= held) exit
        took(j + 1) = took(j)
      end do
      took(j + 1) = held
    end do
    median = took((turns + 1) / 2)
  end function
end module

program section
  use sections
  implicit none
  character(16) :: word

  call get_command_argument(1, word)
  read (word, *) turns
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  if (size /= 2) call MPI_Abort(MPI_COMM_WORLD, 2)
  allocate (from(ROWS, COLUMNS), to(ROWS, COLUMNS), packed(NUMBERS), took(turns))
  call random_number(from)
  to = 0
  call system_clock(count_rate=rate)
  if (MPI_SUBARRAYS_SUPPORTED) then
    call timed('columns', columns_by_section)
    call timed('elements', elements_by_section)
  end if
  call timed('columns-packed', columns_packed)
  call timed('elements-packed', elements_packed)
  call MPI_Finalize()
end program
