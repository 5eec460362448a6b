#!/usr/bin/env python3
"""What `fishplate record` adds to calls: a rank that sends to itself, with the library preloaded and without, in alternating pairs.

    measurements/recording/run.py [--prefix build] [--rounds 11]

The rank runs under PyPI's MPICH (scripts/peers.sh). An iteration has three calls; with computing before the first of them, that one comes after a
long gap, where the processor time is read. Prints the medians, and half the distance of the quartiles."""

import argparse
import os
import subprocess
import tempfile
from pathlib import Path
from statistics import median, quantiles

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEER = ROOT / "build/peers/mpich"
# Iterations, and computing in each of them, in nanoseconds.
SHORT, LONG = (333_333, 0), (20_000, 30_000)
CALLS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--rounds", type=int, default=11)
    options = parser.parse_args()
    subprocess.run([ROOT / "scripts/peers.sh"], stdout=subprocess.DEVNULL, check=True)
    library = (options.prefix / "lib/libfishplate_record.so").resolve()
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "calls"
        subprocess.run(["cc", "-O2", f"-I{PEER}/include", HERE / "calls.c", "-o", program, f"-L{PEER}/lib", "-lmpi", f"-Wl,-rpath,{PEER}/lib"], check=True)

        def nanoseconds(kind: tuple, recorded: bool) -> float:
            variables = {"LD_PRELOAD": str(library), "FISHPLATE_RECORD": f"{name}/parts"} if recorded else {}
            ran = subprocess.run([program, *map(str, kind)], env=os.environ | variables, capture_output=True, text=True, check=True)
            return float(ran.stdout)

        added = {kind: [nanoseconds(kind, True) - nanoseconds(kind, False) for _ in range(options.rounds)] for kind in (SHORT, LONG)}
    spread = {kind: (quantiles(values)[2] - quantiles(values)[0]) / 2 for kind, values in added.items()}
    short = median(added[SHORT]) / CALLS
    print(f"added to a call after a short gap: {short:.0f} ns, +- {spread[SHORT] / CALLS:.0f}")
    print(f"added to a call after a long gap: {median(added[LONG]) - (CALLS - 1) * short:.0f} ns, +- {spread[LONG]:.0f}")


if __name__ == "__main__":
    main()
