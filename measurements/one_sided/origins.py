#!/usr/bin/env python3
"""Measures accumulates of 8 KiB of 1, 2, 4 and 16 origins into disjoint places of one window, beside other libraries.

    measurements/one_sided/origins.py [--prefix build] [--against NAME=PREFIX …] [--origins 1,2,4,16] [--rounds 5] [--milliseconds 300]

Each cell is the accumulates of all origins in a second, in thousands: the median of rounds in which the libraries take turns. The target
sleeps, so on two cores 4 and 16 origins share them. Libraries to compare with come from `scripts/peers.sh`, as `--against
mpich=build/peers/mpich`. It is a measurement and belongs to no suite: run it on a quiet machine.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402


def rate(prefix: Path, program: Path, origins: int, milliseconds: int) -> float:
    command = [str(prefix / "bin/mpiexec"), "-n", str(origins + 1), str(program), str(milliseconds)]
    ran = harness.run(command, seconds=120, env={"LD_LIBRARY_PATH": str(prefix / "lib"), "FI_PROVIDER": "tcp", "I_MPI_FABRICS": "shm"})
    if ran.code != 0:
        sys.exit(f"{' '.join(command)}: {ran.out}{ran.err}")
    return float(ran.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    harness.add_prefix_option(parser)
    parser.add_argument("--against", action="append", default=[], metavar="NAME=PREFIX")
    parser.add_argument("--origins", default="1,2,4,16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=int, default=300)
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    libraries = {"fishplate": prefix} | {name: Path(path).resolve() for name, path in (one.split("=", 1) for one in options.against)}
    numbers = list(map(int, options.origins.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "origins"
        subprocess.run([prefix / "bin/mpicc", "-O2", HERE / "origins.c", "-o", program], check=True)
        rates = {}
        for _ in range(options.rounds):
            for origins in numbers:
                for name, place in libraries.items():
                    rates.setdefault((origins, name), []).append(rate(place, program, origins, options.milliseconds) / 1000)
    print("| origins | " + " | ".join(libraries) + " |\n| ---: |" + " ---: |" * len(libraries))
    for origins in numbers:
        print(f"| {origins} | " + " | ".join(f"{statistics.median(rates[origins, name]):,.0f}" for name in libraries) + " |")


if __name__ == "__main__":
    main()
