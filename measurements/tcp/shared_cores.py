#!/usr/bin/env python3
"""Measures an exchange that polls (polled.c) between two network namespaces on the same cores, with each choice of FISHPLATE_WAIT in turn.

    measurements/tcp/shared_cores.py [--prefix build] [--rounds 5] [--levels 20]

A namespace has a /sys of its own, so each host takes the cores of the other for free, as containers do. The table has the medians in
seconds. It is a measurement and belongs to no suite.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE)]
from network import Hosts, missing, remove_leftovers  # noqa: E402

WAITS = ["auto", "sleep", "yield", "spin"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--levels", type=int, default=20)
    given = parser.parse_args()
    if why := missing():
        sys.exit(why)
    prefix = given.prefix.resolve()
    program = prefix / "tests/tcp/polled"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([prefix / "bin/mpicc", "-O2", "-o", program, HERE / "polled.c"], check=True)
    remove_leftovers()
    print("ranks  " + "".join(f"{wait:>8}" for wait in WAITS))
    with Hosts(prefix) as hosts:
        for ranks in (2, 4, 8):
            times = {wait: [] for wait in WAITS}
            for _ in range(given.rounds):
                for wait in WAITS:
                    job = hosts.job(ranks, program, given.levels, per_host=ranks // 2, env={"FISHPLATE_WAIT": wait}, seconds=300)
                    times[wait].append(float(job.out))
            print(f"{ranks:5}  " + "".join(f"{statistics.median(times[wait]):8.2f}" for wait in WAITS), flush=True)


if __name__ == "__main__":
    main()
