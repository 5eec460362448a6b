"""Work inside MPI takes time on modelled machines: sums of reductions, the program's functions, packing."""

import re

from harness import Problem
from modelled import rounds

# What the program does ten times: the first kinds on vectors of so many doubles.
COUNT, TIMES = 1 << 16, 10
BYTES = 8 * COUNT
# Calls and readings of the clock around the work, in seconds.
SLACK = 2e-6


def run(world, kind, *options, fabric="qdr", count=COUNT):
    """The time of the work in seconds."""
    return rounds(world, kind, count, options=options, ranks=2, fabric=fabric, program="inside").times[0]


def check(what, found, wanted):
    if not wanted <= found <= wanted + SLACK:
        raise Problem(f"{what} takes {found} s, not {wanted} s")


def of_the_machine(world):
    """Without a recording work takes the rate of the machine, on every computer the same."""
    for rate in (1, 4):
        options = ("--set", f"host.local={8 * rate} Gb/s")
        each = TIMES * BYTES * 1e-9 / rate
        check(f"a sum at {rate} GB/s", run(world, "sum", *options), each)
        # A line of 64 B for each element of 8.
        check(f"a column at {rate} GB/s", run(world, "column", *options), 8 * each)
        check("a function", run(world, "function", *options), 0)


def of_a_recording(world):
    """A recording has the time of each kind, and replays take what it says."""
    file = world.work / "inside.txt"
    for kind, line in (("sum", "MPI_SUM:MPI_DOUBLE"), ("function", "function:0"), ("column", "strided:8:128")):
        run(world, kind, "--compute", "record", file)
        text = file.read_text()
        found = re.search(rf"^work {line} (\d+) ([1-9]\d*)$", text, re.M)
        length = COUNT if kind == "function" else BYTES
        if not found or int(found[1]) != length:
            raise Problem(f"{kind}: no time of {line} for {length} in {text[:800]}")
        # A nanosecond for each byte or element.
        file.write_text(text.replace(found[0], f"work {line} {length} 1024000"))
        wanted = TIMES * length * 1e-9
        times = {run(world, kind, "--compute", "replay", file, fabric=fabric) - computed(text) for fabric in ("qdr", "qdr", "edr")}
        if min(times) < wanted or max(times) > wanted + 10 * SLACK:
            raise Problem(f"{kind}: replays take {times} s beside the program's computing, not {wanted} s")


def computed(text: str) -> float:
    """The computing of rank 0 between the readings of the clock, in seconds."""
    part = text[text.index("rank 0 calls"):text.index("rank 1 calls")]
    lines = part[part.index("MPI_Wtime"):].splitlines()[1:]
    last = next(at for at, line in enumerate(lines) if line.startswith("MPI_Wtime"))
    return sum(int(line.split()[1]) for line in lines[:last + 1]) * 1e-9


def of_a_handler(world):
    """Functions that MPI calls back are computing of the program."""
    file = world.work / "handler.txt"
    recorded = run(world, "handler", "--compute", "record", file, count=1)
    computing = computed(file.read_text())
    # Each call computes for at least 100 us on any processor.
    if not TIMES * 100e-6 < computing <= recorded:
        raise Problem(f"{computing} s of {recorded} s are computing")
    if (again := run(world, "handler", "--compute", "replay", file, count=1)) != recorded:
        raise Problem(f"recorded {recorded} s, replayed {again} s")


def tests() -> list:
    return [
        ("work inside MPI at the machine's rate", of_the_machine),
        ("work inside MPI at the rates of a recording", of_a_recording),
        ("a function that MPI calls back is computing", of_a_handler),
    ]
