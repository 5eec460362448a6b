#!/usr/bin/env python3
"""Times messages whose send buffers have gaps: by packets, by reads of the receiver, and by the path that the library learns.

Half of the time of a round trip between two ranks, in microseconds, by length of the message and of its runs: the three take turns for some
rounds, each gives the median of its batches, and the median of the rounds is printed. Reads are not made where the runs are shorter than
`LEAST_RUN` of crates/library/channel/src/run_list.rs: build the library with a small one to find where reads begin to pay."""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
PATHS = {"packets": {"FISHPLATE_PROTOCOL": "packets"}, "reads": {"FISHPLATE_PROTOCOL": "read-rendezvous"}, "learned": {}}


def times(prefix: Path, program: Path, least_run: int, env: dict) -> dict:
    command = [prefix / "bin/mpiexec", "-n", "2", "--bind-to", "core", program, str(least_run)]
    out = subprocess.run(command, env=os.environ | env, check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in out.splitlines())
    return {(int(length), int(run)): float(time) for length, run, time in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--least-run", type=int, default=1024, metavar="BYTES")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "runs"
        subprocess.run([options.prefix / "bin/mpicc", "-O2", "-o", program, HERE / "runs.c"], check=True)
        found = {path: [] for path in PATHS}
        for _ in range(options.rounds):
            for path, env in PATHS.items():
                found[path].append(times(options.prefix, program, options.least_run, env))
    print(f"{'message':>8} {'run':>6}" + "".join(f"{path:>10}" for path in PATHS))
    for row in found["packets"][0]:
        print(f"{row[0]:8} {row[1]:6}" + "".join(f"{median(of[row] for of in found[path]):10.2f}" for path in PATHS))


if __name__ == "__main__":
    main()
