! Attributes that one language sets and the other reads (MPI 5.0 section 19.3.7). The parts in C are functions of the file
! of this name.
program attributes
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    function key_of_c() bind(C)
      import :: c_int
      integer(c_int) :: key_of_c
    end function
    subroutine set_in_c(key) bind(C)
      import :: c_int
      integer(c_int), value :: key
    end subroutine
    function address_in_c() bind(C)
      import :: c_intptr_t
      integer(c_intptr_t) :: address_in_c
    end function
    function read_in_c(key, old) bind(C)
      import :: c_int, c_intptr_t
      integer(c_int), value :: key, old
      integer(c_intptr_t) :: read_in_c
    end function
    function predefined_in_c() bind(C)
      import :: c_int
      integer(c_int) :: predefined_in_c
    end function
    function comm_in_c(comm) bind(C)
      import :: c_int
      integer(c_int), value :: comm
      integer(c_int) :: comm_in_c
    end function
  end interface
  integer :: rank, ierror, key, old, faults = 0, comm, n
  integer(kind=MPI_ADDRESS_KIND) :: value
  logical :: flag

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  key = key_of_c()

  ! Set in Fortran, read in C: the address of the value.
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 2_MPI_ADDRESS_KIND**40 + rank, ierror)
  call check(read_in_c(key, 0) == 2_MPI_ADDRESS_KIND**40 + rank, 'set in Fortran, read in C')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierror)
  call check(flag .and. value == 2_MPI_ADDRESS_KIND**40 + rank, 'set in Fortran, read there')
  call MPI_Attr_put(MPI_COMM_WORLD, key, -7, ierror)
  call check(read_in_c(key, 1) == -7, 'set by MPI 1, read in C')
  call MPI_Attr_get(MPI_COMM_WORLD, key, old, flag, ierror)
  call check(flag .and. old == -7, 'set by MPI 1, read there')

  ! Set in C, read in Fortran: the value is the address.
  call set_in_c(key)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierror)
  call check(flag .and. value == address_in_c(), 'set in C, read in Fortran')
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierror)
  call MPI_Comm_get_attr(comm, key, value, flag, ierror)
  call check(flag .and. value == address_in_c(), 'copied in C, read in Fortran')
  call MPI_Comm_size(comm, n, ierror)
  call check(comm_in_c(comm) == n, 'communicator in C')
  call MPI_Comm_free(comm, ierror)

  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierror)
  call check(flag .and. value == predefined_in_c(), 'predefined attribute')

  call MPI_Allreduce(faults, n, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. n == 0) print *, 'ok'
  call MPI_Finalize(ierror)
contains
  subroutine check(right, text)
    logical, intent(in) :: right
    character(len=*), intent(in) :: text
    if (right) return
    print *, 'wrong: ', text
    faults = faults + 1
  end subroutine
end program
