#!/usr/bin/env python3
"""Runs the suites of `make test`, one after the other, and prints a table of them: passed, failed, skipped, seconds.

    tests/all.py [--all] [SUITE...]

Without SUITE it runs every suite; `--all` runs each in full (`make test-all`). Compiling comes first. Beside it, everything that later
suites need from the network is fetched and built, and the one suite runs that depends on no clock. A failed suite does not stop the
others. The table is kept in build/test-times.json, the results of every case in build/tests/results.
"""

import argparse
import json
import os
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402

TIMES = harness.ROOT / "build" / "test-times.json"
PREFIX = ["--prefix", "build"]
MAKE = ["make", "--no-print-directory"]


def python(script: str, *words) -> list:
    return [sys.executable, str(HERE / script), *words]


@dataclass
class Step:
    """A part of the run. `beside` are chains of commands that run at the same time; a command that fails there shows later, in the
    suite that needs it. Suites among them are named in `suites`."""

    name: str
    command: list
    beside: list = field(default_factory=list)
    suites: tuple = ()
    # Without it the suites cannot run.
    essential: bool = False


def compiling(full: bool) -> list[Step]:
    subset = [] if full else ["--subset", "ci"]
    fetch = [["scripts/nextest"], ["scripts/verbs-vm", "--kernel"]]
    # Compilers and linkers leave a core idle half of the time. Figures of modelled machines depend on no clock.
    build = [python("foreign/mpi4py.py", *PREFIX, "--build-only")]
    rest = [python("c/run.py", *PREFIX, "--build-only"), python("foreign/mpich.py", *PREFIX, *subset, "--build-only"), python("modelled/run.py", *PREFIX)]
    return [
        Step("lint", [*MAKE, "lint"], beside=[fetch]),
        Step("stage", [*MAKE, "stage"], essential=True),
        Step("compile", ["sh", "-c", f"{sys.executable} tests/rust.py unit --compile && {sys.executable} tests/rust.py loom --compile"],
             beside=[build, rest], suites=("figures",), essential=True),
    ]


def suites(full: bool) -> list[Step]:
    short, subset = ([], []) if full else (["--short"], ["--subset", "ci"])
    return [
        # Rust: every unit and integration test; every order of the memory accesses of rings and doorbells.
        Step("unit", python("rust.py", "unit")),
        Step("loom", python("rust.py", "loom")),
        # C programs of our own, compiled by our mpicc, run by our mpiexec.
        Step("programs", python("c/run.py", *PREFIX)),
        # Killed ranks, full disks, wrong environments, things left behind.
        Step("robust", python("robust/run.py", *PREFIX)),
        # Figures of modelled machines, byte by byte.
        Step("figures", python("modelled/run.py", *PREFIX)),
        # Instructions of the hot paths.
        Step("counts", python("counts/run.py", *PREFIX)),
        # A real verbs stack, in a virtual machine.
        Step("verbs", python("verbs/run.py", *PREFIX, *short)),
        # Every command that README.md and docs/ show.
        Step("documents", python("docs/run.py")),
        # Suites of others.
        Step("mpi4py", python("foreign/mpi4py.py", *PREFIX, *subset)),
        Step("mpich", python("foreign/mpich.py", *PREFIX, *subset)),
    ]


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def begin_beside(step: Step) -> subprocess.Popen | None:
    if not step.beside:
        return None
    chains = ["; ".join(shlex.join(map(str, command)) for command in chain) for chain in step.beside]
    script = "".join(f"({chain}) &\n" for chain in chains) + "wait"
    with open(beside_log(step), "w") as log:
        return subprocess.Popen(["sh", "-c", script], cwd=harness.ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def beside_log(step: Step) -> Path:
    return harness.ROOT / "build" / f"beside-{step.name}.log"


def result(suite: str) -> Path:
    return harness.RESULTS / f"{suite}.json"


def row(suite: str, status: int | None = None) -> dict:
    """The line of the table for a suite whose results are kept. Without a status, the results decide."""
    found = json.loads(result(suite).read_text()) if result(suite).exists() else {}
    failed = found.get("failed", 1) > 0
    return {"suite": suite, "status": int(failed) if status is None else status,
            **{name: found.get(name) for name in ("passed", "failed", "skipped", "seconds")}, "processor_seconds": None}


def run(step: Step) -> list[dict]:
    print(f"\n=== {step.name}", flush=True)
    for name in (step.name, *step.suites):
        result(name).unlink(missing_ok=True)
    began, used = time.monotonic(), processor_seconds()
    beside = begin_beside(step)
    status = subprocess.run(step.command, cwd=harness.ROOT, stdin=subprocess.DEVNULL).returncode
    if beside is not None:
        beside.wait()
        print(beside_log(step).read_text(), end="", flush=True)
    own = row(step.name, status) | {"seconds": round(time.monotonic() - began, 1),
                                    "processor_seconds": round(processor_seconds() - used, 1)}
    return [own, *(row(name) | {"beside": step.name} for name in step.suites)]


def verdict(row: dict) -> str:
    if row["status"] == harness.NOT_RUN:
        return "NOT RUN"
    where = f", beside {row['beside']}" if "beside" in row else ""
    return ("ok" if row["status"] == 0 else "FAILED") + where


def table(rows: list[dict]) -> str:
    numbers = ("passed", "failed", "skipped", "seconds", "processor_seconds")
    total = {"suite": "total"} | {name: round(sum(row[name] or 0 for row in rows), 1) for name in numbers}
    total["seconds"] -= sum(row["seconds"] or 0 for row in rows if "beside" in row)
    lines = [f"{'suite':<10} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>9} {'processor s':>12}"]
    for row in [*rows, total]:
        passed, failed, skipped, seconds, processor = ("-" if row[name] is None else row[name] for name in numbers)
        lines.append(f"{row['suite']:<10} {passed:>7} {failed:>7} {skipped:>7} {seconds:>9} {processor:>12}"
                     f"  {verdict(row) if 'status' in row else ''}".rstrip())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="every suite in full")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args()
    known = suites(options.all)
    if unknown := set(options.suites) - {step.name for step in known}:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in known)}")
    first = compiling(options.all)
    beside = {name for step in first for name in step.suites}
    steps = [step for step in known if step.name in options.suites] or [*first, *(step for step in known if step.name not in beside)]
    harness.NOT_RUN_FILE.parent.mkdir(parents=True, exist_ok=True)
    harness.NOT_RUN_FILE.write_text("")
    # A `make` around this one shall not limit the processes of those inside.
    os.environ.pop("MAKEFLAGS", None)
    rows, began = [], time.strftime("%Y-%m-%d %H:%M:%S %z")
    for step in steps:
        done = run(step)
        rows += done
        if step.essential and done[0]["status"] != 0:
            break
    not_run = "".join(dict.fromkeys(harness.NOT_RUN_FILE.read_text().splitlines(keepends=True)))
    print(f"\n{table(rows)}\n{not_run}", end="", flush=True)
    TIMES.write_text(json.dumps({"began": began, "cores": os.cpu_count(), "full": options.all, "suites": rows}, indent=1) + "\n")
    return 1 if any(verdict(row).startswith("FAILED") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
