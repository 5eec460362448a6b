"""Ranks that wait: the processor time that they take, and their end when the cables of all rails break."""

import contextlib
import re
import time
from pathlib import Path

import c_programs
import rails
from harness import Case, Problem
from job import Job, program

# A device gives up a connection after half a second, and the job ends within one; an emulated processor takes longer.
ERROR_SECONDS = 30
# A peer that no path reaches is given up at once.
AT_ONCE = {"FISHPLATE_OUTAGE": "0"}
# The time that the processes of a job have to end after the launcher.
LEFT_SECONDS = 5
# Breaks for which a device has other words than that its retries are used up.
PORTS_DOWN = ("down",)


def prepare(options) -> None:
    c_programs.build(options, sorted(Path(__file__).parent.glob("*.c")))


def left() -> list[str]:
    """Processes of a job."""
    names = []
    for entry in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it ends meanwhile
            names.append(entry.read_text().strip())
    return [name for name in names if name in ("endless", "fishplate")]


def endless(world, *arguments, env: dict | None = None) -> Job:
    """Two ranks on two hosts that send long messages until one fails."""
    return program(world, "endless", *arguments, ranks=2, env=AT_ONCE | (env or {}))


def break_rails(world, how: str, which=(0, 1)) -> None:
    for rail in which:
        world.run("rail", rail, *how.split())


def without_rail(world, job: Job, rail: int) -> None:
    """The rail is cut, and the job has gone over to the other."""
    break_rails(world, "cut", [rail])
    job.until(lambda: f"rail {rail} (rxe" in job.said(job.err), f"it does not say that rail {rail} has failed")


def ends_with_the_error(job: Job, how: str, device: str) -> None:
    """The library ends the program within seconds; the error names the rank, the device, the reason and advice."""
    code, _, err = job.ends(ERROR_SECONDS)
    if code == 0:
        raise Problem(f"exit status 0: {err}")
    reason = "" if how in PORTS_DOWN else r"\([^)]*retry[^)]*\): "
    if not re.search(rf"the connection to rank [01] by {device}\d .*{reason}.*cable", err):
        raise Problem(f"no error of a lost connection by {device}: {err}")
    end = time.monotonic() + LEFT_SECONDS
    while processes := left():
        if time.monotonic() > end:
            raise Problem(f"{processes} are left")
        time.sleep(0.05)


def broken(how: str, device: str = "rxe", **more):
    """All rails break: the error is the same whether the job has one rail or several."""
    def test(world) -> None:
        with endless(world, "fatal", **more) as job:
            job.is_under_way()
            break_rails(world, how)
            ends_with_the_error(job, how, device)
    return test


def broken_in_turn(first: int):
    """The rail that carries all after the first has failed is cut too."""
    def test(world) -> None:
        with endless(world, "fatal") as job:
            job.is_under_way()
            without_rail(world, job, first)
            break_rails(world, "cut", [1 - first])
            ends_with_the_error(job, "cut", "rxe")
    return test


def under_bench(world) -> None:
    before = rails.packets()
    with Job(rails.bench("bw", "256K:256K", 1000)(world), AT_ONCE) as job:
        rails.sends(job, before)
        break_rails(world, "cut")
        ends_with_the_error(job, "cut", "rxe")


def told_to_the_program(world) -> None:
    """Both ranks of a program that handles errors get an error, also the sender, which has nothing in flight and waits."""
    with endless(world) as job:
        job.is_under_way()
        break_rails(world, "cut")
        code, _, err = job.ends(ERROR_SECONDS)
        seen = [f"rank {rank} has seen: MPI_ERR_OTHER" in err for rank in (0, 1)]
        if code != 9 or not all(seen):
            raise Problem(f"exit status {code}, not the program's own, or not of both ranks: {err}")


def sleeps(length: int):
    def test(world) -> None:
        ran = world.job(2, c_programs.folder(world.prefix) / "idle", length, seconds=60)
        if ran.code != 0 or ran.out != " ok\n":
            raise Problem(str(ran))
    return test


def tests() -> list[Case]:
    return [
        Case("waiting: a rank sleeps until a short message comes", sleeps(8)),
        Case("waiting: a rank sleeps until a long message comes", sleeps(1 << 20), short=False),
        Case("waiting: all cables are cut under a long message", broken("cut"), short=False),
        *(Case(f"waiting: all rails, {how}, under a long message", broken(how), short=False)
          for how in ("down", "pull 0", "pull 1", "mute 0", "mute 1")),
        *(Case(f"waiting: the only rail, {how}, under a long message", broken(how, env={"FISHPLATE_RAILS": "1"}), short=False)
          for how in ("cut", "down")),
        *(Case(f"waiting: rail {first} is cut, then the other, under a long message", broken_in_turn(first), short=False)
          for first in (0, 1)),
        Case("waiting: all cables are cut under bench bw", under_bench, short=False),
        Case("waiting: a program is told that all cables are cut", told_to_the_program, short=False),
    ]
