#!/usr/bin/env python3
"""Compares programs several times beside two busy loops: each comparison should name the same machine with the same certainty.

    measurements/lengths/steady.py [--prefix build] [--times 6] [--quiet] [PROGRAM...]

The programs are those of measurements/lengths/run.py, examples/heat.f90, and the words of each PROGRAM (a quoted command line). A line shows each comparison;
the last column counts those that differ from the most frequent answer. Limit: one of 36 may move by one word of certainty."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import run

MACHINES, RANKS = "qdr,2xqdr,fdr,edr", 4


def answers(prefix: Path, words: list, times: int) -> list:
    found = []
    for _ in range(times):
        advice = run.compared(prefix, MACHINES, RANKS, words)["advice"]
        found.append((advice["best"], advice["certainty"]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=run.ROOT / "build", help="the installed tree")
    parser.add_argument("--times", type=int, default=6, metavar="COUNT", help="comparisons of each program")
    parser.add_argument("--quiet", action="store_true", help="without busy loops")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="further programs")
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(0 if options.quiet else 2)]
    others = 0
    try:
        with tempfile.TemporaryDirectory(prefix="steady-") as folder:
            work = Path(folder)
            programs = {name: [*words, 100] for name, words in run.built(prefix, work).items()}
            subprocess.run([prefix / "bin/mpifort", "-O2", run.ROOT / "examples/heat.f90", "-o", work / "heat-fortran"], check=True)
            programs["fortran"] = [work / "heat-fortran", 256, 100]
            programs |= {Path(words.split()[0]).name: shlex.split(words) for words in options.programs}
            for name, words in programs.items():
                found = Counter(answers(prefix, words, options.times))
                differ = options.times - found.most_common(1)[0][1]
                others += differ
                said = "; ".join(f"{count} x {best}, {certainty}" for (best, certainty), count in found.most_common())
                print(f"{name:10} {said:80} {differ}", flush=True)
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    print(f"{others} of {options.times * len(programs)} differ")
    return 0 if others <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
