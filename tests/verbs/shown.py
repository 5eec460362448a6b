"""The commands that the documents run in the virtual machine: `scripts/verbs-vm -- COMMAND` in a block of README.md or docs/*.md."""

import subprocess

import harness
from documents import run as documents
from harness import Case, Problem

SECONDS = 120


def prepare(options) -> None:
    """The documents compile this program first."""
    subprocess.run([options.prefix / "bin/mpicc", "-O2", "examples/pi.c", "-o", "build/pi", "-lm"], cwd=harness.ROOT, check=True)


def runs(command: str):
    def test(_world) -> None:
        done = harness.run(["bash", "-c", command], seconds=SECONDS, cwd=harness.ROOT)
        if done.code != 0:
            raise Problem(f"exit status {done.code}{harness.output(done.out + done.err)}")
    return test


def tests() -> list[Case]:
    return [Case(f"shown: {command}", runs(command), short=False) for command in documents.in_the_machine()]
