#!/usr/bin/env python3
"""Measures operations on a window of MPI_Win_create whose target computes: in memory, and over TCP between two network namespaces.

    measurements/progress/measure.py [--prefix build] [--operations 1000] [--pause-us 500] [--only memory|tcp]

The columns are median, 99th percentile and maximum in microseconds, from before MPI_Win_lock to after MPI_Win_unlock. It is a measurement
and belongs to no suite: run it on a quiet machine. TCP needs root.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "tests/tcp")]
import harness  # noqa: E402
from programs import run as c  # noqa: E402
from network import Hosts  # noqa: E402

SECONDS = 600


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=harness.ROOT / "build")
    parser.add_argument("--operations", type=int, default=1000)
    parser.add_argument("--pause-us", type=int, default=500)
    parser.add_argument("--only", choices=["memory", "tcp"])
    options = parser.parse_args()
    prefix = options.prefix.resolve()
    for name, said in c.compile_all(prefix, [HERE / "computing.c"]).items():
        sys.exit(f"{name} does not compile: {said}")
    command = [str(c.programs(prefix) / "computing"), str(options.operations), str(options.pause_us)]
    if options.only != "tcp":
        print("memory", flush=True)
        launcher = [str(prefix / "bin" / "mpiexec"), "-n", "2"]
        subprocess.run([*launcher, *command], check=True, timeout=SECONDS, env=os.environ)
    if options.only != "memory":
        print("TCP between two network namespaces", flush=True)
        with Hosts(prefix) as hosts:
            ran = hosts.job(2, *command, seconds=SECONDS, env={})
            print(ran.out, end="")
            if ran.code != 0:
                sys.exit(ran.err)


if __name__ == "__main__":
    main()
