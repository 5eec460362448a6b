"""Ranks that die, at every moment: the job ends at once, with one line that says who and how."""

import os
import signal
import time

from harness import Problem
from watched import Job

RANKS = 4


def start(world, *arguments, ranks: int = RANKS) -> Job:
    return Job(world.work, [world.mpiexec, "-n", ranks, world.victim, *arguments])


def killed_while(where: str):
    def test(world):
        with start(world, where) as job:
            job.wait_until_ready(RANKS)
            dead = world.random.randrange(RANKS)
            job.kill(dead)
            code = job.end()
            if code != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}")
            job.check_one_line(rf"rank {dead}\b", r"SIGKILL|signal 9")
            job.check_gone()
    return f"a rank is killed: {where}", test


def killed_between(dead: int):
    """The last rank never joins the operation in which the others wait: its death, or that of one that waits, ends it."""
    def test(world):
        with start(world, "between") as job:
            job.wait_until_ready(RANKS)
            job.kill(dead)
            code = job.end()
            if code != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}")
            job.check_one_line(rf"rank {dead}\b", r"SIGKILL|signal 9")
            job.check_gone()
    return f"rank {dead} is killed while a collective operation between two groups waits", test


def killed_with_a_lock(where: str):
    """Rank 1 holds a lock in memory that all ranks map, and the others wait for it."""
    def test(world):
        with start(world, where) as job:
            job.wait_until_ready(RANKS)
            # Some are asleep by then.
            time.sleep(world.random.random())
            job.kill(1)
            code = job.end()
            if code != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}: {job.err[-500:]}")
            if job.out.replace("ready\n", ""):
                raise Problem(f"nobody waited: {job.out}")
            job.check_one_line(r"rank 1\b", r"SIGKILL|signal 9")
            job.check_gone()
    return f"a rank is killed while it holds a {where}", test


def killed_at_random(world):
    """From the first sight of a rank's process to well after Init."""
    for _ in range(world.kills):
        with start(world, world.random.choice(["ring", "reduce", "wait"])) as job:
            job.wait_for("a rank was started", job.ranks)
            time.sleep(world.random.random() * 0.03)
            dead = world.random.choice(sorted(job.ranks()))
            job.kill(dead)
            if job.end() == 0:
                raise Problem("exit status 0")
            job.check_one_line(rf"rank {dead}\b", r"SIGKILL|signal 9")
            job.check_gone()


def killed_in_a_long_message(world):
    """The other rank finds the memory of the dead one gone before the launcher hears of its end, and is not blamed."""
    for attempt in range(16):
        with start(world, "long", ranks=2) as job:
            job.wait_until_ready(2)
            time.sleep(world.random.random() * 0.03)
            dead = attempt % 2
            job.kill(dead)
            code = job.end()
            if code != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}: {job.err[-500:]}")
            job.check_one_line(rf"rank {dead}\b", r"SIGKILL|signal 9")
            job.check_gone()


def all_killed(world):
    with start(world, "ring") as job:
        job.wait_until_ready(RANKS)
        for pid in job.ranks().values():
            os.kill(pid, signal.SIGKILL)
        if job.end() == 0:
            raise Problem("exit status 0")
        job.check_one_line(r"rank \d", r"SIGKILL|signal 9")
        job.check_gone()


def stopped_ones_are_ended_too(world):
    with start(world, "wait") as job:
        job.wait_until_ready(RANKS)
        job.kill(0, signal.SIGSTOP)
        job.kill(1)
        job.end()
        job.check_says(r"rank 1\b")
        job.check_gone()


def fault(world):
    with start(world, "fault") as job:
        code = job.end(10)
        if code != 128 + signal.SIGSEGV:
            raise Problem(f"exit status {code}, not {128 + signal.SIGSEGV}")
        job.check_one_line(r"rank 1\b", r"SIGSEGV|signal 11")
        job.check_gone()


def killed_after_finalize(world):
    """The others have nothing to wait for, so they are left to end by themselves."""
    with start(world, "after") as job:
        job.wait_until_ready(RANKS)
        job.kill(2)
        began = time.monotonic()
        code = job.end(10)
        if code != 128 + signal.SIGKILL:
            raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}")
        if time.monotonic() - began < 0.5:
            raise Problem("the others were ended too")
        job.check_one_line(r"rank 2\b", r"SIGKILL|signal 9")
        job.check_gone()


def leaves_with(code: int):
    def test(world):
        with start(world, "leave", code) as job:
            seen = job.end(10)
            if seen != (code or 1):
                raise Problem(f"exit status {seen}, not {code or 1}")
            job.check_one_line(r"rank 1\b", str(code) if code else "MPI_Finalize")
            job.check_gone()
    return f"a rank leaves with code {code} without MPI_Finalize", test


def tests() -> list:
    return [
        *[killed_while(where) for where in
          ("before", "wait", "ring", "reduce", "compute", "deaf")],
        *[killed_between(dead) for dead in range(RANKS)],
        *[killed_with_a_lock(where) for where in ("stripe", "lock")],
        ("a rank is killed after MPI_Finalize", killed_after_finalize),
        ("a rank is killed at random moments", killed_at_random),
        ("a rank is killed in a long message", killed_in_a_long_message),
        ("all ranks are killed", all_killed),
        ("a rank is killed while another is stopped", stopped_ones_are_ended_too),
        ("a rank has a fault", fault),
        leaves_with(7),
        leaves_with(0),
    ]
