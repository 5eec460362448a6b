#!/usr/bin/env python3
"""Times collective operations between two groups of ranks beside other MPI libraries.

    measurements/collectives/between.py [--against $(scripts/peers.sh)] [--prefix build] [--ranks 4] [--rounds 9] [--sizes 8,64,...]

The libraries run alternately, and the first of them changes from round to round. The table has the median of each library in
microseconds, and ours over that of the best other one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OURS = "fishplate"


def command(prefix: Path, ranks: int) -> tuple[list[str], dict[str, str]]:
    """The launcher of a library, and the environment in which it finds its own files."""
    names = ["mpiexec.hydra", "mpiexec"]
    launcher = next(prefix / "bin" / name for name in names if (prefix / "bin" / name).exists())
    libraries = [prefix / "lib", prefix / "opt/mpi/libfabric/lib"]
    path = ":".join(map(str, libraries))
    return [str(launcher), "-n", str(ranks)], os.environ | {"LD_LIBRARY_PATH": path, "I_MPI_ROOT": str(prefix)}


def measure(prefix: Path, program: Path, given) -> dict[tuple[str, int], float]:
    words, environment = command(prefix, given.ranks)
    run = subprocess.run([*words, str(program), str(given.seconds), *given.sizes.split(",")], env=environment, capture_output=True, text=True,
                         timeout=600)
    if run.returncode != 0:
        sys.exit(f"{prefix}: the job ended with {run.returncode}\n{run.stdout}{run.stderr}")
    lines = [line.split() for line in run.stdout.splitlines()]
    return {(name, int(size)): float(time) for name, size, time in lines}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build")
    parser.add_argument("--against", default="", metavar="PATH,...", help="libraries to compare with, as scripts/peers.sh prints them")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.05, help="time of one figure")
    parser.add_argument("--sizes", default="8,64,512,4096,32768,262144,1048576")
    given = parser.parse_args()
    prefixes = {OURS: given.prefix.resolve()}
    prefixes |= {Path(path).parent.parent.name: Path(path).resolve().parent.parent for path in given.against.split(",") if path}
    times: dict[str, dict] = {name: {} for name in prefixes}
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(scratch) / "between"
        subprocess.run([prefixes[OURS] / "bin/mpicc", "-O2", "-o", program, HERE / "between.c"], check=True)
        names = list(prefixes)
        for round_ in range(given.rounds):
            first = round_ % len(names)
            for name in names[first:] + names[:first]:
                for key, time in measure(prefixes[name], program, given).items():
                    times[name].setdefault(key, []).append(time)
    others = [name for name in prefixes if name != OURS]
    print(f"{'operation':<12}{'bytes':>9}" + "".join(f"{name:>12}" for name in prefixes) + (f"{'ratio':>8}" if others else ""))
    for key in times[OURS]:
        medians = {name: statistics.median(times[name][key]) for name in prefixes}
        ratio = f"{medians[OURS] / min(medians[name] for name in others):8.2f}" if others else ""
        print(f"{key[0]:<12}{key[1]:>9}" + "".join(f"{medians[name]:12.2f}" for name in prefixes) + ratio)


if __name__ == "__main__":
    main()
