#!/usr/bin/env python3
"""Measures Intel's IMB-MPI1, the same binary, over our libmpi.so.12, over MPICH's and over Intel's own library.

    tests/binaries/imb.py [--prefix build] [--rounds N] [--keep]

PingPong, Allreduce and Alltoall on two ranks of this machine, 8 B to 1 MiB. The libraries take turns, and each round begins with
another one; the figure is the median of the rounds. Every library runs under its own launcher with its defaults, Intel's in shared
memory alone. The last lines say at which share of the sizes ours takes at most 1.02 of the time of the best of the others. --keep
keeps the figures in imb.json, of which docs/figures/binaries.md has a section. scripts/peers.sh fetches the libraries into build/peers.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402

KEPT = HERE / "imb.json"
PEERS = harness.ROOT / "build/peers"
BENCHMARKS = ["PingPong", "Allreduce", "Alltoall"]
# As powers of two.
SMALLEST, LARGEST = 3, 20
SIZES = [2 ** power for power in range(SMALLEST, LARGEST + 1)]
# Repetitions of short messages, and the most MiB that a size moves.
REPETITIONS, MIB = 5000, 200
LIMIT, SHARE = 1.02, 0.9
SECONDS = 120


def libraries(prefix: Path) -> dict:
    """Name -> launcher and environment."""
    impi = PEERS / "impi"
    return {
        "Fishplate": ([prefix / "bin/mpiexec"], {}),
        "MPICH": ([PEERS / "mpich/bin/mpiexec.hydra"], {"LD_LIBRARY_PATH": str(PEERS / "mpich/lib")}),
        "Intel MPI": ([impi / "bin/mpiexec.hydra"], {"I_MPI_ROOT": str(impi), "LD_LIBRARY_PATH": f"{impi}/lib:{impi}/lib/libfabric",
                                                    "FI_PROVIDER_PATH": f"{impi}/lib/libfabric/prov", "I_MPI_FABRICS": "shm"}),
    }


def run(launcher: list, environment: dict) -> dict:
    """Benchmark -> size -> microseconds."""
    words = [*launcher, "-n", 2, PEERS / "impi/bin/IMB-MPI1", "-npmin", 2, "-iter", REPETITIONS, "-iter_policy", "off", "-vol", MIB,
             "-msglog", f"{SMALLEST}:{LARGEST}", *BENCHMARKS]
    ran = harness.run(list(map(str, words)), seconds=SECONDS, env=environment)
    if ran.code != 0:
        raise SystemExit(f"{launcher[0]} ended with {ran.code}\n{ran.out}{ran.err}")
    return parse(ran.out)


def parse(text: str) -> dict:
    """The time of PingPong is the third column; collectives have the shortest, longest and mean time of a rank."""
    found, benchmark = {}, None
    for line in text.splitlines():
        if name := re.match(r"# Benchmarking (\w+)", line):
            benchmark = found.setdefault(name[1], {})
        elif benchmark is not None and (row := re.fullmatch(r"\s+(\d+)\s+\d+((?:\s+[\d.]+)+)\s*", line)):
            times = [float(word) for word in row[2].split()]
            benchmark[int(row[1])] = times[0] if len(times) == 2 else times[2]
    return found


def measure(prefix: Path, rounds: int) -> dict:
    """Benchmark -> library -> median times by size."""
    every, seen = libraries(prefix), []
    names = list(every)
    for turn in range(rounds):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            seen.append((name, run(*every[name])))
        print(f"round {turn + 1} of {rounds}", flush=True)
    return {benchmark: {name: [round(statistics.median(times[benchmark][size] for who, times in seen if who == name), 3) for size in SIZES]
                        for name in names} for benchmark in BENCHMARKS}


def ratios(figures: dict, benchmark: str) -> list[float]:
    ours, *others = figures[benchmark].values()
    return [mine / min(best) for mine, *best in zip(ours, *others)]


def verdict(figures: dict) -> str:
    lines = []
    for benchmark in BENCHMARKS:
        within = sum(ratio <= LIMIT for ratio in ratios(figures, benchmark))
        lines.append(f"{benchmark}: at {within} of {len(SIZES)} sizes at most {LIMIT} × the best of the others")
    every = [ratio for benchmark in BENCHMARKS for ratio in ratios(figures, benchmark)]
    share = sum(ratio <= LIMIT for ratio in every) / len(every)
    lines.append(f"all: at {share:.0%} of sizes; the limit is {SHARE:.0%}: {'met' if share >= SHARE else 'missed'}")
    return "\n".join(lines)


def section(kept: dict) -> str:
    """The part of docs/figures/binaries.md."""
    figures = kept["figures"]
    names = list(figures[BENCHMARKS[0]])
    text = f"""## One binary over three libraries

Intel's IMB-MPI1 on two ranks of one machine ({kept['machine']}), µs, medians of {kept['rounds']} rounds in which the libraries took turns:
PingPong's time of one way, the mean time of a rank in Allreduce and Alltoall. MPICH is PyPI's wheel {kept['versions']['mpich']}, Intel MPI {kept['versions']['impi']}.
A virtual machine may have its two cores near or far, and the order of the libraries differs between these states
([figures by state](states.md)). `tests/binaries/imb.py` measures again.

| bytes | {' | '.join(f'{benchmark}: {name}' for benchmark in BENCHMARKS for name in names)} |
| ---: |{' ---: |' * len(BENCHMARKS) * len(names)}
"""
    for place, size in enumerate(SIZES):
        cells = [f"{figures[benchmark][name][place]:.2f}" for benchmark in BENCHMARKS for name in names]
        text += f"| {size:,} | {' | '.join(cells)} |\n"
    return text + "\n" + "".join(f"- {line}\n" for line in verdict(figures).splitlines())


def processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{found[1].strip() if found else 'unknown processor'}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keep", action="store_true", help="keep the figures for docs/figures/binaries.md")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    subprocess.run([harness.ROOT / "scripts/peers.sh"], check=True, stdout=subprocess.DEVNULL)
    began = time.monotonic()
    figures = measure(prefix, options.rounds)
    for benchmark in BENCHMARKS:
        print(f"\n{benchmark:<12}{''.join(f'{name:>12}' for name in figures[benchmark])}       ratio")
        for place, size in enumerate(SIZES):
            times = "".join(f"{times[place]:>12.2f}" for times in figures[benchmark].values())
            print(f"{size:<12}{times}{ratios(figures, benchmark)[place]:>12.2f}")
    print(f"\n{verdict(figures)}\n{time.monotonic() - began:.0f} s")
    if options.keep:
        versions = {name: (PEERS / name / ".version").read_text().strip() for name in ("mpich", "impi")}
        KEPT.write_text(json.dumps({"machine": processor(), "rounds": options.rounds, "versions": versions, "figures": figures}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
