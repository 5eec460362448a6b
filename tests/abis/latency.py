#!/usr/bin/env python3
"""Latency of 8 bytes by a program of another ABI, beside the program of the standard ABI: medians of runs that alternate.

    tests/abis/latency.py [--prefix build] [--rounds 15] [--count 200000]

One rank exchanges with itself, where the calls alone cost, and two ranks with each other, bound to a core each. The machine should be
otherwise idle; how near the two cores are to each other decides about the figures, so compare those of one run. It prints a table in
nanoseconds for an exchange; those of `send+recv` are half a round trip.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

# The name of the ABI, its header, and its library in the prefix.
ABIS = {
    "standard": (None, "lib/libmpi_abi.so.1"),
    "mpich": (harness.ROOT / "tests/robust/mpich_abi", "lib/fishplate/libmpi.so.12"),
    "openmpi": (harness.ROOT / "tests/robust/openmpi_abi", "lib/fishplate/libmpi.so.40"),
}


def measured(prefix: Path, program: Path, ranks: int, count: int) -> dict:
    ran = harness.launch(prefix, ranks, [program, count], seconds=120, env={"FISHPLATE_WAIT": "spin"})
    if ran.code != 0:
        sys.exit(f"the job ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return {name: float(figure) for name, figure in map(str.split, ran.out.splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=200_000, help="exchanges of a run")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    with tempfile.TemporaryDirectory(prefix="fishplate-latency-") as folder:
        programs = {abi: Path(folder) / abi for abi in ABIS}
        for abi, (header, library) in ABIS.items():
            subprocess.run(["cc", "-O2", f"-I{header or prefix / 'include'}", HERE / "latency.c", prefix / library, "-o", programs[abi]], check=True)
        print(f"| ranks | exchange | {' | '.join(f'{abi}, ns' for abi in ABIS)} | {' | '.join(f'{abi}, more' for abi in list(ABIS)[1:])} |")
        print(f"|{' --- |' * (1 + 2 * len(ABIS))}")
        for ranks in (1, 2):
            figures = {abi: [] for abi in ABIS}
            for round_ in range(options.rounds):
                # Each comes first as often as the other.
                for abi in list(ABIS) if round_ % 2 else reversed(ABIS):
                    figures[abi].append(measured(prefix, programs[abi], ranks, options.count))
            for name in figures["standard"][0]:
                medians = [statistics.median(run[name] for run in figures[abi]) for abi in ABIS]
                more = [f"{median - medians[0]:+.1f}" for median in medians[1:]]
                print(f"| {ranks} | {name} | {' | '.join(f'{median:.1f}' for median in medians)} | {' | '.join(more)} |")


if __name__ == "__main__":
    main()
