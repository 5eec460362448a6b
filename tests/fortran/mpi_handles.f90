! The types of handles in the module mpi: their member, comparison of scalars and arrays, and what mpi_f08 makes of them.
module of_f08
  use mpi_f08
  implicit none
contains
  integer function size_of(comm)
    type(MPI_Comm), intent(in) :: comm
    call MPI_Comm_size(comm, size_of)
  end function
end module

program handles
  use mpi
  use of_f08, only: size_of
  implicit none
  integer :: ierror, rank, size, faults
  type(MPI_Comm) :: comms(2)
  type(MPI_Datatype) :: datatypes(2)
  type(MPI_Errhandler) :: errhandlers(2)
  type(MPI_Group) :: groups(2)
  type(MPI_Info) :: infos(2)
  type(MPI_Message) :: messages(2)
  type(MPI_Op) :: ops(2)
  type(MPI_File) :: file
  type(MPI_Request) :: request
  type(MPI_Session) :: session
  type(MPI_Win) :: win

  faults = 0
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierror)
  comms%MPI_VAL = [MPI_COMM_WORLD, MPI_COMM_SELF]
  call check(comms(1) /= comms(2) .and. .not. comms(1) == comms(2), 'MPI_Comm, two')
  call check(all(comms == comms .and. .not. comms /= comms), 'MPI_Comm, one')
  datatypes%MPI_VAL = [MPI_INTEGER, MPI_REAL]
  call check(datatypes(1) /= datatypes(2) .and. .not. datatypes(1) == datatypes(2), 'MPI_Datatype, two')
  call check(all(datatypes == datatypes .and. .not. datatypes /= datatypes), 'MPI_Datatype, one')
  errhandlers%MPI_VAL = [MPI_ERRORS_RETURN, MPI_ERRORS_ARE_FATAL]
  call check(errhandlers(1) /= errhandlers(2) .and. .not. errhandlers(1) == errhandlers(2), 'MPI_Errhandler, two')
  call check(all(errhandlers == errhandlers .and. .not. errhandlers /= errhandlers), 'MPI_Errhandler, one')
  groups%MPI_VAL = [MPI_GROUP_EMPTY, MPI_GROUP_NULL]
  call check(groups(1) /= groups(2) .and. .not. groups(1) == groups(2), 'MPI_Group, two')
  call check(all(groups == groups .and. .not. groups /= groups), 'MPI_Group, one')
  infos%MPI_VAL = [MPI_INFO_ENV, MPI_INFO_NULL]
  call check(infos(1) /= infos(2) .and. .not. infos(1) == infos(2), 'MPI_Info, two')
  call check(all(infos == infos .and. .not. infos /= infos), 'MPI_Info, one')
  messages%MPI_VAL = [MPI_MESSAGE_NO_PROC, MPI_MESSAGE_NULL]
  call check(messages(1) /= messages(2) .and. .not. messages(1) == messages(2), 'MPI_Message, two')
  call check(all(messages == messages .and. .not. messages /= messages), 'MPI_Message, one')
  ops%MPI_VAL = [MPI_SUM, MPI_MAX]
  call check(ops(1) /= ops(2) .and. .not. ops(1) == ops(2), 'MPI_Op, two')
  call check(all(ops == ops .and. .not. ops /= ops), 'MPI_Op, one')
  file%MPI_VAL = MPI_FILE_NULL
  call check(file == MPI_File(MPI_FILE_NULL) .and. file .ne. MPI_File(MPI_FILE_NULL + 1), 'MPI_File')
  request%MPI_VAL = MPI_REQUEST_NULL
  call check(request == MPI_Request(MPI_REQUEST_NULL) .and. request .ne. MPI_Request(MPI_REQUEST_NULL + 1), 'MPI_Request')
  session%MPI_VAL = MPI_SESSION_NULL
  call check(session == MPI_Session(MPI_SESSION_NULL) .and. session .ne. MPI_Session(MPI_SESSION_NULL + 1), 'MPI_Session')
  win%MPI_VAL = MPI_WIN_NULL
  call check(win == MPI_Win(MPI_WIN_NULL) .and. win .ne. MPI_Win(MPI_WIN_NULL + 1), 'MPI_Win')
  call check(size_of(comms(1)) == size .and. size_of(comms(2)) == 1, 'a handle for mpi_f08')
  if (rank == 0 .and. faults == 0) print *, 'ok'
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
