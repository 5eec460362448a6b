"""Folders and files that a command makes without the user's naming them: nobody else can read them, and nobody can plant a link or a folder at
their names.
"""

import os
import re
import sys
from pathlib import Path

from harness import Problem
from watched import Job

# A job that goes on until the test has looked.
LONG = 100000
# Processes that a command may have, after its own number, when it makes a file.
PROCESSES = 2000
# Names by the number of a process, at which another user of the host could plant something.
GUESSED = ("fishplate-explain-{}-0", "fishplate-choices-{}", "fishplate-bench-{}", "fishplate-{}")


def fishplate(world) -> Path:
    return world.mpiexec.parent / "fishplate"


def folders_are_private(world):
    """A umask of 000 gives everybody all that a program does not refuse."""
    heat = [world.programs / "heat", 64, LONG]
    commands = {
        "compare": ["compare", "--fabrics", "qdr,edr", "-n", 2, *heat],
        "run --scratch": ["run", "-n", 2, "--fabric", "qdr", "--scratch", *heat],
        "bench file-write": ["bench", "file-write", "-n", 2, "-m", "64:64", "-i", 1000 * LONG, "--rounds", 1],
        "study": ["study", "edr", "--quick"],
    }
    for name, words in commands.items():
        with Job(world.work, ["sh", "-c", 'umask 000; exec "$@"', "sh", fishplate(world), *words]) as job:
            found = job.wait_for(f"a folder of {name}", lambda: os.listdir("/tmp"))
            modes = {path: oct(os.stat(f"/tmp/{path}").st_mode) for path in found}
            if any(mode != "0o40700" for mode in modes.values()):
                raise Problem(f"{name} has {modes}")
            job.process.terminate()
            job.end(30)
            job.check_gone(30)


# Plants something at all names that the command behind it could have, which runs with the number of this process.
PLANT = """
import os, sys
what, target, command = sys.argv[1], sys.argv[2], sys.argv[3:]
for number in range(os.getpid(), os.getpid() + %d):
    for name in %r:
        path = "/tmp/" + name.format(number)
        os.symlink(target, path) if what == "links" else os.mkdir(path)
os.execv(command[0], command)
""" % (PROCESSES, GUESSED)


def planted(what: str):
    """Of another user: a link to a file of this one, or what cannot be opened."""
    def test(world):
        precious = world.work / "precious"
        for words in (["bench", "latency", "-m", "1:1", "-i", 10, "--explain", "--rounds", 1],
                      ["bench", "latency", "-m", "1:1", "-i", 10, "--every-choice", "--rounds", 1],
                      ["bench", "file-write", "-m", "64:64", "-i", 10, "--rounds", 1]):
            precious.write_text("precious")
            with Job(world.work, [sys.executable, "-c", PLANT, what, precious, fishplate(world), *words]) as job:
                if (code := job.end(120)) != 0:
                    raise Problem(f"{words[1:]}: exit status {code}: {job.err[-500:]}")
            if precious.read_text() != "precious":
                raise Problem(f"{words[1:]} has overwritten a file through a planted link")
            for path in Path("/tmp").iterdir():
                if path.is_symlink():
                    path.unlink()
                elif re.fullmatch(r".*\d", path.name):
                    path.rmdir()
            if left := os.listdir("/tmp"):
                raise Problem(f"{words[1:]} has left {left}")
    return f"planted {what} do not matter", test


def tests() -> list:
    return [
        ("folders of commands are private", folders_are_private),
        planted("links"),
        planted("folders"),
    ]
