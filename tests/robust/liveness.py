"""Launcher and agents notice that the other is stopped, and tell a user's stop from a broken connection."""

import os
import shlex
import signal
import sys
import time
from pathlib import Path

from harness import Problem
from floods import HERE, hello
from hosts import STAND_IN, agents, ready, start
from watched import Job

# The longest silence in these tests, in seconds, and the time for the end of the job after it.
PATIENCE = 1.0
END = 8.0


def waiting_job(world):
    return start(world, *STAND_IN, "init", "print=ready\\n", "recv=any tag=1", env={"FISHPLATE_HEARTBEAT": str(PATIENCE)})


def stopped_agent(which: int):
    def test(world):
        with waiting_job(world) as job:
            ready(job)
            os.kill(agents(job)[which], signal.SIGSTOP)
            if (code := job.end(PATIENCE + END)) != 1:
                raise Problem(f"exit status {code}, not 1: {job.err[-500:]!r}")
            job.check_one_line(rf"host {'ab'[which]}: its agent has been silent for 1 s: it is stopped, or the connection",
                               "FISHPLATE_HEARTBEAT", "; .*MPI_Recv")
            job.check_gone()
    return f"liveness: the agent of host {'ab'[which]} is stopped", test


def silent_start(world):
    """An agent falls silent while it starts its ranks."""
    words = [sys.executable, str(HERE / "false_agent.py"), "silence amid the start", "{host}"]
    env = {"FISHPLATE_HEARTBEAT": str(PATIENCE), "HELLO": hello(world)}
    with Job(world.work, [world.mpiexec, "-n", 1, "--hosts", "a", "--launch-with", shlex.join(words), "true"], env=env) as job:
        if (code := job.end(PATIENCE + END)) != 1:
            raise Problem(f"exit status {code}, not 1: {job.err[-500:]!r}")
        job.check_one_line("host a: its agent has been silent for 1 s")
        job.check_gone()


def stopped_launcher(world):
    """Its agents end all ranks. It says so once it goes on."""
    with waiting_job(world) as job:
        ready(job)
        os.kill(job.process.pid, signal.SIGSTOP)
        job.wait_for("the ranks were ended", lambda: not job.ranks(), PATIENCE + END)
        os.kill(job.process.pid, signal.SIGCONT)
        if (code := job.end(END)) != 1:
            raise Problem(f"exit status {code}, not 1: {job.err[-500:]!r}")
        job.check_says("host [ab]: its agent has not heard from the launcher for 1 s")
        job.check_gone()


def stopped_by_the_user(world):
    """SIGTSTP stops launcher and ranks for as long as the user likes."""
    env = {"FISHPLATE_HEARTBEAT": str(PATIENCE)}
    with start(world, "sh", "-c", "echo ready; sleep 4", env=env) as job:
        ready(job)
        os.kill(job.process.pid, signal.SIGTSTP)
        job.wait_for("the launcher was stopped", lambda: state(job.process.pid) == "T")
        time.sleep(3 * PATIENCE)
        if len(job.ranks()) != 4:
            raise Problem(f"ranks were ended while the user had stopped the job: {job.err[-500:]!r}")
        os.kill(job.process.pid, signal.SIGCONT)
        if (code := job.end(20)) != 0 or job.err:
            raise Problem(f"exit status {code}: {job.err[-500:]!r}")


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def idle_job(world):
    """Silence of the ranks is no silence of the agents."""
    with start(world, "sleep", 4 * PATIENCE, env={"FISHPLATE_HEARTBEAT": str(PATIENCE)}) as job:
        if (code := job.end(20)) != 0 or job.err:
            raise Problem(f"exit status {code}: {job.err[-500:]!r}")


def tests() -> list:
    return [
        stopped_agent(0),
        stopped_agent(1),
        ("liveness: an agent falls silent amid the start", silent_start),
        ("liveness: the launcher is stopped", stopped_launcher),
        ("liveness: the user stops the job", stopped_by_the_user),
        ("liveness: an idle job goes on", idle_job),
    ]
