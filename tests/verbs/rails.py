"""Jobs over the two rails of both hosts, and rails that break and recover while a job runs."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import devices
import harness
import programs
from harness import Case, Problem

# Ranks of a job: two on each host.
RANKS = 4
# The time that a job sends messages, in seconds, and the most that it may take on an emulated processor.
SENDS, SECONDS = 4, 120
# A rail, and what happens to it, under which a job goes on.
SURVIVED = [(1, "cut"), (1, "down"), (1, "pull")]


def prepare(options) -> None:
    programs.build(options, [Path(__file__).with_name("steady.c")])


class Job:
    """A C program over both hosts that says "under way" while it sends messages."""

    def __init__(self, world, program: str, *arguments, ranks: int = RANKS, env: dict | None = None):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        command = world.launcher(ranks, programs.folder(world.prefix) / program, *arguments)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
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

    def until(self, holds, complaint: str, seconds: float = SECONDS) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end or (self.process.poll() is not None and not holds()):
                raise Problem(f"{complaint}: {self.said(self.out)}{self.said(self.err)}")
            time.sleep(0.05)

    def is_under_way(self) -> None:
        self.until(lambda: "under way" in self.said(self.out), "it has not begun")

    def ends_well(self) -> None:
        end = time.monotonic() + SECONDS
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise Problem(f"it has not ended: {self.said(self.err)}")
            time.sleep(0.05)
        out, err = self.said(self.out), self.said(self.err)
        if self.process.returncode != 0 or " ok\n" not in out:
            raise Problem(f"exit status {self.process.returncode}: {out}{err}")


def carried(rail: int) -> int:
    """Packets that have crossed a rail."""
    return devices.traffic(f"r{rail}h0")


def right_over_both(world) -> None:
    """Out-of-band messages use every rail, whatever the policy is, so packets cross both."""
    before = [carried(rail) for rail in (0, 1)]
    with Job(world, "steady", 0) as job:
        job.ends_well()
    if unused := [rail for rail in (0, 1) if carried(rail) == before[rail]]:
        raise Problem(f"no packet has crossed rail {unused[0]}")


def breaks(rail: int, how: str):
    """Ranks that meet only after the break find each other too."""
    def test(world) -> None:
        with Job(world, "steady", SENDS) as job:
            job.is_under_way()
            world.run("rail", rail, how)
            job.ends_well()
    return test


def breaks_and_mends(rail: int):
    def test(world) -> None:
        with Job(world, "steady", 3 * SENDS) as job:
            job.is_under_way()
            for how in ("cut", "up", "down", "up"):
                world.run("rail", rail, how)
                time.sleep(SENDS / 2)
            job.ends_well()
    return test


def tests() -> list[Case]:
    return [
        Case("rails: a program over two rails", right_over_both),
        *(Case(f"rails: rail {rail}, {how}, under messages", breaks(rail, how), short=(rail, how) == (1, "cut"))
          for rail, how in SURVIVED),
        Case("rails: rail 1 breaks and recovers, twice, under messages", breaks_and_mends(1), short=False),
    ]
