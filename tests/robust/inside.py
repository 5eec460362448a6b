"""Work inside MPI takes time on modelled machines: sums of reductions, the program's functions, packing."""

import json
import re

from harness import Problem
from modelled import rounds
from watched import Job

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


def per_rank(world, kind, *options, count=COUNT) -> tuple[list, float]:
    """The times of the ranks in a run, and the whole time."""
    file = world.work / "inside.json"
    run(world, kind, "--summary", f"json={file}", *options, count=count)
    found = json.loads(file.read_text())
    return found["per_rank"], found["virtual_s"]


def replay(world, file, fabric) -> tuple[list, float]:
    """The times of the ranks in a replay, and the whole time."""
    summary = world.work / "replay.json"
    with Job(world.work, [world.mpiexec.parent / "fishplate", "run", "--fabric", fabric, "--summary", f"json={summary}", file]) as job:
        if (ended := job.end(20)) != 0:
            raise Problem(f"exit status {ended}: {job.err[-800:]}")
    found = json.loads(summary.read_text())
    return found["per_rank"], found["virtual_s"]


def of_a_recording(world):
    """A recording has the time of each kind, and replays take what it says."""
    file = world.work / "inside.trace"
    for kind, line in (("sum", "MPI_SUM:MPI_DOUBLE"), ("function", "function:0"), ("column", "strided:8:128")):
        run(world, kind, "--compute", "recorded", "--record", file)
        found = re.search(rf"{line} (\d+) ([1-9]\d*)".encode(), file.read_bytes())
        length = COUNT if kind == "function" else BYTES
        if not found or int(found[1]) != length:
            raise Problem(f"{kind}: no time of {line} for {length} in the trace")
        times = [replay(world, file, fabric)[0][0]["inside_s"] for fabric in ("qdr", "qdr", "edr")]
        # Picoseconds of 1,024 bytes or elements. Each call of the program's function has a time of its own.
        wanted = TIMES * length * int(found[2]) / 1024 * 1e-12
        if len(set(times)) != 1 or not 0 < times[0] or kind != "function" and abs(times[0] / wanted - 1) > 0.01:
            raise Problem(f"{kind}: replays work for {times} s, not {wanted} s")


def of_a_handler(world):
    """Functions that MPI calls back are computing of the program, and a call that has failed takes the computing before it alone."""
    file = world.work / "handler.trace"
    recorded, whole = per_rank(world, "handler", "--compute", "measured", "--record", file, count=1)
    # Each call computes for at least 100 us on any processor.
    if not TIMES * 100e-6 < recorded[0]["compute_s"] <= whole:
        raise Problem(f"{recorded} of {whole} s")
    if (again := replay(world, file, "qdr")) != (recorded, whole):
        raise Problem(f"recorded {recorded}, {whole} s; replayed {again}")


def tests() -> list:
    return [
        ("work inside MPI at the machine's rate", of_the_machine),
        ("work inside MPI at the rates of a recording", of_a_recording),
        ("a function that MPI calls back is computing", of_a_handler),
    ]
