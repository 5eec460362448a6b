"""Messages of many lengths between two hosts for some seconds through mpi4py, checked byte by byte. A rail may break after
"under way". The seconds are the argument.
"""

import sys
import time

from mpi4py import MPI

LENGTHS = (0, 8, 700, 3000, 12 << 10, 70 << 10, 1 << 20)
# Rounds before a rail may break, and the fewest in all.
BEFORE, FEWEST = 2 * len(LENGTHS), 4 * len(LENGTHS)
PERIOD = 251


def contents(length: int, number: int) -> bytes:
    repeated = bytes((number + at) % PERIOD for at in range(PERIOD))
    return (repeated * (length // PERIOD + 1))[:length]


def exchange(peer: int, number: int) -> None:
    """One buffer and one object to the peer, and the same back; the round's number gives lengths and contents."""
    comm = MPI.COMM_WORLD
    length = LENGTHS[number % len(LENGTHS)]
    expected, received = contents(length, number + peer), bytearray(length)
    comm.Sendrecv(contents(length, number + comm.rank), peer, number, received, peer, number)
    pair = comm.sendrecv((comm.rank, contents(length // 2, number)), peer, number, None, peer, number)
    if received != expected or pair != (peer, contents(length // 2, number)):
        sys.exit(f"rank {comm.rank}: wrong contents of round {number}, {length} bytes from rank {peer}")


def main(seconds: float) -> None:
    comm = MPI.COMM_WORLD
    peer, began, number, more = 1 - comm.rank, time.monotonic(), 0, True
    while more:
        exchange(peer, number)
        number += 1
        if comm.rank == 0 and number == BEFORE:
            print("under way", flush=True)
        more = comm.bcast(number < FEWEST or time.monotonic() - began < seconds)
    if comm.allreduce(number) == 2 * number and comm.rank == 0:
        print(" ok", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
