C     MPI_SIZEOF and PMPI_SIZEOF by the header in fixed form.
      PROGRAM SIZES
      IMPLICIT NONE
      INCLUDE 'mpif.h'
      INTEGER RANK, IERR, N(4), I, NUMBERS(3)
      DOUBLE PRECISION X
      LOGICAL RIGHT
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_SIZEOF(X, N(1), IERR)
      RIGHT = IERR .EQ. MPI_SUCCESS
      CALL PMPI_SIZEOF(X, N(2), IERR)
      RIGHT = RIGHT .AND. IERR .EQ. MPI_SUCCESS
      CALL MPI_SIZEOF(NUMBERS, N(3), IERR)
      CALL PMPI_SIZEOF(NUMBERS(2), N(4), IERR)
      DO 10 I = 1, 2
        IF (N(I) .NE. 8) PRINT *, 'double precision', N(I)
        IF (N(I + 2) .NE. 4) PRINT *, 'integers', N(I + 2)
        RIGHT = RIGHT .AND. N(I) .EQ. 8 .AND. N(I + 2) .EQ. 4
   10 CONTINUE
      IF (RANK .EQ. 0 .AND. RIGHT) PRINT *, 'ok'
      CALL MPI_FINALIZE(IERR)
      END
