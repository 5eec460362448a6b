"""What all test drivers share: a prefix, a bounded run under its mpiexec, a closing line.

A prefix has bin/{mpicc,mpicxx,mpiexec}, include/mpi.h and lib/libmpi_abi.so.1; `make stage` fills
./build, peer.py makes one of MPICH. Nothing that a run started may outlive it: every run is a
session of its own, and what is left of the session when its time is up is killed by process id.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
POLL_SECONDS = 0.02


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
           cwd: Path | None = None, options: tuple = (), progress=None) -> Outcome:
    """Run `mpiexec -n ranks command`. Without `progress`, `seconds` bound the whole run; with it,
    they bound the time in which `progress()` returns the same value, and may be a function."""
    arguments = [str(prefix / "bin/mpiexec"), *options, "-n", str(ranks), *map(str, command)]
    return run(arguments, seconds=seconds, env=env, cwd=cwd, progress=progress)


def run(arguments: list, *, seconds, env: dict | None = None, cwd: Path | None = None,
        progress=None) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                   env=os.environ | (env or {}), cwd=cwd, start_new_session=True)
        code = wait(process, seconds, progress)
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


def closing_line(passed: int, failed: int, skipped: int) -> int:
    """Prints the last line and gives the exit status."""
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0
