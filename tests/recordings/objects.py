"""A program of mpi4py: objects and buffers, point to point and by collective operations."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
for step in range(20):
    comm.send({"step": step, "rank": rank}, dest=right, tag=step)
    assert comm.recv(source=left, tag=step) == {"step": step, "rank": left}
    buffer = bytearray(4096)
    request = comm.Irecv(buffer, source=left)
    comm.Send(bytes([rank]) * 4096, dest=right)
    request.Wait()
    assert buffer[-1] == left
    assert comm.allreduce(rank) == size * (size - 1) // 2
part = comm.Split(rank % 2, rank)
assert part.bcast("text", root=0) == "text"
part.Free()
print(sum(comm.gather(rank) or []))
