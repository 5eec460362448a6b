"""MPICH's programs over both hosts and both rails: they pass there as on one host (tests/mpich/run.py)."""

import subprocess
import sys
from pathlib import Path

import foreign
import harness
from harness import Case, Problem

SUITE = Path(__file__).resolve().parent.parent / "mpich" / "run.py"
# Folders whose programs send messages.
FOLDERS = ["topo", "comm", "pt2pt", "datatype", "coll"]
# The time that one program may take on an emulated processor, and that a folder may.
PROGRAM_SECONDS, SECONDS = 240, 3600


def command(prefix: Path, folders: list[str]) -> list[str]:
    return list(map(str, [sys.executable, SUITE, "--prefix", prefix, "--subset", "ci", "--chapter", *folders]))


def prepare(options) -> str:
    """Builds the programs; returns the reason if they cannot be had."""
    done = subprocess.run([*command(options.prefix, FOLDERS), "--build-only"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode == harness.NOT_RUN:
        return " ".join(done.stderr.split())
    if done.returncode:
        raise Problem(f"MPICH's programs cannot be built: {done.stderr}")
    return ""


def programs_of(folder: str):
    def test(world) -> str:
        words = ["--seconds", PROGRAM_SECONDS, "--mpiexec-options", foreign.HOSTS, "--results", f"verbs-mpich-{folder}"]
        return foreign.all_passed(world.run(*command(world.prefix, [folder]), *words, seconds=SECONDS))
    return test


def tests() -> list[Case]:
    return [Case(f"mpich: {folder}", programs_of(folder), short=False) for folder in FOLDERS]
