"""A batch system on this machine for the time of a test: its daemons in the foreground, and everything of it in a temporary folder.

No service of the system is started. The daemons end with the context; those that a killed run has left end before the next begins.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import harness
from harness import Outcome, Problem

# Time in which a daemon must be ready, and must have ended.
READY_SECONDS, END_SECONDS = 60, 10


def daemons_of(folder: str) -> list[int]:
    """The processes of the cluster in this folder, by the folder's name in their environment or on their command line."""
    found, mark = [], folder.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "cmdline").read_bytes() or b"=" + mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def end(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Cluster:
    """A context manager: the cluster exists inside it. A kind of cluster gives the methods that raise here."""

    # The system, and the first part of the folder's name.
    name = folder_name = ""

    def __enter__(self):
        self.remove_leftovers()
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.folder_name}{os.getpid()}-"))
        # Daemons may run as other users.
        self.folder.chmod(0o755)
        # The variables by which commands reach the cluster.
        self.environment = {}
        self.processes = []
        try:
            self.configure()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.end_jobs()
        for process in reversed(self.processes):
            process.terminate()
        until = time.monotonic() + END_SECONDS
        for process in reversed(self.processes):
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        # Processes of jobs, which are in sessions of their own.
        end(daemons_of(str(self.folder)))
        shutil.rmtree(self.folder, ignore_errors=True)

    def configure(self) -> None:
        """Writes the configuration, and sets the environment."""
        raise NotImplementedError

    def start(self) -> None:
        """Starts the daemons, and waits for them."""
        raise NotImplementedError

    def end_jobs(self) -> None:
        """Ends all jobs, in the end of the cluster."""
        raise NotImplementedError

    def is_idle(self) -> bool:
        """Whether no job is left."""
        raise NotImplementedError

    def remove_leftovers(self) -> None:
        """Ends the clusters of runs that were killed."""
        for folder in Path(tempfile.gettempdir()).glob(self.folder_name + "*"):
            if (found := re.match(self.folder_name + r"(\d+)-", folder.name)) and not Path(f"/proc/{found[1]}").exists():
                end(daemons_of(str(folder)))
                shutil.rmtree(folder, ignore_errors=True)

    def daemon(self, *command, env: dict | None = None) -> None:
        with open(self.folder / f"{Path(command[0]).name}-{len(self.processes)}.out", "w") as log:
            started = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
                                       env=os.environ | self.environment | (env or {}), start_new_session=True)
        self.processes.append(started)

    def wait_for(self, what: str, ready) -> None:
        until = time.monotonic() + READY_SECONDS
        while not ready():
            ended = [" ".join(process.args[:3]) for process in self.processes if process.poll() is not None]
            if ended or time.monotonic() > until:
                logs = "".join(f"\n{path.name}: {line}" for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out"))
                               for line in path.read_text(errors="replace").splitlines()[-8:])
                raise Problem(f"{what} does not start: {', '.join(ended) or 'it is not ready'}{logs}")
            time.sleep(0.1)

    def run(self, *command, seconds: float = 60, env: dict | None = None) -> Outcome:
        """Runs a command that reaches the cluster."""
        return harness.run(self.words(*command), seconds=seconds, env=self.environment | (env or {}))

    def words(self, *command) -> list[str]:
        """The words that run a command, with `environment`, where it reaches the cluster."""
        return list(map(str, command))

    def settle(self) -> None:
        """Waits until no job is left."""
        self.wait_for("an idle cluster", self.is_idle)
