#!/usr/bin/env python3
"""Runs the suites of suite_table.py and prints a table of them: passed, failed, skipped, seconds.

    tests/all.py [--first | --suites | --all] [--keep-times] [SUITE...]

Without SUITE it runs every suite but the long ones (`make test-ci`). `--first` leaves out what a user's first check does not need: lints,
unit tests, suites of others, the emulated machine (`make test`). `--suites` leaves out lints and tests in Rust. `--all` runs each suite in full (`make test-all`). Preparation comes first, several steps at
a time: it compiles everything once, fetches and builds the suites of others, and computes the figures of modelled machines, which depend
on no clock. The Rust tests follow, which keep all cores busy by themselves, and then the rest, two at a time. A failed
suite does not stop the others. The table is kept in build/test-times.json, the results of every case in build/tests/results. Suites whose
processor time has grown since the times in the tree (times.json) are named; --keep-times replaces these.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import times  # noqa: E402
from suite_table import Step, all_suites, other_suites, preparation, rust_suites  # noqa: E402

TIMES = harness.ROOT / "build" / "test-times.json"
# Steps of the preparation that run at the same time: compilers and linkers leave cores idle, and downloads use none.
AT_ONCE = 3
# Suites that run at the same time: their jobs often wait.
SUITES_AT_ONCE = 2
# Characters of a failed case that are shown below the table.
SHOWN = 600


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


def failures(rows: list[dict]) -> str:
    """The failed cases once more, each with its reason: the end of a log is often all that is kept of it."""
    lines = []
    for row in rows:
        kept = harness.RESULTS / f"{row['suite']}.json"
        if row["failed"] and kept.exists():
            cases = [case for case in json.loads(kept.read_text())["cases"] if case.get("result") == "failed"]
            lines += [f"failed: {row['suite']}: {case['name']}: {' '.join(case.get('reason', '').split())[:SHOWN]}\n" for case in cases]
    return "".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--first", action="store_true", help="a user's first check")
    extent.add_argument("--all", action="store_true", help="every suite in full")
    extent.add_argument("--suites", dest="suites_only", action="store_true", help="without lints and tests in Rust")
    parser.add_argument("--keep-times", action="store_true", help="replace the times in the tree by those of this run")
    parser.add_argument("suites", nargs="*", metavar="SUITE")
    options = parser.parse_args()
    before = preparation(options.all)
    rust, others = rust_suites(), other_suites(options.all)
    if options.first:
        before, rust, others = ([step for step in steps if step.first] for steps in (before, rust, others))
    if options.suites_only:
        before, rust = [step for step in before if step.name not in ("lint", "tests", "loom-build")], []
    known = [step for step in [*before, *rust, *others] if step.is_suite]
    # Suites that only run in full have no other extent.
    known += [step for step in all_suites() if step.name not in {short.name for short in known}]
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
    print(f"\n{table(rows, seconds)}\n{times.growth(rows)}{not_run}{failures(rows)}", end="", flush=True)
    if options.keep_times:
        times.keep(rows, options.all)
    TIMES.write_text(json.dumps({"began": began, "cores": os.cpu_count(), "full": options.all, "seconds": round(seconds, 1),
                                 "suites": rows}, indent=1) + "\n")
    optional = {step.name for step in before if step.optional}
    return 1 if any(verdict(row) == "FAILED" and row["suite"] not in optional for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
