"""A loop of MPI_Allreduce in mpi4py. Argument: steps."""

import sys

from mpi4py import MPI

steps = int(sys.argv[1])
total = 0
for step in range(steps):
    own = sum(range(2000)) + step
    total = MPI.COMM_WORLD.allreduce(own)
if MPI.COMM_WORLD.rank == 0:
    print(total)
