"""Shared parts of all Python suites: the runner of test cases, and the bounded run of a command.

A suite is a list of `Case`s that `run_suite` runs, prints and counts. Its results are kept in build/tests/results;
tests/all.py makes a table of them.

A prefix has bin/{mpicc,mpicxx,mpiexec}, include/mpi.h and lib/libmpi_abi.so.1; `make stage` fills ./build, peer.py makes one of
MPICH. Nothing that a command started outlives it: every command runs in a session of its own, and the processes of that session
are killed by process id when the command ends or its time is up.
"""

import atexit
import functools
import json
import os
import resource
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "build" / "tests" / "results"
# Lines about what could not be run here, and why; tests/all.py prints them once more at its end.
NOT_RUN_FILE = ROOT / "build" / "not-run"
# Exit status of a suite that could not be run here.
NOT_RUN = 3
# Fortran compilers, by the names that mpifort looks for.
FORTRAN_COMPILERS = ("gfortran", "flang", "flang-new", "ifx", "nvfortran", "nagfor", "crayftn")
POLL_SECONDS = 0.02
# Lines of a failed command's output that are shown.
SHOWN_LINES = 40


@functools.cache
def token_file() -> str:
    """A file with a token, for both sides of `fishplate perf --secret-file`. It is there as long as this process."""
    handle, name = tempfile.mkstemp(prefix="fishplate-token-")
    atexit.register(os.unlink, name)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(16))
    return name


class Problem(Exception):
    """A failed test: the first line says why, further lines are output."""


class Skip(Exception):
    """The reason why a test cannot run here."""


@dataclass
class Case:
    """One test. `run` gets the suite's world, raises `Problem` where it fails, and may return a note for the line of its result."""

    name: str
    run: Callable
    # Belongs to the short selection (`--short`, `--subset ci`).
    short: bool = True
    # Time limit of the case. Commands inside it have shorter limits, so this one ends only a test that is itself at fault.
    seconds: float = 3600
    # The reason why the case is not run, if there is one.
    skip: str = ""

    def wanted(self, options) -> bool:
        return getattr(options, "only", "") in self.name and (self.short or not getattr(options, "short", False))


@dataclass
class Tally:
    """Counts of a suite, and the result and the seconds of each case; the processor seconds, too, where cases run alone."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    cases: list = field(default_factory=list)

    def add(self, name: str, result: str, seconds: float, reason: str = "", processor: float | None = None) -> None:
        """`result` is passed, failed or skipped."""
        setattr(self, result, getattr(self, result) + 1)
        case = {"name": name, "result": result, "seconds": round(seconds, 2)}
        if processor is not None:
            case["processor_seconds"] = round(processor, 2)
        self.cases.append(case if result == "passed" else case | {"reason": reason})

    def merge(self, other: "Tally") -> None:
        self.passed, self.failed, self.skipped = (self.passed + other.passed, self.failed + other.failed,
                                                  self.skipped + other.skipped)
        self.cases += other.cases


def run_cases(cases: list[Case], world=None, *, jobs: int = 1, after: Callable | None = None) -> Tally:
    """Runs the cases and prints a line for each. `after(world)` follows every case; where it raises `Problem`, the case failed.

    Several `jobs` are for cases that depend neither on the clock nor on each other. They run in threads, which no alarm can
    interrupt, so there the limits of their commands apply and not `Case.seconds`."""
    tally = Tally()
    if jobs == 1:
        for case in cases:
            before = processor_seconds()
            outcome = judged(case, world, after, alarm=True)
            show(case, *outcome, tally, processor_seconds() - before)
    else:
        with ThreadPoolExecutor(jobs) as pool:
            running = [(case, pool.submit(judged, case, world, after, alarm=False)) for case in cases]
            for case, outcome in running:
                show(case, *outcome.result(), tally)
    return tally


def judged(case: Case, world, after, *, alarm: bool) -> tuple[str, str, float]:
    """Result, reason, seconds."""
    if case.skip:
        return "skipped", case.skip, 0.0
    began, result, reason = time.monotonic(), "passed", ""
    try:
        with limit(case.seconds if alarm else None):
            reason = case.run(world) or ""
    except Skip as why:
        result, reason = "skipped", str(why)
    except Problem as found:
        result, reason = "failed", str(found)
    except Exception:  # a fault of the test itself is a failure too, and the others still run
        result, reason = "failed", traceback.format_exc()
    try:
        if after is not None:
            after(world)
    except Problem as found:
        result, reason = "failed", reason or str(found)
    return result, reason, time.monotonic() - began


class limit:
    """Raises `Problem` in the main thread when the seconds are up."""

    def __init__(self, seconds: float | None):
        self.seconds = seconds if threading.current_thread() is threading.main_thread() else None

    def __enter__(self):
        def ring(*_):
            raise Problem(f"no end after {self.seconds:g} s")
        if self.seconds is not None:
            self.before = signal.signal(signal.SIGALRM, ring)
            signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, *_):
        if self.seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.before)


def processor_seconds() -> float:
    """What this process and all that it has waited for have used."""
    return sum(sum(resource.getrusage(of)[:2]) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def show(case: Case, result: str, reason: str, seconds: float, tally: Tally, processor: float | None = None) -> None:
    tally.add(case.name, result, seconds, reason, processor)
    if result == "skipped":
        print(f"skip {case.name}: {reason}", flush=True)
        return
    first, *rest = reason.splitlines() or [""]
    print(f"{'FAIL' if result == 'failed' else 'pass'} {case.name} ({seconds:.1f} s){': ' if first else ''}{first}", flush=True)
    for line in rest:
        print(f"    | {line}", flush=True)


def output(text: str, first: int = 0) -> str:
    """The lines of a command's output that follow the reason of a failure."""
    return "".join(f"\n{line}" for line in text.splitlines()[first:first + SHOWN_LINES])


def close(suite: str, tally: Tally, began: float) -> int:
    """Keeps the results, prints the suite's time and its closing line, and gives the exit status."""
    seconds = time.monotonic() - began
    keep(suite, tally.passed, tally.failed, tally.skipped, seconds, tally.cases)
    print(f"{suite}: {seconds:.1f} s")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped", flush=True)
    return 1 if tally.failed else 0


def not_run(what: str, reason: str) -> int:
    """Says loudly that tests could not be run here; the exit status of a suite of which that is true."""
    line = f"*** {what} NOT RUN: {' '.join(reason.split())} ***"
    print(line, flush=True)
    NOT_RUN_FILE.parent.mkdir(parents=True, exist_ok=True)
    with open(NOT_RUN_FILE, "a") as file:
        file.write(line + "\n")
    return NOT_RUN


def keep(suite: str, passed: int, failed: int, skipped: int, seconds: float, cases: list) -> None:
    """Writes the results where tests/all.py reads them."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = {"suite": suite, "passed": passed, "failed": failed, "skipped": skipped, "seconds": round(seconds, 1), "cases": cases}
    (RESULTS / f"{suite}.json").write_text(json.dumps(kept, indent=1) + "\n")


def run_suite(suite: str, cases: list[Case], world=None, *, jobs: int = 1, after: Callable | None = None) -> int:
    began = time.monotonic()
    return close(suite, run_cases(cases, world, jobs=jobs, after=after), began)


def add_case_options(parser) -> None:
    """`--only` and `--list`, which every suite has."""
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name contains this")
    parser.add_argument("--list", action="store_true", help="print the names and stop")


@dataclass
class Outcome:
    """`code` is mpiexec's exit status (negative: its signal), None when the time was up."""

    code: int | None
    out: str
    err: str
    seconds: float


def add_prefix_option(parser) -> None:
    parser.add_argument("--prefix", type=Path, default=ROOT / "build",
                        help="has bin/mpicc, bin/mpiexec, include/mpi.h (default: ./build)")


def checked_prefix(path: Path) -> Path:
    prefix = path.resolve()
    for part in ("bin/mpicc", "bin/mpiexec", "include/mpi.h"):
        if not (prefix / part).exists():
            sys.exit(f"{prefix / part} is missing: run `make stage`, or name a prefix by --prefix")
    return prefix


def launch(prefix: Path, ranks: int, command: list, *, seconds, env: dict | None = None,
           cwd: Path | None = None, options: tuple = (), progress=None, mpiexec: tuple = ()) -> Outcome:
    """Run `mpiexec -n ranks command`; `mpiexec` is the command of another launcher than the prefix's. Without `progress`, `seconds` bound the whole run; with it,
    they bound the time in which `progress()` returns the same value, and may be a function."""
    arguments = [*(mpiexec or [str(prefix / "bin/mpiexec")]), *options, "-n", str(ranks), *map(str, command)]
    return run(arguments, seconds=seconds, env=env, cwd=cwd, progress=progress)


def run(arguments: list, *, seconds, env: dict | None = None, cwd: Path | None = None,
        progress=None) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=os.environ | (env or {}), cwd=cwd, start_new_session=True)
        try:
            code = wait(process, seconds, progress)
        finally:  # also where Ctrl-C interrupts this suite: the command has a session of its own, which no terminal signals
            kill_session(process.pid)
            process.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return Outcome(code, *texts, time.monotonic() - began)


def wait(process: subprocess.Popen, seconds, progress) -> int | None:
    changed, token = time.monotonic(), None
    while (code := process.poll()) is None:
        now = time.monotonic()
        if progress is not None and (seen := progress()) != token:
            changed, token = now, seen
        if now - changed > (seconds() if callable(seconds) else seconds):
            process.terminate()  # a launcher ends its ranks; what it leaves is killed below
            try:
                process.wait(3)
            except subprocess.TimeoutExpired:
                pass
            return None
        time.sleep(POLL_SECONDS)
    return code


def session_members(session: int) -> list[int]:
    """The processes of a session, zombies left out."""
    members = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        if int(fields[3]) == session and fields[0] not in "ZX":
            members.append(int(entry.name))
    return members


def kill_session(session: int) -> None:
    for member in session_members(session):
        try:
            os.kill(member, signal.SIGKILL)
        except ProcessLookupError:
            pass
