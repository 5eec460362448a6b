"""One job under observation: its processes, its end, and what it leaves behind.

Every process of a job has a unique variable in its environment, which identifies it in any process group or session and below any
parent.
"""

import os
import re
import secrets
import signal
import subprocess
import time
from pathlib import Path

from harness import Problem

MARK = "ROBUST_JOB"
# A death ends the job within a second; the rest is for a busy machine.
END_SECONDS = 1.0 + 2.0


def usual_signals() -> None:
    """Undoes what `nohup` and shells without job control hand on: programs that they start ignore these signals."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Job:
    def __init__(self, work: Path, arguments: list, env: dict | None = None, cwd: Path | None = None):
        self.mark = secrets.token_hex(8)
        self.files = {name: work / f"{self.mark}.{name}" for name in ("out", "err")}
        with open(self.files["out"], "wb") as out, open(self.files["err"], "wb") as err:
            self.process = subprocess.Popen(
                list(map(str, arguments)), stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                env=os.environ | {MARK: self.mark} | (env or {}), start_new_session=True, preexec_fn=usual_signals)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_):
        for pid in [*self.members(), self.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        for file in self.files.values():
            file.unlink()

    @property
    def out(self) -> str:
        return self.files["out"].read_text(errors="replace")

    @property
    def err(self) -> str:
        return self.files["err"].read_text(errors="replace")

    def environments(self):
        """(pid, environment) of all processes of the job but zombies."""
        mark = f"{MARK}={self.mark}".encode()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
                if mark in variables and (entry / "stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                    yield int(entry.name), variables
            except OSError:
                continue  # it ended meanwhile

    def members(self) -> list[int]:
        return [pid for pid, _ in self.environments()]

    def ranks(self) -> dict[int, int]:
        """Process id by rank, of the ranks that have started."""
        found = {}
        for pid, variables in self.environments():
            for variable in variables:
                if variable.startswith(b"FISHPLATE_RANK="):
                    found[int(variable.partition(b"=")[2])] = pid
        return found

    def states(self) -> set[str]:
        """The states of all processes of ranks, as /proc names them."""
        found = set()
        for pid, variables in self.environments():
            if not any(variable.startswith(b"FISHPLATE_RANK=") for variable in variables):
                continue
            try:
                found.add(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
            except OSError:
                continue  # it ended meanwhile
        return found

    def kill(self, rank: int, number: signal.Signals = signal.SIGKILL) -> None:
        pid = self.ranks().get(rank)
        if pid is None:
            raise Problem(f"rank {rank} is gone before its time: {self.err[-500:]}")
        os.kill(pid, number)

    def wait_for(self, what: str, condition, seconds: float = 20.0):
        """The condition's value once it is true."""
        end = time.monotonic() + seconds
        while True:
            if value := condition():
                return value
            if self.process.poll() is not None:
                raise Problem(f"the job ended with {self.process.returncode} before {what}: {self.err[-500:]}")
            if time.monotonic() > end:
                raise Problem(f"after {seconds:g} s still not {what}: {self.err[-500:]}")
            time.sleep(0.002)

    def wait_until_ready(self, ranks: int) -> None:
        self.wait_for(f"{ranks} ranks were ready", lambda: self.out.count("ready\n") == ranks)

    def end(self, seconds: float = END_SECONDS) -> int:
        """Waits for the end; the exit status, negative for a signal."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Problem(f"the launcher has not ended after {seconds:g} s: {self.err[-500:]}") from None

    def wait_for_no_process(self, seconds: float = END_SECONDS) -> None:
        end = time.monotonic() + seconds
        while left := self.members():
            if time.monotonic() > end:
                names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in left
                         if Path(f"/proc/{pid}/comm").exists()]
                raise Problem(f"processes are left after {seconds:g} s: {', '.join(names)}")
            time.sleep(0.005)

    def check_gone(self, seconds: float = END_SECONDS) -> None:
        """No process is left, and no file in /tmp or /dev/shm, which belong to the test."""
        self.wait_for_no_process(seconds)
        check_no_files()

    def check_one_line(self, *patterns: str) -> None:
        """Standard error is one line that matches all patterns."""
        lines = self.err.splitlines()
        if len(lines) != 1:
            raise Problem(f"{len(lines)} lines instead of one: {self.err[-800:]}")
        self.check_says(*patterns)

    def check_says(self, *patterns: str) -> None:
        for pattern in patterns:
            if not re.search(pattern, self.err):
                raise Problem(f"the message does not say {pattern!r}: {self.err[-800:]!r}")


def check_no_files() -> None:
    for folder in ("/tmp", "/dev/shm"):
        if left := os.listdir(folder):
            raise Problem(f"left in {folder}: {', '.join(left)}")
