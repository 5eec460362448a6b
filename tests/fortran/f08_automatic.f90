! The address that a detached automatic buffer has, in each procedure that returns it.
program automatic
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: size, rank, faults
  integer(MPI_COUNT_KIND) :: large
  integer, target :: room(1000)
  type(c_ptr) :: detached
  ! A compiler may take it that no call keeps the address of a dummy argument, and answer for c_associated.
  integer(c_intptr_t), volatile :: found, wanted

  faults = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 1)
  call MPI_Buffer_detach(detached, size)
  call check(c_associated(detached, c_loc(MPI_BUFFER_AUTOMATIC)), 'of the process')
  call MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 1_MPI_COUNT_KIND)
  call MPI_Buffer_detach(detached, large)
  call check(c_associated(detached, c_loc(MPI_BUFFER_AUTOMATIC)), 'of the process, large')
  call MPI_Comm_attach_buffer(MPI_COMM_WORLD, MPI_BUFFER_AUTOMATIC, 1)
  call MPI_Comm_detach_buffer(MPI_COMM_WORLD, detached, size)
  call check(c_associated(detached, c_loc(MPI_BUFFER_AUTOMATIC)), 'of a communicator')
  call MPI_Buffer_attach(room, 4000)
  call MPI_Buffer_detach(detached, size)
  found = transfer(detached, found)
  wanted = transfer(c_loc(room), wanted)
  call check(size == 4000 .and. found == wanted, 'memory of the program')
  if (rank == 0 .and. faults == 0) print *, 'ok'
  call MPI_Finalize()
contains
  subroutine check(right, text)
    logical, intent(in) :: right
    character(len=*), intent(in) :: text
    if (right) return
    print *, 'wrong: ', text
    faults = faults + 1
  end subroutine
end program
