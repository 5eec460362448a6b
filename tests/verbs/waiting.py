"""Ranks that wait: the processor time that they take, and their end when the cables of all rails break."""

import subprocess
import tempfile
import time
from pathlib import Path

import harness
import programs
from harness import Case, Problem

# A device gives up a connection after half a second, and the job ends within one; an emulated processor takes longer.
ERROR_SECONDS = 30


def prepare(options) -> None:
    programs.build(options, sorted(Path(__file__).parent.glob("*.c")))


def left() -> list[str]:
    """Processes of a job."""
    names = [entry.read_text().strip() for entry in Path("/proc").glob("[0-9]*/comm")]
    return [name for name in names if name in ("endless", "fishplate")]


class Endless:
    """Two ranks on two hosts that send long messages until one fails."""

    def __init__(self, world, *arguments):
        self.out, self.err = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")
        command = world.launcher(2, programs.folder(world.prefix) / "endless", *arguments)
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        start_new_session=True)

    def __enter__(self):
        self.until(60, lambda: "under way" in self.said(self.out), "has not begun")
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

    def until(self, seconds: float, holds, complaint: str) -> None:
        end = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > end:
                raise Problem(f"{complaint} after {seconds:g} s: {self.said(self.err)}")
            time.sleep(0.05)

    def end(self) -> tuple[int, str]:
        self.until(ERROR_SECONDS, lambda: self.process.poll() is not None, "has not ended")
        return self.process.returncode, self.said(self.err)


def break_all(world, how: str) -> None:
    for rail in (0, 1):
        world.run("rail", rail, how)


def broken(how: str, device: str = "rxe"):
    """The library ends the program; the error names the rank, the device, the reason and what to check."""
    def test(world) -> None:
        with Endless(world, "fatal") as job:
            break_all(world, how)
            code, err = job.end()
            if code == 0:
                raise Problem(f"exit status 0: {err}")
            for part in ("rank", device, "retry" if how == "cut" else "", "cable"):
                if part not in err:
                    raise Problem(f"the error does not say {part!r}: {err}")
        if processes := left():
            raise Problem(f"{processes} are left")
    return test


def told_to_the_program(world) -> None:
    """Both ranks of a program that handles errors get an error, also the sender, which has nothing in flight and waits."""
    with Endless(world) as job:
        world.run("rail", "0", "cut")
        code, err = job.end()
        seen = [f"rank {rank} has seen: MPI_ERR_OTHER" in err for rank in (0, 1)]
        if code != 9 or not all(seen):
            raise Problem(f"exit status {code}, not the program's own, or not of both ranks: {err}")


def sleeps(length: int):
    def test(world) -> None:
        ran = world.job(2, programs.folder(world.prefix) / "idle", length, seconds=60)
        if ran.code != 0 or ran.out != " ok\n":
            raise Problem(str(ran))
    return test


def tests() -> list[Case]:
    return [
        Case("waiting: a rank sleeps until a short message comes", sleeps(8)),
        Case("waiting: a rank sleeps until a long message comes", sleeps(1 << 20), short=False),
        Case("waiting: all cables are cut under a long message", broken("cut")),
        Case("waiting: all ports go down under a long message", broken("down"), short=False),
        Case("waiting: a program is told that all cables are cut", told_to_the_program, short=False),
    ]
