"""`fishplate compare`: the start apart from the loop, regions that a program or a user names, runs of other lengths."""

import json
import re
import subprocess

from comparison import compare
from harness import Problem

# Twenty turns of a loop behind a start of ten other messages; the argument `mark` marks the loop, `turns` each turn.
MARKED = """
#include <mpi.h>
#include <string.h>
int main(int argc, char **argv) {
    int rank, size;
    double own[64] = {0}, sum[64];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int at = 0; at < 10; at++) {
        MPI_Sendrecv(own, 1 + at % 3, MPI_DOUBLE, (rank + 1) % size, 0, sum, 64, MPI_DOUBLE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    int each = argc > 1 && !strcmp(argv[1], "turns"), once = argc > 1 && !strcmp(argv[1], "mark");
    if (once) MPI_Pcontrol(1);
    for (int at = 0; at < 20; at++) {
        if (each) MPI_Pcontrol(1);
        MPI_Allreduce(own, sum, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (each) MPI_Pcontrol(0);
    }
    if (once) MPI_Pcontrol(0);
    MPI_Finalize();
}
"""


def without_computing(world, file, *arguments, ranks=8):
    """Records heat in a trace without computing: what this host does meanwhile has no effect."""
    words = [world.mpiexec.parent / "fishplate", "run", "-n", ranks, "--fabric", "qdr", "--record", file, world.work / "heat", *arguments]
    subprocess.run(list(map(str, words)), check=True, capture_output=True)


def start_is_apart(world):
    """Two rails cost a longer start than one, and an iteration costs the same: they are equal, however few iterations there are."""
    file = world.work / "start.trace"
    for steps in (20, 60):
        words = ("--fabrics", "qdr,2xqdr", "--json")
        without_computing(world, file, 96, steps)
        # The shares, and how sure the answer is, take most of the time; the first number of steps shows them.
        is_whole = steps == 20
        out, _ = compare(world, *words, *([] if is_whole else ["--quick"]), traces=file)
        found = json.loads(out)
        one, two = found["rows"]
        if found["decides"] not in ("loop", "whole loop") or found["recordings"][0]["loop"]["iterations"] != steps:
            raise Problem(f"with {steps} steps the loop is {found['recordings']}, {found['decides']} decides")
        if not 0.995 < two["speed_up"] < 1.005:
            raise Problem(f"with {steps} steps the speed-up of the loop is {two['speed_up']}")
        if not is_whole:
            continue
        if not two["start_seconds"] > 1.2 * one["start_seconds"] > 0.3 * one["seconds"]:
            raise Problem(f"starts are {one['start_seconds']} and {two['start_seconds']} of {one['seconds']}")
        for row in found["rows"]:
            share = row["start_seconds"] / row["seconds"]
            if abs(row["shares"]["start"] - share) > 1e-9 or abs(sum(row["shares"].values()) - 1) > 1e-9:
                raise Problem(f"shares are {row['shares']}, and the start is {share}")
        if found["advice"]["best"] != "qdr" or found["advice"]["rival"] is not None:
            raise Problem(f"the advice is {found['advice']['sentence']}")


def other_lengths(world):
    """The recorded number of iterations takes the recorded time, and twice as many iterations two of them more."""
    file = world.work / "length.traces"
    compare(world, "--fabrics", "qdr", "-n", 4, "--recordings", 3, "--record", file, "--json", arguments=(96, 30))
    for number in (30, 3000):
        out, _ = compare(world, "--fabrics", "qdr,edr", "--iterations", number, "--json", traces=file)
        found = json.loads(out)
        for row in found["rows"]:
            if row["no_prediction"]:
                if found["decides"] != "whole loop" or "than in the first" not in row["no_prediction"]:
                    raise Problem(f"without a prediction {found['decides']} decides: {row}")
                continue
            wanted = row["seconds"] + (number - 30) * row["iteration_seconds"]
            if found["decides"] == {"iterations": number} and abs(row["deciding_seconds"] / wanted - 1) > 1e-9:
                raise Problem(f"{number} iterations take {row['deciding_seconds']}, not {wanted}")


def regions(world):
    """MPI_Pcontrol around the loop, or around each turn, and --after name the same twenty turns as the search."""
    (world.work / "marked.c").write_text(MARKED)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / "marked.c", "-o", world.work / "marked"], check=True)
    times = {}
    for argument, options, name in ((), (), "Loop found"), (("mark",), (), "MPI_Pcontrol"), (("turns",), (), "MPI_Pcontrol"), \
            ((), ("--after", "barrier"), "after MPI_Barrier"):
        out, _ = compare(world, "--fabrics", "qdr,edr", "-n", 4, "--quick", "--json", *options, program="marked", arguments=argument)
        found = json.loads(out)
        loop = found["recordings"][0]["loop"]
        if loop.get("iterations") != 20 or name not in loop["found"]:
            raise Problem(f"{argument} {options}: the loop is {loop}")
        times[argument, options] = found["rows"][0]["iteration_seconds"]


# Rank 0 computes before each sum, and the others do not.
UNEVEN = """
#include <mpi.h>
int main(int argc, char **argv) {
    int rank;
    double own = 0, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 12; step++) {
        volatile double x = 1;
        for (int i = 0; i < 30000 && rank == 0; i++) x = x * 0.999 + 1;
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""


def even_ranks(world):
    """A rank whose recorded computing is longer than its peers' is as long with --even."""
    (world.work / "uneven.c").write_text(UNEVEN)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / "uneven.c", "-o", world.work / "uneven"], check=True)
    file = world.work / "uneven.traces"
    compare(world, "--fabrics", "qdr", "-n", 4, "--recordings", 3, "--record", file, program="uneven", arguments=())
    shares = {}
    for options in ((), ("--even",)):
        out, _ = compare(world, "--fabrics", "qdr,edr", "--json", *options, traces=file)
        row = json.loads(out)["rows"][0]
        # Work that the first rank has alone before a call is dependence.
        parts = ("imbalance", "noise") if options else ("imbalance", "noise", "dependence")
        shares[options] = sum(row["shares"][part] for part in parts)
    if not shares[()] > 0.2 > 0.1 > shares[("--even",)]:
        raise Problem(f"the shares of waiting are {shares}")


def old_records(world):
    """A record of an older format is refused with the remedy, and stays as it is."""
    file = world.work / "old.computing"
    old = "# fishplate: what each rank computed before each of its calls, in nanoseconds\nversion 3\nprogram ./a\nranks 1\n"
    file.write_text(old)
    _, errors = compare(world, "--fabrics", "qdr", traces=file, code=2)
    if not re.search("old.computing: it is a compute trace of an earlier version, .*record it again", errors) or file.read_text() != old:
        raise Problem(errors)


def wrong_region(*options, says, keeps=False):
    def test(world):
        file = world.work / "region.traces"
        file.unlink(missing_ok=True)
        words = ("--fabrics", "qdr,edr", "-n", 2, "--recordings", 1, "--record", file)
        _, errors = compare(world, *words, *options, code=1 if keeps else 2)
        if not re.search(says, errors):
            raise Problem(f"it does not say {says!r}: {errors}")
        if keeps and not file.read_bytes().startswith(b"fishplate trace"):
            raise Problem("the recording is lost")
    return f"a comparison refuses {' '.join(map(str, options))}", test


def tests() -> list:
    return [
        ("a comparison is about the loop, not about the start", start_is_apart),
        ("a comparison of runs of other lengths", other_lengths),
        ("a comparison of a marked part", regions),
        ("a comparison of even ranks", even_ranks),
        ("a comparison refuses records of an older format", old_records),
        wrong_region("--iterations", 0, says="--iterations"),
        wrong_region("--after", "MPI_Barrier:0", says="--after"),
        wrong_region("--after", "MPI_Allreduc", says="MPI_Allreduce", keeps=True),
        wrong_region("--after", "MPI_Allreduce:1000", says="MPI_Allreduce .*1000|1000 .*MPI_Allreduce", keeps=True),
    ]
