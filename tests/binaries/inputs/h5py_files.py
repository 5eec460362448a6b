"""Writes and reads one HDF5 file with all ranks: rows, columns, chunks, and metadata of every rank."""

import h5py
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
ROWS, COLUMNS = 24, 60


def value(row, column):
    return row * 1000 + column


rows, columns = numpy.arange(ROWS)[:, None], numpy.arange(COLUMNS)[None, :]
whole = value(rows, columns)

with h5py.File("parallel.h5", "w", driver="mpio", comm=world) as file:
    by_rows = file.create_dataset("rows", (ROWS, COLUMNS), "i8")
    by_columns = file.create_dataset("columns", (ROWS, COLUMNS), "i8")
    in_chunks = file.create_dataset("chunks", (ROWS, COLUMNS), "i8", chunks=(5, 7))
    by_rows[rank::size] = whole[rank::size]
    with by_columns.collective:
        by_columns[:, rank::size] = whole[:, rank::size]
    with in_chunks.collective:
        in_chunks[rank::size, :] = whole[rank::size, :]
    file.atomic = True
    file["rows"].attrs["ranks"] = size
    for other in range(size):
        file.create_dataset(f"of rank {other}", (5,), "i8")
    file[f"of rank {rank}"][:] = rank

wrong = []


def check(what, is_right):
    if not is_right:
        wrong.append(what)


with h5py.File("parallel.h5", "r", driver="mpio", comm=world) as file:
    for name in ("rows", "columns", "chunks"):
        with file[name].collective:
            check(f"{name} together", (file[name][:] == whole).all())
        check(f"{name} alone", (file[name][:, rank] == whole[:, rank]).all())
    check("attribute", file["rows"].attrs["ranks"] == size)
    for other in range(size):
        check(f"of rank {other}", (file[f"of rank {other}"][:] == other).all())

wrong = sum(world.allgather([f"{what} on rank {rank}" for what in wrong]), [])
if rank == 0:
    print(f"h5py {h5py.version.version}, HDF5 {h5py.version.hdf5_version}: {size} ranks have " +
          (f"read other data: {', '.join(wrong)}" if wrong else "written and read one file"))
