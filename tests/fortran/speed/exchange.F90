! Times exchanges of 8 bytes as tests/abis/latency.c does, in Fortran: with mpif.h, or with F08 by the module mpi_f08. Rank 0 prints
! nanoseconds for each exchange; those of send+recv are half a round trip.
module exchanges
  use, intrinsic :: iso_fortran_env, only: int64, real64
#ifdef F08
  use mpi_f08
  implicit none
  type(MPI_Comm) :: comm
#else
  implicit none
  include 'mpif.h'
  integer :: comm
#endif
  character(8), asynchronous :: leaving, arriving
  integer :: count, rank, size, peer, code
contains

  subroutine pingpong()
    if (rank == 0) call MPI_Send(leaving, 8, MPI_BYTE, peer, 1, comm, code)
    call MPI_Recv(arriving, 8, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE, code)
    if (rank /= 0) call MPI_Send(leaving, 8, MPI_BYTE, peer, 1, comm, code)
  end subroutine

  subroutine sendrecv()
    call MPI_Sendrecv(leaving, 8, MPI_BYTE, peer, 1, arriving, 8, MPI_BYTE, peer, 1, comm, MPI_STATUS_IGNORE, code)
  end subroutine

  subroutine wait()
#ifdef F08
    type(MPI_Request) :: request
#else
    integer :: request
#endif
    call MPI_Irecv(arriving, 8, MPI_BYTE, peer, 1, comm, request, code)
    call MPI_Send(leaving, 8, MPI_BYTE, peer, 1, comm, code)
    call MPI_Wait(request, MPI_STATUS_IGNORE, code)
  end subroutine

  real(real64) function each(called)
    interface
      subroutine called()
      end subroutine
    end interface
    integer :: i
    integer(int64) :: began, ended, rate
    do i = 1, count / 10
      call called()
    end do
    call system_clock(began, rate)
    do i = 1, count
      call called()
    end do
    call system_clock(ended)
    each = 1e9_real64 * (ended - began) / rate / count
  end function
end module

program exchange
  use exchanges
  implicit none
  character(16) :: word
  real(real64) :: sendrecv_ns, wait_ns, half_ns

  call get_command_argument(1, word)
  read (word, *) count
  call MPI_Init(code)
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, rank, code)
  call MPI_Comm_size(comm, size, code)
  peer = size - 1 - rank
  leaving = 'leaving'
  sendrecv_ns = each(sendrecv)
  wait_ns = each(wait)
  half_ns = 0
  if (size > 1) half_ns = each(pingpong) / 2
  if (rank == 0) then
    if (size > 1) print '(a, f0.1)', 'send+recv ', half_ns
    print '(a, f0.1)', 'sendrecv ', sendrecv_ns, 'irecv+send+wait ', wait_ns
  end if
  call MPI_Finalize(code)
end program
