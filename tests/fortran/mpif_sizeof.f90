! MPI_Sizeof and PMPI_Sizeof by the header in free form, for every type, and arrays, sections and elements.
program sizes
  implicit none
  include 'mpif.h'
  integer, parameter :: i1 = selected_int_kind(2), i2 = selected_int_kind(4), i8 = selected_int_kind(18)
  character(len=5) :: text, texts(2)
  logical(kind=i1) :: flag1
  logical(kind=i2) :: flag2
  logical :: flag4
  logical(kind=i8) :: flag8
  integer(kind=i1) :: short(2,2)
  integer(kind=i2) :: number2
  integer :: number4(2,2,2,2,2,2,2)
  integer(kind=i8) :: number8
  real :: real4(4)
  double precision :: real8
  complex :: complex4
  complex(kind=kind(0d0)) :: complex8(3)
  integer :: size, ierror, rank, faults

  faults = 0
  call MPI_INIT(ierror)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
  call MPI_Sizeof(text, size, ierror)
  call check(5, 'MPI_a text')
  call PMPI_Sizeof(text, size, ierror)
  call check(5, 'PMPI_a text')
  call MPI_Sizeof(texts, size, ierror)
  call check(5, 'MPI_texts')
  call PMPI_Sizeof(texts, size, ierror)
  call check(5, 'PMPI_texts')
  call MPI_Sizeof(flag1, size, ierror)
  call check(1, 'MPI_logical of 1 byte')
  call PMPI_Sizeof(flag1, size, ierror)
  call check(1, 'PMPI_logical of 1 byte')
  call MPI_Sizeof(flag2, size, ierror)
  call check(2, 'MPI_logical of 2 bytes')
  call PMPI_Sizeof(flag2, size, ierror)
  call check(2, 'PMPI_logical of 2 bytes')
  call MPI_Sizeof(flag4, size, ierror)
  call check(4, 'MPI_logical')
  call PMPI_Sizeof(flag4, size, ierror)
  call check(4, 'PMPI_logical')
  call MPI_Sizeof(flag8, size, ierror)
  call check(8, 'MPI_logical of 8 bytes')
  call PMPI_Sizeof(flag8, size, ierror)
  call check(8, 'PMPI_logical of 8 bytes')
  call MPI_Sizeof(short(:,1), size, ierror)
  call check(1, 'MPI_a section')
  call PMPI_Sizeof(short(:,1), size, ierror)
  call check(1, 'PMPI_a section')
  call MPI_Sizeof(number2, size, ierror)
  call check(2, 'MPI_integer of 2 bytes')
  call PMPI_Sizeof(number2, size, ierror)
  call check(2, 'PMPI_integer of 2 bytes')
  call MPI_Sizeof(number4, size, ierror)
  call check(4, 'MPI_seven ranks')
  call PMPI_Sizeof(number4, size, ierror)
  call check(4, 'PMPI_seven ranks')
  call MPI_Sizeof(number8, size, ierror)
  call check(8, 'MPI_integer of 8 bytes')
  call PMPI_Sizeof(number8, size, ierror)
  call check(8, 'PMPI_integer of 8 bytes')
  call MPI_Sizeof(real4, size, ierror)
  call check(4, 'MPI_real')
  call PMPI_Sizeof(real4, size, ierror)
  call check(4, 'PMPI_real')
  call MPI_Sizeof(real4(2), size, ierror)
  call check(4, 'MPI_an element')
  call PMPI_Sizeof(real4(2), size, ierror)
  call check(4, 'PMPI_an element')
  call MPI_Sizeof(real8, size, ierror)
  call check(8, 'MPI_double precision')
  call PMPI_Sizeof(real8, size, ierror)
  call check(8, 'PMPI_double precision')
  call MPI_Sizeof(complex4, size, ierror)
  call check(8, 'MPI_complex')
  call PMPI_Sizeof(complex4, size, ierror)
  call check(8, 'PMPI_complex')
  call MPI_Sizeof(complex8, size, ierror)
  call check(16, 'MPI_complex of doubles')
  call PMPI_Sizeof(complex8, size, ierror)
  call check(16, 'PMPI_complex of doubles')
  if (rank == 0 .and. faults == 0) print *, 'ok'
  call MPI_FINALIZE(ierror)
contains
  subroutine check(right, text)
    integer, intent(in) :: right
    character(len=*), intent(in) :: text
    if (size == right .and. ierror == MPI_SUCCESS) return
    print *, 'wrong: ', text, size, ierror
    faults = faults + 1
  end subroutine
end program
