! Heat in a square plate whose upper edge is hot: Jacobi's method on N x N points, over a grid of ranks, as in heat.c.
! The edges of the ranks' blocks are sections of an array: MPI gets them as they are, and nothing is packed.
program heat
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  use mpi_f08
  implicit none
  type(MPI_Comm) :: grid
  real(real64), allocatable, asynchronous :: now(:, :)
  real(real64), allocatable :: next(:, :)
  integer :: points, steps, size, rank, dims(2), place(2), up, down, left, right, rows, columns, step, i, j
  real(real64) :: start, seconds, own, change
  character(16) :: shown(2)

  call MPI_Init()
  points = argument(1, 1024)
  steps = argument(2, 100)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  dims = 0
  call MPI_Dims_create(size, 2, dims)
  if (points < dims(1) .or. steps < 1) then
    write (error_unit, '(a)') 'usage: heat [POINTS [STEPS]], with at least one point a rank'
    call MPI_Abort(MPI_COMM_WORLD, 2)
  end if

  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.false., .false.], .false., grid)
  call MPI_Comm_rank(grid, rank)
  call MPI_Cart_coords(grid, rank, 2, place)
  call MPI_Cart_shift(grid, 0, 1, up, down)
  call MPI_Cart_shift(grid, 1, 1, left, right)

  ! A block has a border of one point on each side.
  rows = block_of(dims(1), place(1))
  columns = block_of(dims(2), place(2))
  allocate (now(0:rows + 1, 0:columns + 1), next(0:rows + 1, 0:columns + 1), source=0.0_real64)
  if (up == MPI_PROC_NULL) then
    now(0, :) = 100
    next(0, :) = 100
  end if

  start = MPI_Wtime()
  do step = 1, steps
    call exchange()
    own = 0
    do j = 1, columns
      do i = 1, rows
        next(i, j) = (now(i - 1, j) + now(i + 1, j) + now(i, j - 1) + now(i, j + 1)) / 4
        own = own + abs(next(i, j) - now(i, j))
      end do
    end do
    call MPI_Allreduce(own, change, 1, MPI_DOUBLE_PRECISION, MPI_SUM, grid)
    now(1:rows, 1:columns) = next(1:rows, 1:columns)
  end do
  seconds = MPI_Wtime() - start
  if (rank == 0) then
    write (shown, '(f16.6)') change, seconds
    print '(i0, " x ", i0, " points, ", i0, " steps: the last changed them by ", a, " in all, ", a, " s")', points, points, steps, &
      trim(adjustl(shown(1))), trim(adjustl(shown(2)))
  end if

  call MPI_Comm_free(grid)
  call MPI_Finalize()

contains

  ! Exchanges the edges with four neighbours. Rows are not contiguous in memory.
  subroutine exchange()
    type(MPI_Request) :: edges(8)

    if (MPI_SUBARRAYS_SUPPORTED) then
      call MPI_Irecv(now(0, 1:columns), columns, MPI_DOUBLE_PRECISION, up, 0, grid, edges(1))
      call MPI_Irecv(now(rows + 1, 1:columns), columns, MPI_DOUBLE_PRECISION, down, 0, grid, edges(2))
      call MPI_Irecv(now(1:rows, 0), rows, MPI_DOUBLE_PRECISION, left, 0, grid, edges(3))
      call MPI_Irecv(now(1:rows, columns + 1), rows, MPI_DOUBLE_PRECISION, right, 0, grid, edges(4))
      call MPI_Isend(now(1, 1:columns), columns, MPI_DOUBLE_PRECISION, up, 0, grid, edges(5))
      call MPI_Isend(now(rows, 1:columns), columns, MPI_DOUBLE_PRECISION, down, 0, grid, edges(6))
      call MPI_Isend(now(1:rows, 1), rows, MPI_DOUBLE_PRECISION, left, 0, grid, edges(7))
      call MPI_Isend(now(1:rows, columns), rows, MPI_DOUBLE_PRECISION, right, 0, grid, edges(8))
      call MPI_Waitall(8, edges, MPI_STATUSES_IGNORE)
    else
      ! This compiler hands a copy of a section to a procedure, which is gone when the procedure returns.
      call MPI_Sendrecv(now(1, 1:columns), columns, MPI_DOUBLE_PRECISION, up, 0, now(rows + 1, 1:columns), columns, &
                        MPI_DOUBLE_PRECISION, down, 0, grid, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(now(rows, 1:columns), columns, MPI_DOUBLE_PRECISION, down, 0, now(0, 1:columns), columns, &
                        MPI_DOUBLE_PRECISION, up, 0, grid, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(now(1:rows, 1), rows, MPI_DOUBLE_PRECISION, left, 0, now(1:rows, columns + 1), rows, &
                        MPI_DOUBLE_PRECISION, right, 0, grid, MPI_STATUS_IGNORE)
      call MPI_Sendrecv(now(1:rows, columns), rows, MPI_DOUBLE_PRECISION, right, 0, now(1:rows, 0), rows, &
                        MPI_DOUBLE_PRECISION, left, 0, grid, MPI_STATUS_IGNORE)
    end if
  end subroutine

  integer function block_of(parts, part)
    integer, intent(in) :: parts, part
    block_of = points / parts
    if (part < mod(points, parts)) block_of = block_of + 1
  end function

  integer function argument(number, usual)
    integer, intent(in) :: number, usual
    character(32) :: word
    integer :: code
    argument = usual
    if (command_argument_count() < number) return
    call get_command_argument(number, word)
    read (word, *, iostat=code) argument
    if (code /= 0) argument = 0
  end function
end program
