"""A command that runs while a test does something to it."""

import os
import re
import signal
import subprocess
import tempfile
import time

import harness
from harness import Problem

# The most that a command may take on an emulated processor, and that it may take to say what each rank waits for.
SECONDS, ANSWER = 120, 3


class Job:
    """A command that runs, such as a C program over both hosts that says "under way" while it sends messages."""

    def __init__(self, command: list, env: dict | None = None, seconds: float = SECONDS):
        self.out, self.err, self.seconds = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+"), seconds
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=os.environ | (env or {}), start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.kill_session(self.process.pid)
        self.process.wait()
        self.out.close()
        self.err.close()

    @staticmethod
    def said(stream) -> str:
        stream.seek(0)
        return stream.read()

    def until(self, holds, complaint: str) -> None:
        end = time.monotonic() + self.seconds
        while not holds():
            if time.monotonic() > end or (self.process.poll() is not None and not holds()):
                raise Problem(f"{complaint}: {self.said(self.out)}{self.said(self.err)}")
            time.sleep(0.05)

    def is_under_way(self) -> None:
        self.until(lambda: "under way" in self.said(self.out), "it has not begun")

    def waits_for(self) -> str:
        """Standard error after the launcher was asked what each rank waits for."""
        self.process.send_signal(signal.SIGQUIT)
        time.sleep(ANSWER)
        return self.said(self.err)

    def ends(self, seconds: float | None = None) -> tuple[int, str, str]:
        """Exit status and output. Without `seconds` the limit of the job holds, from now on."""
        end = time.monotonic() + (seconds or self.seconds)
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise Problem(f"it has not ended: {self.said(self.out)}{self.waits_for()}")
            time.sleep(0.05)
        return self.process.returncode, self.said(self.out), self.said(self.err)

    def ends_well(self) -> str:
        code, out, err = self.ends()
        if code != 0 or " ok\n" not in out:
            raise Problem(f"exit status {code}: {out}{err}")
        return out


def longest_gap(job: Job, break_rail) -> float:
    """The longest time without messages, in seconds, under a job of tests/verbs/gap.c under which a rail breaks."""
    job.is_under_way()
    time.sleep(1)
    break_rail()
    return float(re.search(r"longest ([\d.]+) s", job.ends_well())[1])


def outage(job: Job, break_rail, most: float) -> str:
    """As `longest_gap`, at most so many seconds."""
    if (longest := longest_gap(job, break_rail)) > most:
        raise Problem(f"no message for {longest} s, more than {most} s")
    return f"{longest} s without messages"
