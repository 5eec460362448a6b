#!/usr/bin/env python3
"""Compares replays of traces whose times are folded (`fishplate trace fold-times`) with those of the whole traces: virtual times and bytes.

    measurements/fold/run.py [--prefix build] [--repeats 1] [--only TEXT] [--kept]

The programs are those of examples/, with as many iterations as they need, on modelled machines with the computing of this computer. Their recordings
differ from run to run, so --repeats records each several times. A last line has the median and the greatest difference. --kept also prints
traces that stay as they are, because folding would not make them smaller."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from statistics import median

KERNELS = ("cg", "is", "ft", "mg", "lu")
# Program, arguments, ranks.
RUNS = [
    ("heat", "64 4000", 8), ("heat", "256 2000", 8), ("heat", "64 10000", 8), ("heat", "96 1000", 4), ("heat", "128 3000", 16),
    ("pi", "", 8), ("snapshots", "", 8),
    ("cg", "S", 8), ("is", "S", 8), ("ft", "S", 8), ("mg", "S", 8), ("lu", "S", 8), ("cg", "W", 8), ("lu", "W", 8), ("mg", "W", 8),
    ("hpl", "2000 64 2 4", 8),
]
MACHINE = "edr"


def compiled(prefix: Path, folder: Path, name: str) -> Path:
    source = Path("examples") / ("kernels" if name in (*KERNELS, "hpl") else "") / f"{name}.c"
    subprocess.run([prefix / "bin/mpicc", "-O2", source, "-o", folder / name, "-lm"], check=True)
    return folder / name


def seconds(fishplate: Path, folder: Path, trace: Path) -> float:
    summary = folder / "summary.json"
    subprocess.run([fishplate, "run", "--fabric", MACHINE, "--summary", f"json={summary}", "--", trace], check=True, capture_output=True)
    return json.loads(summary.read_text())["virtual_s"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kept", action="store_true")
    options = parser.parse_args()
    fishplate, differences = (options.prefix / "bin/fishplate").resolve(), {}
    with tempfile.TemporaryDirectory() as name:
        folder, programs = Path(name), {}
        print("| program | ranks | whole | folded | difference |\n| --- | --- | --- | --- | --- |")
        for _ in range(options.repeats):
            for program, words, ranks in RUNS:
                if options.only not in f"{program} {words}":
                    continue
                if program not in programs:
                    programs[program] = compiled(options.prefix, folder, program)
                whole, folded = folder / "whole.trace", folder / "folded.trace"
                subprocess.run([fishplate, "run", "-n", str(ranks), "--fabric", MACHINE, "--compute", "measured", "--record", whole, "--",
                                programs[program].resolve(), *words.split()], check=True, capture_output=True, cwd=folder)
                subprocess.run([fishplate, "trace", "fold-times", whole, "-o", folded], check=True)
                sizes = [file.stat().st_size for file in (whole, folded)]
                change = 0.0
                if whole.read_bytes() != folded.read_bytes():
                    change = seconds(fishplate, folder, folded) / seconds(fishplate, folder, whole) - 1
                elif not options.kept:
                    sizes = None
                differences.setdefault((program, words, ranks), []).append(abs(change))
                if sizes:
                    print(f"| {program} {words} | {ranks} | {sizes[0] / 1000:.0f} kB | {sizes[1] / 1000:.0f} kB | {change * 100:+.2f} % |", flush=True)
    all_of = [one for several in differences.values() for one in several]
    print(f"\n{len(differences)} programs, {len(all_of)} recordings: median {median(all_of) * 100:.2f} %, greatest {max(all_of) * 100:.2f} %")


if __name__ == "__main__":
    main()
