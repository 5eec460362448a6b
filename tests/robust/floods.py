"""False agents and false ranks flood the launcher: its memory stays small, and it answers signals all the same."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from harness import Problem
from watched import Job

HERE = Path(__file__).resolve().parent
# The most memory of the launcher, in KiB.
MOST_MEMORY = 64 << 10
# The time for an answer to a signal: the promise is 0.1 s, the rest is for a busy machine.
ANSWER = 0.1 + 1.9
# The duration of a flood.
FLOOD = 0.7

OF_AGENTS = ["small frames", "output", "lines before the greeting", "a line without end before the greeting", "text on standard error",
             "questions without reading the answers", "questions without an answer", "lines of a status", "values", "lines of the exchange",
             "a frame of 4 GiB", "ends of output", "pieces of a profile", "a line of a rank without end"]
OF_RANKS = ["a line without end", "questions without reading the answers", "questions without an answer", "lines of a status", "values", "empty lines", "warnings"]
# Floods that break a rule, which ends the job, and the words of its line.
BREACHES = {"a frame of 4 GiB": "broken the rules.*4294967295 bytes", "lines of the exchange": "broken the rules.*line of the exchange",
            "values": r"misused.*exceeds \d+ KiB", "questions without an answer": "misused.*waits for more than"}


def memory(pid: int) -> int:
    """The most memory that a process has had, in KiB; 0 once it is gone."""
    try:
        found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) if found else 0


def last(job: Job) -> bytes:
    """The last part of standard error, which may be long."""
    with open(job.files["err"], "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - (1 << 20)))
        return file.read()


def end_under_flood(job: Job, kind: str) -> str:
    """The launcher ends the job by itself, or on a signal in time. Gives its memory and time."""
    most, until = 0, time.monotonic() + FLOOD
    while time.monotonic() < until and job.process.poll() is None:
        most = max(most, memory(job.process.pid))
        time.sleep(0.005)
    if kind in BREACHES:
        job.end(10)
        job.check_says(BREACHES[kind])
        answer = ""
    else:
        began = time.monotonic()
        job.process.terminate()
        job.wait_for("the launcher answered", lambda: job.process.poll() is not None or b"ended by SIGTERM" in last(job), ANSWER)
        answer = f", signal answered after {time.monotonic() - began:.2f} s"
        most = max(most, memory(job.process.pid))
        if (code := job.end(10)) != 143:
            raise Problem(f"exit status {code}, not 143: {job.err[-500:]!r}")
    if b"\x1b" in last(job):
        raise Problem("control characters of an agent are shown")
    if most > MOST_MEMORY:
        raise Problem(f"the launcher took {most >> 10} MiB")
    job.check_gone()
    return f"{most >> 10} MiB{answer}"


def hello(world) -> str:
    version = subprocess.run([world.mpiexec, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    return f"fishplate agent {version}"


def of_an_agent(kind: str):
    def test(world):
        words = [sys.executable, str(HERE / "false_agent.py"), kind, "{host}"]
        command = [world.mpiexec, "-n", 1, "--hosts", "a", "--profile", "--launch-with", shlex.join(words), "true"]
        with Job(world.work, command, env={"HELLO": hello(world)}) as job:
            return end_under_flood(job, kind)
    return f"flood of an agent: {kind}", test


def of_a_rank(kind: str):
    def test(world):
        with Job(world.work, [world.mpiexec, "-n", 2, sys.executable, HERE / "false_rank.py", kind]) as job:
            return end_under_flood(job, kind)
    return f"flood of a rank: {kind}", test


def nobody_reads(kind: str, expected: int):
    """Standard output and error are full: the launcher ends all the same, by a signal or because a rule is broken."""
    return f"flood of an agent whose output nobody reads: {kind}", lambda world: end_unread(world, kind, expected)


def end_unread(world, kind: str, expected: int) -> None:
    words = [sys.executable, str(HERE / "false_agent.py"), kind, "{host}"]
    command = [str(world.mpiexec), "-n", "1", "--hosts", "a", "--launch-with", shlex.join(words), "true"]
    reader, writer = os.pipe()
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer,
                              env=os.environ | {"HELLO": hello(world)}, start_new_session=True) as process:
            time.sleep(FLOOD)
            most = memory(process.pid)
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                raise Problem("the launcher has not ended after 10 s") from None
            if code != expected or most > MOST_MEMORY:
                raise Problem(f"exit status {code}, {most} KiB")
    finally:
        os.close(reader)
        os.close(writer)


def tests() -> list:
    return [
        *map(of_an_agent, OF_AGENTS),
        *map(of_a_rank, OF_RANKS),
        nobody_reads("text on standard error", 143),
        nobody_reads("output", 1),
    ]
