#!/usr/bin/env python3
"""Builds libraries that stand on one-sided communication, unchanged, with a prefix's compilers, and runs their own tests under its launcher.

    tests/foreign-rma/run.py [--prefix build] [--jobs N] [--build-only] [--only TEXT] [--list]

ARMCI-MPI, Global Arrays (over MPI's windows, MPI_RMA) and OpenCoarrays come from Debian's source packages and are built as applications.py
says. Their tests run in shared memory and over TCP between two network namespaces: those of the former two on 2 and 4 ranks, those of
OpenCoarrays on as many images as each wants. A test has passed if it ends with 0; one of OpenCoarrays must also say so.

Each library prints a line `NAME: N passed, N failed`; the last line counts all. Exit status 3: nothing could be fetched.
"""

import argparse
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]
import harness  # noqa: E402
from applications import run as applications  # noqa: E402
from applications.run import CHECK_SECONDS, Application, checked, last_lines  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402
from network import Hosts, missing, remove_leftovers  # noqa: E402

PLACES = {"memory": "shared memory", "tcp": "TCP"}
RANKS = (2, 4)
SUITE = "trixie"


@dataclass
class World(applications.World):
    network: Hosts | None = None
    no_network: str = ""

    def hosts(self) -> Hosts:
        if self.network is None and not self.no_network:
            self.no_network = missing() if shutil.which("ip") else "there is no ip"
            if not self.no_network:
                self.network = Hosts(self.prefix)
                self.network.__enter__()
        if self.no_network:
            raise Skip(self.no_network)
        return self.network

    def close(self) -> None:
        if self.network is not None:
            self.network.__exit__()


def started(world: World, place: str, ranks: int, folder: Path, command: list) -> harness.Outcome:
    if place == "memory":
        words, environment = [world.prefix / "bin/mpiexec", "-n", ranks, *command], world.environment()
    else:
        network = world.hosts()
        words = network.launcher(ranks, *command, per_host=(ranks + 1) // 2)
        environment = network.environment(world.environment())
    return checked(harness.run(list(map(str, words)), seconds=CHECK_SECONDS, env=environment, cwd=folder))


def test(name: str, place: str, ranks: int, folder: Path, command: list, says: str = "", skipped: str = "") -> Case:
    def case(world: World) -> None:
        if skipped:
            raise Skip(skipped)
        ran = started(world, place, ranks, folder, command)
        if not re.search(says, ran.out + ran.err):
            raise Problem(f"it does not say {says!r}" + last_lines(ran))
    return Case(f"{name}: {place}, {ranks} ranks", case)


def armci(source: Path) -> list:
    # Makefile.mk has the tests of each folder.
    texts = [path.read_text().replace("\\\n", " ") for path in sorted(source.glob("tests/**/Makefile.mk"))]
    lists = [re.findall(r"^TESTS *\+=([^#\n]*)", text, re.M) for text in texts]
    names = [word for found in lists for line in found for word in line.split()]
    return [test(f"armci-mpi: {name.removeprefix('tests/')}", place, ranks, source, [source / name])
            for name in names for place in PLACES for ranks in RANKS]


# Tests of speed alone.
GA_SPEED = {"cache_test", "perf", "perf2", "perfmod", "perform", "mir_perf2", "thread_perf_contig", "thread_perf_strided"}


# Programs that its own `ctest` runs on other numbers of processes, and only on these. The first
# three fail on two over MPICH too, at the same checks; on four, the ranks of the last one scatter
# different values to the same elements, and each expects its own.
GA_RANKS = {"mulmatpatchc": (1,), "nga-patch": (1,), "ngatest": (1,), "nga-onesided": (2,)}

# Those that access single elements, millions of them: over TCP, on so many ranks, they have no end
# within the time of a test.
GA_NEAR = {("nga-onesided", 2), ("nga-scatter", 4)}


def global_arrays(source: Path) -> list:
    folder = source / "build/global/testing"
    programs = [path for path in sorted(folder.glob("*.x")) if path.stem not in GA_SPEED]
    cases = [(path, place, ranks) for path in programs for place in PLACES for ranks in GA_RANKS.get(path.stem, RANKS)]
    far = {(name, "tcp", ranks): "millions of accesses to single elements" for name, ranks in GA_NEAR}
    return [test(f"global-arrays: {path.stem}", place, ranks, folder, [path], skipped=far.get((path.stem, place, ranks), ""))
            for path, place, ranks in cases]


# Tests of OpenCoarrays that run where a get is a copy at once, and why.
EARLY = "OpenCoarrays copies what a get returns before MPI_Win_unlock"
NEAR = {"sendget_convert_nums": EARLY, "sendget_convert_char_array": EARLY, "alloc_comp_multidim_shape": "786,468 gets, each in an epoch of its own"}


def coarrays(source: Path) -> list:
    text = (source / "CMakeLists.txt").read_text()
    rows = re.findall(r"^ *add_caf_test\((\S+) +(\d+) +([^)]*)\)", text, re.M)
    cases = []
    for name, images, command in rows:
        words = command.split()
        # Images that fail need a library that goes on without a rank.
        if not name.startswith("image_fail") and (program := source / "build/bin/OpenCoarrays-2.10.2-tests" / words[0]).exists():
            cases += [test(f"open-coarrays: {name}", place, int(images), program.parent, [program, *words[1:]], "[Tt]est passed",
                           NEAR.get(name, "") if place == "tcp" else "") for place in PLACES]
    return cases


LIBRARIES = [
    Application("armci-mpi", "armci-mpi", "0.4", "armci-mpi_0.4.orig.tar.gz",
                "bcc3bb189b23bf653dcc69bc469eb86eae5ebc5ad94ab5f83e52ddbdbbebf1b1", ("autoreconf", "automake", "libtoolize"),
                ((".", "./autogen.sh"), (".", "./configure CC=mpicc CFLAGS=-O2 --disable-shared"), (".", "make -j@JOBS@ && make -j@JOBS@ checkprogs")),
                armci, suite=SUITE),
    Application("global-arrays", "ga", "5.9.2", "ga_5.9.2.orig.tar.gz",
                "6ccae41744e0a293be2ccd56b698c3919098c001c52fda489716d2cff0b44c02", ("cmake", "m4"),
                ((".", "cmake -B build -DGA_RUNTIME=MPI_RMA -DENABLE_CXX=OFF -DENABLE_TESTS=ON -DMPI_C_COMPILER=mpicc -DMPI_Fortran_COMPILER=mpifort"),
                 (".", "make -C build -j@JOBS@")),
                global_arrays, fortran=True, suite=SUITE),
    Application("open-coarrays", "open-coarrays", "2.10.2", "open-coarrays_2.10.2+ds.orig.tar.xz",
                "840cd63695f50e9f8963126cec317b420b3a0251db010778682d1979fb863887", ("cmake",),
                ((".", "cmake -B build -DMPI_C_COMPILER=mpicc -DMPI_Fortran_COMPILER=mpifort"), (".", "make -C build -j@JOBS@")),
                coarrays, fortran=True, suite=SUITE),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="compilers at once")
    parser.add_argument("--build-only", action="store_true", help="fetch and build, and stop")
    options = parser.parse_args()
    if os.geteuid() == 0 and shutil.which("ip"):
        remove_leftovers()
    world = World(harness.checked_prefix(options.prefix), harness.ROOT / "build/foreign", options.jobs)
    try:
        return applications.run("one-sided", LIBRARIES, world, options)
    finally:
        world.close()


if __name__ == "__main__":
    sys.exit(main())
