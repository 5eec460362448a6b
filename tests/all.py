#!/usr/bin/env python3
"""Runs the suites of `make test` and prints a table of them: passed, failed, skipped, seconds.

    tests/all.py [--first | --all] [SUITE...]

Without SUITE it runs every suite but the long ones (`make test-ci`). `--first` leaves out what a user's first check does not need: lints,
unit tests, suites of others, the emulated machine (`make test`). `--all` runs each suite in full (`make test-all`). Preparation comes first, several steps at
a time: it compiles everything once, fetches and builds the suites of others, and computes the figures of modelled machines, which depend
on no clock. The Rust tests follow, which keep all cores busy by themselves, and then the rest, two at a time. A failed
suite does not stop the others. The table is kept in build/test-times.json, the results of every case in build/tests/results.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402

TIMES = harness.ROOT / "build" / "test-times.json"
PREFIX = ["--prefix", "build"]
# Steps of the preparation that run at the same time: compilers and linkers leave cores idle, and downloads use none.
AT_ONCE = 3
# Suites that run at the same time: their jobs often wait.
SUITES_AT_ONCE = 2


@dataclass
class Step:
    name: str
    command: list
    # Steps that must have succeeded before.
    after: tuple = ()
    # Without it the suites cannot run.
    essential: bool = False
    # Its failure is no failure of the run: it shows in the suite that needs the step.
    optional: bool = False
    # Its results are kept as a suite's.
    is_suite: bool = True
    # It belongs to a user's first check: the installed tree, used as users use it.
    first: bool = False
    # It takes minutes and guards what seldom changes: it runs with --all, or by its name.
    long: bool = False


def python(script: str, *words) -> list:
    return [sys.executable, str(HERE / script), *words]


def make(target: str) -> list:
    return ["make", "--no-print-directory", target]


def fortran_compilers(full: bool) -> list[str]:
    """Compilers with which MPICH's programs in Fortran are built."""
    return ["gfortran", *(["flang-new-19"] if full else [])]


def preparation(full: bool) -> list[Step]:
    """In order of importance. Cargo locks a folder for each profile: steps that share one run one after the other."""
    subset = [] if full else ["--subset", "ci"]
    return [
        Step("stage", make("stage"), essential=True, is_suite=False, first=True),
        Step("lint", make("lint"), is_suite=False),
        Step("fetch", ["sh", "-c", "scripts/nextest; scripts/verbs-vm --kernel"], optional=True, is_suite=False),
        Step("tests", python("rust.py", "unit", "--compile"), after=("lint",), essential=True, is_suite=False),
        Step("mpi4py-build", python("foreign/mpi4py.py", *PREFIX, "--build-only"), after=("stage",), optional=True, is_suite=False),
        Step("c-build", python("c/run.py", *PREFIX, "--build-only"), after=("stage",), optional=True, is_suite=False, first=True),
        Step("loom-build", python("rust.py", "loom", "--compile"), after=("stage",), optional=True, is_suite=False),
        Step("mpich-build", python("foreign/mpich.py", *PREFIX, *subset, "--build-only"), after=("stage",), optional=True, is_suite=False),
        *(Step(f"mpich-{name}-build", python("foreign/mpich.py", *PREFIX, *subset, "--fortran", name, "--build-only"), after=("stage",),
               optional=True, is_suite=False) for name in fortran_compilers(full)),
        *([Step("applications-build", python("foreign/applications.py", *PREFIX, "--build-only"), after=("stage",), optional=True,
                is_suite=False)] if full else []),
        *([Step("miri", make("miri"), is_suite=False)] if full else []),
        # Every parser of bytes that others write, under libFuzzer.
        *([Step("fuzz", python("fuzz.py"))] if full else []),
        # Figures of modelled machines, byte by byte.
        Step("figures", python("modelled/run.py", *PREFIX, *([] if full else ["--short"])), after=("stage",), first=True),
        # Scores of the model, and machines calibrated by outputs of benchmarks.
        Step("scores", python("scores/run.py", *PREFIX, *(["--long"] if full else [])), after=("stage",), long=True),
        # The algorithms of collectives that costs choose, compared with the best ones.
        Step("choice", python("collectives/choice.py", *PREFIX), after=("stage",), long=True),
        # The same for the protocols of messages.
        Step("protocols", python("collectives/messages.py", *PREFIX, "--programs" if full else "--quick"), after=("stage",),
             long=True),
    ]


def rust_suites() -> list[Step]:
    """Suites that use every core: every unit and integration test; every order of the memory accesses of rings and doorbells."""
    return [Step("unit", python("rust.py", "unit")), Step("loom", python("rust.py", "loom"))]


def other_suites(full: bool) -> list[Step]:
    """Suites whose time limits are many times the time that they take, the longest first."""
    subset, short = ([], []) if full else (["--subset", "ci"], ["--short"])
    return [
        # A real verbs stack, in a virtual machine.
        Step("verbs", python("verbs/run.py", *PREFIX, *short)),
        # Killed ranks, full disks, wrong environments, things left behind.
        Step("robust", python("robust/run.py", *PREFIX, *(["--releases"] if full else [])), first=True),
        # Programs of other ABIs: over the libraries of others, under tools, and the names that they may import.
        Step("abis", python("abis/run.py", *PREFIX)),
        # TCP between network namespaces.
        Step("tcp", python("tcp/run.py", *PREFIX, *([] if full else ["--quick"]))),
        # Every command that README.md and docs/ show.
        Step("documents", python("docs/run.py", *(["--long"] if full else [])), first=True),
        # Suites of others.
        Step("mpi4py", python("foreign/mpi4py.py", *PREFIX, *subset)),
        *([Step("mpi4py-wheel", python("foreign/mpi4py.py", *PREFIX, "--wheel", "--results", "mpi4py-wheel")),
           Step("mpi4py-wheel-openmpi", python("foreign/mpi4py.py", *PREFIX, "--wheel", "openmpi", "--results", "mpi4py-wheel-openmpi"))] if full else []),
        Step("mpich", python("foreign/mpich.py", *PREFIX, *subset)),
        *(Step(f"mpich-{name}", python("foreign/mpich.py", *PREFIX, *subset, "--fortran", name)) for name in fortran_compilers(full)),
        # Programs that others have built.
        Step("binaries", python("foreign/binaries.py", *PREFIX, *short), first=True),
        # Example programs that check their own results.
        Step("kernels", python("kernels/run.py", *PREFIX, *(["--long"] if full else [])), first=True),
        # Instructions of the hot paths.
        Step("counts", python("counts/run.py", *PREFIX)),
        # Applications of others, which check themselves.
        *([Step("applications", python("foreign/applications.py", *PREFIX))] if full else []),
        # C programs of our own, compiled by our mpicc, run by our mpiexec.
        Step("programs", python("c/run.py", *PREFIX), first=True),
        # Fortran programs of our own, with each compiler that is installed.
        Step("fortran", python("fortran/run.py", *PREFIX)),
        # Jobs that the launchers of others start.
        Step("launchers", python("launchers/run.py", *PREFIX, *([] if full else ["--quick"]))),
        # Compiler wrappers and package descriptions, as build systems use them.
        Step("wrappers", python("wrappers/run.py", *PREFIX), first=True),
        # Names and lines that users read, and exit codes.
        Step("messages", python("messages/run.py", *PREFIX), first=True),
        # Programs of ours and of others over two modelled rails, under each policy.
        Step("rails", python("rail_programs/run.py", *PREFIX, *short)),
        # Ranks that begin at different times, over modelled rails.
        Step("skew", python("rails/skew.py", *PREFIX, *short)),
        # What `compare` says of loops whose times add up by hand.
        Step("speed-ups", python("speed_ups/run.py", *PREFIX, *short)),
        # Pages of results, in a browser.
        *([Step("report", python("report/run.py", *PREFIX))] if full else []),
        # Installed and removed as users do it: make install, a Debian package, a container image.
        *([Step("packages", python("packages/run.py"))] if full else []),
    ]


def run(step: Step, log=None) -> dict:
    """Runs the step; its line of the table."""
    result = harness.RESULTS / f"{step.name}.json"
    if step.is_suite:
        result.unlink(missing_ok=True)
    began = time.monotonic()
    process = subprocess.Popen(list(map(str, step.command)), cwd=harness.ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    _, status, used = os.wait4(process.pid, 0)
    kept = json.loads(result.read_text()) if step.is_suite and result.exists() else {}
    return {
        "suite": step.name, "status": os.waitstatus_to_exitcode(status),
        **{name: kept.get(name) for name in ("passed", "failed", "skipped")},
        "seconds": round(time.monotonic() - began, 1), "processor_seconds": round(used.ru_utime + used.ru_stime, 1),
    }


def verdict(row: dict) -> str:
    if row["status"] == harness.NOT_RUN:
        return "NOT RUN"
    return "ok" if row["status"] == 0 else "FAILED"


class Together:
    """Runs steps as soon as those before them have succeeded, several at once; each shows its output when it has ended."""

    def __init__(self, steps: list[Step], at_once: int):
        self.at_once = at_once
        self.waiting, self.running, self.rows, self.changed = list(steps), [], {}, threading.Condition()

    def run(self) -> list[dict]:
        with self.changed:
            while self.waiting or self.running:
                while (step := self.next()) is not None:
                    self.waiting.remove(step)
                    self.running.append(step)
                    threading.Thread(target=self.work, args=(step,)).start()
                if self.running:
                    self.changed.wait()
                else:
                    break  # the rest waits for a step that failed
        return list(self.rows.values())

    def next(self) -> Step | None:
        if len(self.running) == self.at_once:
            return None
        succeeded = {name for name, row in self.rows.items() if row["status"] == 0}
        return next((step for step in self.waiting if succeeded.issuperset(step.after)), None)

    def work(self, step: Step) -> None:
        path = harness.ROOT / "build" / f"step-{step.name}.log"
        with open(path, "w") as log:
            row = run(step, log)
        with self.changed:
            print(f"\n=== {step.name} ({row['seconds']} s): {verdict(row)}\n{path.read_text()}", end="", flush=True)
            self.running.remove(step)
            self.rows[step.name] = row
            self.changed.notify()


def table(rows: list[dict], seconds: float) -> str:
    counts = ("passed", "failed", "skipped")
    total = {"suite": "total", "seconds": round(seconds, 1), **{name: sum(row[name] or 0 for row in rows) for name in counts},
             "processor_seconds": round(sum(row["processor_seconds"] for row in rows), 1)}
    lines = [f"{'suite':<13} {'passed':>7} {'failed':>7} {'skipped':>7} {'seconds':>9} {'processor s':>12}"]
    for row in [*rows, total]:
        passed, failed, skipped = ("-" if row[name] is None else row[name] for name in counts)
        lines.append(f"{row['suite']:<13} {passed:>7} {failed:>7} {skipped:>7} {row['seconds']:>9} {row['processor_seconds']:>12}"
                     f"  {verdict(row) if 'status' in row else ''}".rstrip())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--first", action="store_true", help="a user's first check")
    extent.add_argument("--all", action="store_true", help="every suite in full")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args()
    before = preparation(options.all)
    rust, others = rust_suites(), other_suites(options.all)
    if options.first:
        before, rust, others = ([step for step in steps if step.first] for steps in (before, rust, others))
    known = [step for step in [*before, *rust, *others] if step.is_suite]
    single = [step for step in known if step.name in options.suites]
    if not options.all:
        before = [step for step in before if not step.long]
    if unknown := set(options.suites) - {step.name for step in single}:
        parser.error(f"no suite {', '.join(sorted(unknown))}; there are {', '.join(step.name for step in known)}")
    harness.NOT_RUN_FILE.parent.mkdir(parents=True, exist_ok=True)
    harness.NOT_RUN_FILE.write_text("")
    if not any(map(shutil.which, harness.FORTRAN_COMPILERS)):
        harness.not_run("Fortran", "no Fortran compiler here, so cases of Fortran are skipped: apt-get install gfortran")
    # The settings of a `make` around this script are not for those inside.
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):
        os.environ.pop(name, None)
    rows, began, clock = [], time.strftime("%Y-%m-%d %H:%M:%S %z"), time.monotonic()
    if not single:
        rows = Together(before, AT_ONCE).run()
        succeeded = {row["suite"] for row in rows if row["status"] == 0}
        if not succeeded.issuperset(step.name for step in before if step.essential):
            rust, others = [], []
    for step in single or rust:
        print(f"\n=== {step.name}", flush=True)
        rows.append(run(step))
    if not single:
        rows += Together(others, SUITES_AT_ONCE).run()
    seconds = time.monotonic() - clock
    not_run = "".join(dict.fromkeys(harness.NOT_RUN_FILE.read_text().splitlines(keepends=True)))
    print(f"\n{table(rows, seconds)}\n{not_run}", end="", flush=True)
    TIMES.write_text(json.dumps({"began": began, "cores": os.cpu_count(), "full": options.all, "seconds": round(seconds, 1),
                                 "suites": rows}, indent=1) + "\n")
    optional = {step.name for step in before if step.optional}
    return 1 if any(verdict(row) == "FAILED" and row["suite"] not in optional for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
