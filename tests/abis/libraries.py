"""libmpi.so.12 and libmpi.so.40 over the `libmpi_abi.so.1` of others, under their launchers."""

import functools
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import harness
from harness import Case, Problem, Skip

PROGRAM = harness.ROOT / "tests/robust/mpich_abi"
PEERS = Path(os.environ.get("PEERS", harness.ROOT / "build/peers"))


@dataclass
class Library:
    """A library of the standard ABI, and the parts of abi.c that it does in its own way, also for programs of the standard ABI."""

    folder: str
    says: str
    own_ways: dict = field(default_factory=dict)


LIBRARIES = [
    Library("mpich", "MPICH", {
        "code-of-a-handled-error": "a call whose error went to the program's error handler returns MPI_SUCCESS",
        "last-used-code": "MPI_LASTUSEDCODE is the last class, and codes of it are larger",
    }),
    Library("impi", "Intel MPI", {
        "errors-return": "MPI_ERRORS_RETURN ends the job as MPI_ERRORS_ARE_FATAL does",
        "last-used-code": "MPI_LASTUSEDCODE is 0",
    }),
]


@functools.cache
def fetched() -> bool:
    return subprocess.run([harness.ROOT / "scripts/peers.sh", PEERS], stdout=subprocess.DEVNULL, check=False).returncode == 0


def run(world, library: Library, ranks: int, command: list) -> harness.Outcome:
    """Under the library's own launcher. Of the two folders only the library's has its `libmpi.so.12`, and it comes behind ours."""
    if not fetched():
        raise Skip("wheels of other MPI libraries cannot be fetched from PyPI")
    home = PEERS / library.folder
    return harness.run([str(home / "bin/mpiexec"), "-n", str(ranks), *map(str, command)], seconds=120, env={
        "LD_LIBRARY_PATH": f"{world.prefix}/lib/fishplate:{home}/lib", "I_MPI_ROOT": str(home), "FI_PROVIDER": "tcp"})


def built(world, abi: str) -> Path:
    """abi.c for MPICH's ABI, Open MPI's, or the standard's."""
    target = world.work / f"abi-{abi}"
    if not target.exists():
        header, library = {
            "mpich": (PROGRAM, world.prefix / "lib/fishplate/libmpi.so.12"),
            "openmpi": (PROGRAM.with_name("openmpi_abi"), world.prefix / "lib/fishplate/libmpi.so.40"),
            "standard": (world.prefix / "include", world.prefix / "lib/libmpi_abi.so.1"),
        }[abi]
        subprocess.run(["cc", "-Wall", "-Wno-stringop-overread", f"-I{header}", PROGRAM / "abi.c", library, "-o", target], check=True)
    return target


def passes(outcome: harness.Outcome, ranks: int) -> bool:
    return outcome.code == 0 and outcome.out.count("passed") == ranks


def program(library: Library, abi: str, says: str):
    def test(world):
        outcome = run(world, library, 3, [built(world, abi), *library.own_ways])
        if not passes(outcome, 3):
            raise Problem(f"exit status {outcome.code}{harness.output(outcome.out + outcome.err)}")
    return Case(f"handles, statuses, callbacks and limits of {says}'s ABI over {library.says}'s library", test)


def own_way(library: Library, part: str, how: str):
    """The program of the standard ABI fails in that part too: no conversion is the cause. Where it passes, the part is to be tested."""
    def test(world):
        others = [other for other in library.own_ways if other != part]
        outcome = run(world, library, 3, [built(world, "standard"), *library.own_ways])
        if not passes(outcome, 3):
            raise Problem(f"it fails without this part too: {outcome.code}{harness.output(outcome.out + outcome.err)}")
        if passes(run(world, library, 3, [built(world, "standard"), *others]), 3):
            raise Problem("it passes: remove the part from own_ways")
        return how
    return Case(f"{library.says}'s own way: {part}", test)


def benchmark(library: Library):
    """Intel's prebuilt program. Its figures are of no interest here, but that every line has one."""
    def test(world):
        command = [PEERS / "impi/bin/IMB-MPI1", "-msglog", "3:4", "-iter", "10", "PingPong", "Allreduce"]
        outcome = run(world, library, 2, command)
        lines = [line.split() for line in outcome.out.splitlines() if line.split()[:1] in (["0"], ["8"], ["16"])]
        if outcome.code != 0 or len(lines) != 6 or not all(float(line[2]) > 0 for line in lines):
            raise Problem(f"exit status {outcome.code}{harness.output(outcome.out + outcome.err)}")
    return Case(f"Intel's IMB-MPI1 over {library.says}'s library", test)


def cases() -> list[Case]:
    return [case for library in LIBRARIES for case in (
        program(library, "mpich", "MPICH"), program(library, "openmpi", "Open MPI"), benchmark(library), *(own_way(library, *row) for row in library.own_ways.items()))]
