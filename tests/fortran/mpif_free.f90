! The header in free form.
program header
  implicit none
  include 'mpif.h'
  integer :: rank, ierror, value(2)
  integer(kind=MPI_OFFSET_KIND) :: offset
  call MPI_INIT(ierror)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
  value = rank
  offset = MPI_DISPLACEMENT_CURRENT
  call MPI_BCAST(value, 2, MPI_INTEGER, 1, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. all(value == 1) .and. offset == -1) print *, 'ok'
  call MPI_FINALIZE(ierror)
end program
