"""The launcher dies, is interrupted, or cannot start the job."""

import os
import signal
import time

from harness import Problem
from watched import Job

RANKS = 3


def killed_while(where: str):
    """The ranks end although no launcher is left to end them."""
    def test(world):
        with Job(world.work, [world.mpiexec, "-n", RANKS, world.victim, where]) as job:
            job.wait_until_ready(RANKS)
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()
            job.check_gone()
    return f"the launcher is killed: ranks {where}", test


def killed_at_random(world):
    for _ in range(world.kills):
        wrapper = world.random.choice([[], ["sh", "-c", '"$0" "$@"; true']])
        with Job(world.work, [world.mpiexec, "-n", RANKS, *wrapper, world.victim, "ring"]) as job:
            time.sleep(world.random.random() * 0.05)
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()
            job.check_gone()


def interrupted_by(number: signal.Signals, where: str):
    def test(world):
        with Job(world.work, [world.mpiexec, "-n", RANKS, world.victim, where]) as job:
            job.wait_until_ready(RANKS)
            os.kill(job.process.pid, number)
            code = job.end(10 if where == "deaf" else 3)
            if code != 128 + number:
                raise Problem(f"exit status {code}, not {128 + number}")
            job.check_says(number.name)
            job.check_gone()
    return f"{number.name} while ranks {where}", test


def timeout(world):
    with Job(world.work, [world.mpiexec, "--timeout", "0.5", "-n", RANKS, world.victim, "wait"]) as job:
        if (code := job.end(5)) != 124:
            raise Problem(f"exit status {code}, not 124")
        job.check_says("0.5|500")
        job.check_gone()


def cannot_start(what: str, program: str, *patterns: str):
    def test(world):
        target = program.format(work=world.work)
        with Job(world.work, [world.mpiexec, "-n", 2, target]) as job:
            if job.end(5) == 0:
                raise Problem("exit status 0")
            job.check_says(*patterns)
            job.check_gone()
    return f"the program {what}", test


def programs(world):
    """One world of several programs; MPI_APPNUM counts them."""
    place = world.programs / "place"
    with Job(world.work, [world.mpiexec, "-n", 1, place, ":", "-n", 2, place]) as job:
        if (code := job.end(10)) != 0:
            raise Problem(f"exit status {code}: {job.err}")
        if sorted(job.out.split("\n")) != ["", "0/3 0", "1/3 1", "2/3 1"]:
            raise Problem(f"the ranks are {job.out!r}")


def tests() -> list:
    return [
        *[killed_while(where) for where in ("before", "wait", "ring", "compute", "deaf")],
        ("the launcher is killed at random moments", killed_at_random),
        interrupted_by(signal.SIGINT, "wait"),
        interrupted_by(signal.SIGTERM, "compute"),
        interrupted_by(signal.SIGINT, "deaf"),
        interrupted_by(signal.SIGHUP, "wait"),
        ("--timeout ends a job", timeout),
        ("a job of several programs", programs),
        cannot_start("does not exist", "/nowhere/at-all", "/nowhere/at-all", "[Nn]o such file|not found"),
        cannot_start("is a folder", "{work}", "{work}".replace("{work}", "robust"), "."),
    ]
