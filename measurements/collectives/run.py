#!/usr/bin/env python3
"""Measures collective operations beside other MPI libraries, and writes docs/figures/collectives.md.

    measurements/collectives/run.py --against LIBRARY[,LIBRARY...] [--prefix build] [--only TEXT] [--ranks 2,4,8] [--sizes 4:4M]

Every measurement is one job of one library. In each round the libraries run one after the other for each collective, and the first of
them changes from round to round. Results are kept in build/collectives/results.jsonl: an interrupted run continues where it was.
`--page` writes the page of the kept results and measures nothing.
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import page  # noqa: E402

OURS = "fishplate"
COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "reduce-scatter", "reduce-scatter-block", "scan", "exscan", "gather", "gatherv",
               "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw"]
NEIGHBOURHOODS = ["neighbor-alltoall", "neighbor-alltoallv", "neighbor-alltoallw", "neighbor-allgather", "neighbor-allgatherv"]
# The modelled machine on which two-level algorithms are compared with flat ones.
FABRIC = "c6320-edr"
# A job that takes longer is given up, and recorded as failed.
JOB_SECONDS = 300


@dataclass(frozen=True)
class Job:
    """Measurements of one operation by one library in one round; `part` names the procedure."""

    part: str
    operation: str
    ranks: int
    # Further words of the command line.
    words: tuple
    # Whether other libraries are measured too.
    compared: bool = True
    # A setting of our library, NAME=VALUE.
    setting: str = ""

    def key(self, library: str, round_: int) -> list:
        return [self.part, self.operation, self.ranks, [*self.words, *([self.setting] if self.setting else [])], library, round_]

    def modelled(self) -> bool:
        return "--fabric" in self.words


def jobs(given) -> list[Job]:
    """In the order of a round: figures that are compared with one another are measured close together."""
    found, cores = [], len(os.sched_getaffinity(0))
    limit = ("--seconds", f"{given.seconds:g}")
    for ranks in given.ranks:
        for name in COLLECTIVES:
            sizes = () if name == "barrier" else ("-m", given.sizes)
            found += [Job("default", name, ranks, (*sizes, *limit)),
                      Job("300 after 30", name, ranks, ("-i", "300", "-x", "30", *sizes, *limit)),
                      # With more ranks than cores, computing takes the core from ranks that communicate.
                      Job("overlap 0", name, ranks, ("--form", "nonblocking", *sizes, *limit), compared=ranks <= cores),
                      Job("persistent", name, ranks, ("--form", "persistent", *sizes, *limit), compared=False)]
            if ranks <= cores:
                found.append(Job("overlap 100", name, ranks, ("--form", "nonblocking", "--test-calls", "100", *sizes, *limit)))
        if ranks >= 4:
            found += [Job("default", name, ranks, ("-m", given.sizes, *limit)) for name in NEIGHBOURHOODS]
    if 2 in given.ranks:
        found += [Job("first touch", "first-touch", 2, ("-m", "64:64K", "--messages", "10,100,1000")), Job("init", "init", 2, ())]
    if given.flat:
        hosts, each = given.shape
        words = ("--fabric", FABRIC, "--own", "--ppn", str(each), "-m", "1M:1M", "-i", "2", "-x", "1")
        found += [Job(page.MODELLED, "allreduce", hosts * each, words, False, setting) for setting in ["", *given.flat]]
    return [job for job in found if any(text in job.operation for text in given.only.split(","))
            and any(text in job.part for text in given.parts.split(","))]


class Results:
    """The kept measurements. The file's first line has the conditions; results of other conditions do not mix with them."""

    def __init__(self, path: Path, conditions: dict):
        self.path, self.kept = path, {}
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        if not lines:
            path.write_text(json.dumps(conditions) + "\n")
            lines = [json.dumps(conditions)]
        self.conditions = json.loads(lines[0])
        changed = [name for name in conditions if conditions[name] != self.conditions.get(name)]
        if changed:
            sys.exit(f"{path} has results of other conditions ({', '.join(changed)}): remove it, or name another file by --results")
        for line in lines[1:]:
            try:
                one = json.loads(line)
            except json.JSONDecodeError:
                continue  # the run was interrupted while it wrote this line
            self.kept[json.dumps(one["key"])] = one

    def has(self, key: list) -> bool:
        return json.dumps(key) in self.kept

    def add(self, one: dict) -> None:
        self.kept[json.dumps(one["key"])] = one
        with open(self.path, "a") as file:
            file.write(json.dumps(one) + "\n")

    def forget_failures(self) -> None:
        self.kept = {key: one for key, one in self.kept.items() if "error" not in one}

    def all(self) -> list[dict]:
        return list(self.kept.values())


def measure(command: Path, library: Path | None, job: Job) -> dict:
    """The rows of a job, or its error: one library may lack what the others have, and some fail."""
    patience = JOB_SECONDS if job.modelled() else 60
    words = [command, "bench", job.operation, "-n", job.ranks, *job.words, "--rounds", 1, "--timeout", patience, "--json"]
    words += ["--library", library] if library and not job.modelled() else []
    ran = harness.run(list(map(str, words)), seconds=JOB_SECONDS, env=dict([job.setting.split("=", 1)]) if job.setting else None)
    if ran.code is None:
        return {"error": f"no end after {JOB_SECONDS} s"}
    if ran.code != 0:
        lines = ran.err.strip().splitlines() or ["no message"]
        return {"error": lines[0]}
    rows = [json.loads(line) for line in ran.out.splitlines()]
    figures = ("benchmark", "size", "median", "unit", "iterations")
    return {"rows": [{name: row[name] for name in figures if name in row} for row in rows]}


def run(given, results: Results, libraries: dict, command: Path) -> None:
    todo = []
    for round_ in range(given.rounds):
        for job in jobs(given):
            if job.modelled() and round_ > 0:
                continue  # virtual time: every round gives the same figure
            names = list(libraries) if job.compared else [OURS]
            turned = names[round_ % len(names):] + names[:round_ % len(names)]
            todo += [(job, name, round_) for name in turned if not results.has(job.key(name, round_))]
    began = time.monotonic()
    for done, (job, name, round_) in enumerate(todo):
        if given.minutes is not None and time.monotonic() - began > given.minutes * 60:
            print(f"{given.minutes:g} minutes are over: {len(todo) - done} jobs remain for the next run", flush=True)
            return
        load = os.getloadavg()[0]
        found = measure(command, libraries[name], job)
        when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        results.add({"key": job.key(name, round_), "when": when, "load": round(load, 2), **found})
        left = (time.monotonic() - began) / (done + 1) * (len(todo) - done - 1)
        trouble = f": {found['error']}" if "error" in found else ""
        print(f"round {round_ + 1}, {job.ranks} ranks, {job.part}, {job.operation}, {name} "
              f"({done + 1} of {len(todo)}, {left / 60:.0f} min left){trouble}", flush=True)


def machine() -> str:
    text = Path("/proc/cpuinfo").read_text()
    model = next((line.split(": ", 1)[1] for line in text.splitlines() if line.startswith("model name")), "an unknown processor")
    return f"{model}, {len(os.sched_getaffinity(0))} cores for this process, Linux {os.uname().release}"


def describe(path: Path) -> str:
    """Version and contents of a library, so that results of another build do not mix with them."""
    version = path.parent.parent / ".version"
    number = f"version {version.read_text().strip()}, " if version.exists() else ""
    return f"{number}SHA-256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--library", type=Path, help="library to measure (default: that of the prefix)")
    parser.add_argument("--against", default="", metavar="PATH,...", help="libraries to compare with, as scripts/peers.sh prints them")
    parser.add_argument("--only", default="", metavar="TEXT,...", help="collectives whose name contains one of these")
    parser.add_argument("--parts", default="", metavar="TEXT,...",
                        help="procedures: default, 300 after 30, overlap 0, overlap 100, persistent, first touch, init")
    parser.add_argument("--ranks", default="2,4,8", type=lambda text: [int(word) for word in text.split(",")], metavar="N,...")
    parser.add_argument("--flat", default=[], type=lambda text: text.split(","), metavar="NAME=VALUE,...",
                        help="settings that select a flat allreduce each; measures the choice of the library beside them on a modelled machine")
    parser.add_argument("--shape", default=(16, 20), type=lambda text: tuple(map(int, text.split("x"))), metavar="HOSTSxRANKS",
                        help="of the modelled machine (default: 16x20)")
    parser.add_argument("--sizes", default="4:4M", metavar="MIN:MAX")
    parser.add_argument("--rounds", default=3, type=int)
    parser.add_argument("--seconds", default=0.1, type=float, help="time limit of a size, by fewer iterations (default: 0.1)")
    parser.add_argument("--minutes", type=float, help="start no job after this time; the next run continues")
    parser.add_argument("--results", type=Path, default=harness.ROOT / "build" / "collectives" / "results.jsonl")
    parser.add_argument("--retry", action="store_true", help="measure again what failed")
    parser.add_argument("--least", action="store_true",
                        help="compare the fastest rounds instead of medians, for a machine that others use meanwhile")
    parser.add_argument("--page", action="store_true", help="write the page only")
    parser.add_argument("--out", type=Path, default=harness.ROOT / "docs/figures/collectives.md")
    return parser.parse_args()


def main() -> int:
    given = options()
    prefix = given.prefix.resolve()
    command, own = prefix / "bin/fishplate", (given.library or prefix / "lib/libmpi_abi.so.1").resolve()
    paths = {OURS: own} | {Path(path).parent.parent.name: Path(path).resolve() for path in given.against.split(",") if path}
    for path in (command, *paths.values()):
        if not path.exists():
            sys.exit(f"{path} is missing: run `make stage`, and scripts/peers.sh for other libraries")
    if len(paths) < 2 and not given.page:
        sys.exit("--against names no library to compare with: `--against $(scripts/peers.sh)` fetches two")
    if given.page and given.results.exists():
        results = Results(given.results, {})
    else:
        libraries = {name: describe(path) for name, path in paths.items()}
        results = Results(given.results, {"machine": machine(), "libraries": libraries, "cores": len(os.sched_getaffinity(0))})
    if given.retry:
        results.forget_failures()
    # A signal ends the run like Ctrl-C: what is measured is kept, and the page written.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    interrupted = False
    try:
        if not given.page:
            run(given, results, {name: path if name != OURS or given.library else None for name, path in paths.items()}, command)
    except KeyboardInterrupt:
        interrupted = True
    written = page.Page(results.conditions, results.all(), OURS, given.least)
    given.out.write_text(written.text())
    for row in written.targets:
        print(" | ".join(row))
    missed = sum(row[3] != "yes" for row in written.targets)
    print(f"{len(written.targets) - missed} passed, {missed} failed" + (" (interrupted)" if interrupted else ""))
    return 1 if missed or interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
