! The paths of hot.c that convert, in Fortran: with mpif.h, or with F08 by the module mpi_f08. PATHS names the module, and SUFFIX ends the
! names of its procedures, because each path is walked once before it is counted.
#define FOR_C(NAME) bind(C, name=NAME // SUFFIX)
#ifdef F08
#define REQUEST type(MPI_Request)
#define STATUS(COUNT) type(MPI_Status), dimension(COUNT)
#define AT(NUMBER) NUMBER
#else
#define REQUEST integer
#define STATUS(COUNT) integer, dimension(MPI_STATUS_SIZE, COUNT)
#define AT(NUMBER) :, NUMBER
#endif

#ifdef DATA
module hot_data
  use, intrinsic :: iso_fortran_env, only: int8
#ifdef F08
  use mpi_f08
  implicit none
#else
  implicit none
  include 'mpif.h'
#endif
  integer, parameter :: ROUNDS = 100
  integer(int8), asynchronous :: bytes(4096, ROUNDS)
  REQUEST :: requests(ROUNDS)
  STATUS(ROUNDS) :: statuses
  integer :: code
end module
#else
module PATHS
  use hot_data
  implicit none
contains

  subroutine send_8() FOR_C('send_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Send(bytes(1:8, i), 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, code)
    end do
  end subroutine

  subroutine isend_8() FOR_C('isend_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Isend(bytes(1:8, i), 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests(i), code)
    end do
    call MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE, code)
  end subroutine

  subroutine irecv_8() FOR_C('irecv_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Irecv(bytes(1:8, i), 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, requests(i), code)
    end do
  end subroutine

  subroutine waitall_8() FOR_C('waitall_8')
    call MPI_Waitall(ROUNDS, requests, MPI_STATUSES_IGNORE, code)
  end subroutine

  subroutine recv_8() FOR_C('recv_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Recv(bytes(1:8, i), 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    end do
  end subroutine

  subroutine recv_status_8() FOR_C('recv_status_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Recv(bytes(1:8, i), 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, statuses(AT(i)), code)
    end do
  end subroutine

  subroutine sendrecv_8() FOR_C('sendrecv_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Sendrecv(bytes(1:8, i), 8, MPI_BYTE, 1, 1, bytes(9:16, i), 8, MPI_BYTE, 1, 2, &
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
    end do
  end subroutine

  subroutine exchange_8() FOR_C('exchange_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Irecv(bytes(1:8, i), 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, requests(1), code)
      call MPI_Send(bytes(9:16, i), 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, code)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, code)
    end do
  end subroutine

  subroutine exchange_status_8() FOR_C('exchange_status_8')
    integer :: i
    do i = 1, ROUNDS
      call MPI_Irecv(bytes(1:8, i), 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD, requests(1), code)
      call MPI_Isend(bytes(9:16, i), 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, requests(2), code)
      call MPI_Waitall(2, requests, statuses, code)
    end do
  end subroutine

  subroutine waitall_status_8() FOR_C('waitall_status_8')
    call MPI_Waitall(ROUNDS, requests, statuses, code)
  end subroutine
end module
#endif
