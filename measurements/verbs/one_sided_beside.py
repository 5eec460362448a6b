#!/usr/bin/env python3
"""One-sided accesses between the two hosts of the virtual machine, beside the device, in one start of the machine.

    measurements/verbs/one_sided_beside.py [--prefix build] [--rounds 5] [--only put-bw] [--env NAME=VALUE] [--operations 300]

`access` is `fishplate bench` (an access with its flush, or windows of 64 accesses with one flush), `device` is `fishplate perf` of the device
below: for `put` twice `write-lat`, for `get` `read-lat`, for bandwidths `write-bw` and `read-bw`. Rounds alternate. The ratio is above 1
where the access is slower than the device. Then come operations on a window whose target computes (measurements/progress/computing.c): median,
99th percentile and maximum in microseconds. On an emulated processor only ratios mean anything.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/verbs"), str(HERE)]
import harness  # noqa: E402
import mpi_beside  # noqa: E402
import perf_beside  # noqa: E402
from programs import run as c  # noqa: E402

COMPUTING = ROOT / "measurements" / "progress" / "computing.c"
LIMIT = 1.15
# Benchmark, the device's, how many of the device's times an access has, size, repetitions of the access and of the device.
CASES = [
    *(("put", "write-lat", 2, size, 300, 300) for size in (8, 1 << 10, 8 << 10, 64 << 10)),
    *(("get", "read-lat", 1, size, 300, 300) for size in (8, 1 << 10, 8 << 10, 64 << 10)),
    *(("put-bw", "write-bw", 1, size, count, 64 * count) for size, count in ((8, 10), (4 << 10, 10), (64 << 10, 5), (1 << 20, 1))),
    *(("get-bw", "read-bw", 1, size, count, 64 * count) for size, count in ((8, 10), (4 << 10, 10), (64 << 10, 5), (1 << 20, 1))),
]


def access(place, benchmark: str, size: int, count: int) -> float:
    launcher = shlex.join(map(str, [*mpi_beside.hosts(place), "-n", "{ranks}"]))
    words = [place.prefix / "bin/fishplate", "bench", benchmark, "--launcher", launcher, "-m", f"{size}:{size}", "-i", count,
             "-x", max(2, count // 10), "--rounds", 1, "--json"]
    return json.loads(mpi_beside.said(words, os.environ | place.env).splitlines()[-1])["median"]


def device(options, benchmark: str, size: int, count: int) -> float:
    words = [options.prefix / "bin/fishplate", "perf", benchmark, "-p", perf_beside.PORT, "-n", count, "-s", size, "--json", "--timeout", 30,
             "--secret-file", options.secret_file]
    there, here = ([*map(str, words), "--device", name] for name in ("rxe2", "rxe0"))
    said = perf_beside.both(argparse.Namespace(there="on-host 1", here="on-host 0", local=True), there, [*here, "10.77.0.2"], True)
    return json.loads(said.splitlines()[0])["median"]


def beside(place, options) -> int:
    print(f"{'':24}{'access':>10}{'device':>10}{'ratio':>8}{'limit':>8}   least and most", flush=True)
    missed = 0
    for benchmark, below, times, size, own, its in CASES:
        name = f"{benchmark} {size}"
        if options.only not in name:
            continue
        found = {"access": [], "device": []}
        for turn in range(options.rounds):
            ways = {"access": lambda: access(place, benchmark, size, own), "device": lambda: times * device(options, below, size, its)}
            for way in ways if turn % 2 == 0 else reversed(ways):
                try:
                    found[way].append(ways[way]())
                except perf_beside.Failed as why:
                    print(f"{name}, {way}: {why}", flush=True)
        if not all(found.values()):
            missed += 1
            continue
        medians = {way: statistics.median(values) for way, values in found.items()}
        is_rate = benchmark.endswith("-bw")
        ratio = medians["device"] / medians["access"] if is_rate else medians["access"] / medians["device"]
        missed += ratio > LIMIT
        spread = " ".join(f"{min(values):.1f}-{max(values):.1f}" for values in found.values())
        print(f"{name + ' B, ' + ('MB/s' if is_rate else 'us'):24}{medians['access']:10.1f}{medians['device']:10.1f}{ratio:8.2f}{LIMIT:8.2f}   {spread}"
              f"{'' if ratio <= LIMIT else '   missed'}", flush=True)
    return missed


def computing(place, options) -> None:
    program = c.programs(place.prefix) / "computing"
    words = [*mpi_beside.hosts(place), "-n", "2", program, options.operations, 500]
    print(mpi_beside.said(words, os.environ | place.env), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows that contain this, as `put-bw 65536`")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for the ranks")
    parser.add_argument("--operations", type=int, default=300, help="on the window whose target computes; 0 for none")
    parser.add_argument("--timeout", type=float, default=900, help="of the machine, in seconds")
    parser.add_argument("--inside", action="store_true", help="this is the machine")
    options = parser.parse_args()
    options.prefix = options.prefix.resolve()
    place = mpi_beside.Place(options.prefix, dict(item.split("=", 1) for item in options.env))
    if not options.inside:
        for name, said in c.compile_all(place.prefix, [COMPUTING]).items():
            sys.exit(f"{name} does not compile: {said}")
        return subprocess.run([ROOT / "scripts/verbs-vm", "--timeout", str(options.timeout), "--", sys.executable, __file__, "--inside",
                               *sys.argv[1:]]).returncode
    options.secret_file = harness.token_file()
    missed = beside(place, options)
    if options.operations:
        computing(place, options)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
