#!/usr/bin/env python3
"""Compares MPI libraries within each state of the cores.

    measurements/states/run.py BENCHMARK[,BENCHMARK...] --against NAME=LIBRARY[,...] [--prefix build] [--sizes 1:4M] [--rounds 15]
                        [--variant 'NAME:VARIABLE=VALUE;...']

The two cores of a virtual machine are threads of one core, cores that share a cache, or far cores, and the host moves them within
milliseconds. So every job is short: one library, one benchmark, one round; the libraries take turns. A job counts for a state if the state was
the same before and after it. Ratios divide medians of one state; a state that a library was not seen in has no ratio. A variant is our library with
a setting. The words after `--` are passed to the benchmark. `--json FILE` keeps every job as a line, and `--page` writes the tables of all kept jobs as Markdown.
"""

import argparse
import json
import os
import statistics
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402

OURS = "fishplate"
STATES = ["one-core", "near", "far"]
# Jobs during which the state changed: their figures mix states.
MIXED = "mixed"
# Benchmarks of which more is better.
RATES = {"bw", "bibw", "mbw-mr"}
# Fewer jobs of a state say little.
FEWEST = 3
JOB_SECONDS = 120


def size_name(size: int) -> str:
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def job(command: Path, benchmark: str, library: Path | None, given, setting: dict) -> list[dict]:
    words = [command, "bench", benchmark, "--rounds", "1", "--json", *given.more]
    words += ["--seconds", f"{given.seconds:g}"]
    if benchmark != "barrier":
        words += ["-m", given.sizes]
    if library:
        words += ["--library", library]
    ran = harness.run(list(map(str, words)), seconds=JOB_SECONDS, env=setting)
    if ran.code != 0:
        raise harness.Problem(f"`{' '.join(map(str, words))}` ended with {ran.code}: {ran.err.strip()[-300:]}")
    return [json.loads(line) for line in ran.out.splitlines() if line.startswith("{")]


def state(line: dict) -> str | None:
    """The state of the cores during a job; None if it changed or is not known."""
    seen = line.get("conditions", {})
    before, after = seen.get("cores_before"), seen.get("cores_after")
    return before if before == after else None


class Table:
    """Times of one benchmark: by state, size and library."""

    def __init__(self, benchmark: str, lines: list[dict]):
        self.benchmark = benchmark
        self.found = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
        for line in lines:
            at = line["state"] or MIXED
            self.found[at][line.get("size", 0)][line["of"]].append(line["median"])

    def medians(self, of_state: str, size: int) -> dict:
        return {name: statistics.median(values) for name, values in self.found[of_state][size].items() if len(values) >= FEWEST}

    def ratio(self, of_state: str, size: int) -> float | None:
        medians = self.medians(of_state, size)
        others = [value for name, value in medians.items() if name != OURS]
        if OURS not in medians or not others:
            return None
        return medians[OURS] / (max(others) if self.benchmark in RATES else min(others))

    def rows(self, libraries: list[str]) -> list[list[str]]:
        sizes = sorted({size for of_state in self.found.values() for size in of_state})
        rows = []
        for size in sizes:
            row = [size_name(size) if size else "–"]
            for at in STATES:
                medians, ratio = self.medians(at, size), self.ratio(at, size)
                row += [f"{medians[name]:.4g}" if name in medians else "" for name in libraries]
                row.append("" if ratio is None else f"{ratio:.2f}")
            rows.append(row)
        return rows


def show(table: Table, libraries: list[str]) -> str:
    unit = "MB/s" if table.benchmark in RATES else "µs"
    head = ["size"]
    for at in STATES:
        head += [f"{at}: {name}" for name in libraries] + ["/ best"]
    rows = table.rows(libraries)
    # A state without a job takes no columns.
    keep = [0] + [column for column in range(1, len(head)) if any(row[column] for row in rows)]
    lines = [f"**{table.benchmark}**, {unit}", "", "| " + " | ".join(head[column] for column in keep) + " |", "| --- |" + " ---: |" * (len(keep) - 1)]
    lines += ["| " + " | ".join(row[column] for column in keep) + " |" for row in rows]
    unseen = [at for at in STATES if not any(table.ratio(at, size) for size in table.found[at])]
    if unseen:
        lines += ["", f"Not seen often enough to compare: {', '.join(unseen)}."]
    return "\n".join([*lines, ""])


def head(line: dict, libraries: dict) -> str:
    seen = line["conditions"]
    return f"""# Figures by state of the cores

*By `measurements/states/run.py`: jobs of one library, one benchmark and one short round, in turns. A job counts for a state if the state was the same before and after
it; each cell is the median of at least {FEWEST} jobs. Ratios divide our figure by the best of the others: above 1 is better for bandwidths, below 1 for times.
The host can move the cores within a job, so single cells still mix states.*

{seen["cpu"]}, {seen["kernel"]}, from {seen["date"]}; libraries: {", ".join(libraries)}.
"""


def libraries_of(words: str) -> dict:
    pairs = [word.split("=", 1) for word in words.split(",") if word]
    for pair in pairs:
        if len(pair) != 2 or not Path(pair[1]).exists():
            sys.exit(f"states: `{'='.join(pair)}` is not NAME=LIBRARY with a library that exists")
    return {name: Path(path).resolve() for name, path in pairs}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks")
    parser.add_argument("--against", default="", metavar="NAME=LIBRARY,…")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME:VARIABLE=VALUE[;…]")
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--sizes", default="1:4M")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.01, help="time limit of each size")
    parser.add_argument("--mixed", action="store_true", help="show jobs during which the state changed, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="add every job to this file")
    parser.add_argument("--page", action="store_true", help="measure nothing: tables of the file's jobs")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    given = parser.parse_args(words[:cut])
    given.more = words[cut + 1:]
    if given.mixed:
        STATES.append(MIXED)
    libraries = {OURS: None} | libraries_of(given.against)
    variants = [word.split(":", 1) for word in given.variant]
    settings = {name: dict(one.split("=", 1) for one in setting.split(";")) for name, setting in variants}
    libraries |= dict.fromkeys(settings)
    command = (given.prefix / "bin" / "fishplate").resolve()
    lines = defaultdict(list)
    if given.page:
        for text in given.json.read_text().splitlines():
            line = json.loads(text)
            lines[line["benchmark"]].append(line)
        libraries = dict.fromkeys([OURS, *sorted({line["of"] for of in lines.values() for line in of} - {OURS})])
    for round_ in range(0 if given.page else given.rounds):
        names = list(libraries)
        names = names[round_ % len(names):] + names[:round_ % len(names)]
        for benchmark in given.benchmarks.split(","):
            for name in names:
                for line in job(command, benchmark, libraries[name], given, settings.get(name, {})):
                    line |= {"of": name, "state": state(line), "benchmark": benchmark}
                    lines[benchmark].append(line)
                    if given.json:
                        with open(given.json, "a", encoding="utf-8") as out:
                            print(json.dumps(line), file=out)
        if os.isatty(2):
            print(f"\rround {round_ + 1} of {given.rounds}", end="", file=sys.stderr)
    if given.page:
        print(head(next(iter(lines.values()))[0], libraries))
    for benchmark in given.benchmarks.split(",") if given.benchmarks != "all" else lines:
        print(show(Table(benchmark, lines[benchmark]), list(libraries)))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except harness.Problem as why:
        sys.exit(f"states: {why}")
