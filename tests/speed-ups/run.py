#!/usr/bin/env python3
"""Compares speed-ups of `fishplate compare` with those by hand, for loops whose computing and exchange add up.

    tests/speed-ups/run.py [--prefix build] [--only TEXT] [--list] [--short]

By hand a step takes the time of its computing, as the recording has it on the first machine, and the time of its exchange alone: that of
`fishplate bench` for a sum, and for transposes and halos that of the loop without computing (copies of a rank to itself take as long as on this
computer there, too). A worker of a master has the time of its task and twice the latency. A recording on a busy computer has ranks that compute
unequally, for which the calculation has no term, so ranks compute for their mean (--even). Limit: 3 %, because a step without computing agrees
with the calculation that closely. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

MACHINES = ["qdr", "2xqdr", "fdr", "edr", "25gbe-roce", "10gbe-tcp"]
# The workers of a master have equally many of the steps.
RANKS, STEPS, SECONDS = 4, 42, 300
LIMIT = 0.03
# Exchange, microseconds of computing, bytes.
LOOPS = [("sum", 20, 8), ("transpose", 500, 64 << 10), ("transpose", 2000, 1 << 20), ("halo", 50, 1 << 10), ("halo", 500, 256 << 10),
         ("halo", 2000, 4 << 20), ("master", 200, 8)]
# Of these, the ones that take seconds.
SHORT_BYTES = 1 << 10
# The benchmark of an exchange, its ranks, and how often an exchange has it.
BENCHMARKS = {"sum": ("allreduce", RANKS, 1), "master": ("latency", 2, 2)}


def found(prefix: Path, *words) -> list:
    ran = harness.run([str(prefix / "bin/fishplate"), *map(str, words)], seconds=SECONDS)
    if ran.code != 0:
        raise Problem(f"`fishplate {' '.join(map(str, words))}` ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return [json.loads(line) for line in ran.out.splitlines()]


def compared(prefix: Path, loop: Path, exchange: str, microseconds: int, size: int) -> dict:
    """The time of a step on each machine, in microseconds; for a master, that of a worker's step."""
    words = ["compare", "-q", "--quick", "--even", "--json", "--fabrics", ",".join(MACHINES), "-n", RANKS]
    rows = found(prefix, *words, loop, exchange, STEPS, microseconds, size)[0]["rows"]
    return {row["machine"]: row["deciding_seconds"] / STEPS * (RANKS - 1) * 1e6 if exchange == "master" else row["iteration_seconds"] * 1e6 for row in rows}


def by_hand(prefix: Path, loop: Path, exchange: str, size: int) -> dict:
    """The time of an exchange on each machine, in microseconds."""
    if exchange not in BENCHMARKS:
        return compared(prefix, loop, exchange, 0, size)
    benchmark, ranks, times = BENCHMARKS[exchange]
    lines = found(prefix, "bench", benchmark, "-n", ranks, "-m", f"{size}:{size}", "--fabric", ",".join(MACHINES), "--json")
    return {line["fabric"]: times * line["median"] for line in lines}


def speed_ups(prefix: Path, loop: Path, exchange: str, microseconds: int, size: int) -> str:
    steps = compared(prefix, loop, exchange, microseconds, size)
    exchanges = by_hand(prefix, loop, exchange, size)
    first = MACHINES[0]
    computing = steps[first] - exchanges[first]
    said, missed = [], []
    for machine in MACHINES[1:]:
        hand = steps[first] / (computing + exchanges[machine])
        off = steps[first] / steps[machine] / hand - 1
        said.append(f"{machine} {steps[first] / steps[machine]:.3f} ({off:+.1%})")
        if abs(off) > LIMIT:
            missed.append(machine)
    if missed:
        raise Problem(f"off by more than {LIMIT:.0%} on {', '.join(missed)}: {', '.join(said)}")
    return ", ".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help=f"only exchanges of up to {SHORT_BYTES} B")
    options = parser.parse_args()
    loops = [words for words in LOOPS if words[2] <= SHORT_BYTES or not options.short]
    chosen = {name: words for words in loops if options.only in (name := f"{words[0]} of {words[2]} B")}
    if options.list:
        print("\n".join(chosen))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    with tempfile.TemporaryDirectory(prefix="speed-ups-") as folder:
        loop = Path(folder) / "loop"
        subprocess.run([prefix / "bin/mpicc", "-O2", HERE / "loop.c", "-o", loop], check=True)
        return harness.run_suite("speed-ups", [
            Case(name, lambda prefix, words=words: speed_ups(prefix, loop, *words)) for name, words in chosen.items()], prefix)


if __name__ == "__main__":
    sys.exit(main())
