#!/usr/bin/env python3
"""Builds libraries that keep data in files through MPI, unchanged, and runs their parallel tests over ours and over MPICH's library.

    tests/foreign-files/run.py [--prefix build] [--jobs N] [--build-only] [--only TEXT] [--list] [--no-peer] [--update]

HDF5, PnetCDF and netCDF come from Debian's source packages (debian.py), h5py and what it needs from PyPI. Each is built once, with the
prefix's `mpicc` and `mpifort`; h5py and netCDF are built over that HDF5. Every test is then run twice: under the prefix's `mpiexec`, and,
the same binary by the standard ABI, under MPICH's, over MPICH's library (scripts/peers.sh). Each run has a new folder in shared memory.

- HDF5: the programs of `testpar`, on 2 and 4 ranks, by its own express mode where they have one;
- PnetCDF: `make ptest` of each folder, program by program, in C and Fortran;
- netCDF: the programs that `run_par_test.sh`, `run_par_tests.sh` and `run_pnetcdf_tests.sh` run, on the ranks that they ask for;
- h5py: its tests with the marker `mpi`, on 2 and 4 ranks, and its other modules as its authors run them, on 2 ranks.

A test that fails over ours fails the run, unless a line of file_libraries.expected says why; that it fails over MPICH's too is no reason
by itself. --update writes the row of each library that was run as a whole and failed nowhere into the table of docs/figures/foreign.md, and keeps
the other rows. Exit status 3: nothing could be fetched.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import debian  # noqa: E402
import harness  # noqa: E402
from applications.run import Application, World, build, last_lines  # noqa: E402
from expected import FIGURES, Expectations, Judge, publish  # noqa: E402
from harness import Problem  # noqa: E402
from versions import MPI4PY  # noqa: E402

KEPT = HERE / "file_libraries.expected"
PEER = harness.ROOT / "build/peers/mpich"
# Test folders. Files of some gigabytes with holes are written there.
SCRATCH = "/dev/shm"
# For one program; on a quiet machine the longest takes a tenth of it, MPICH's with more ranks than cores excepted.
SECONDS = 900
# For one program over MPICH's library, whose ranks poll: where they are more than the cores, some
# take minutes for what takes us a second. One that has no end by then is told as cut off.
PEER_SECONDS = 600


@dataclass
class Shelf(World):
    """Libraries, of which later ones are built over earlier ones."""

    def home(self, library: "Library") -> Path:
        # A rebuilt library below makes a new folder.
        own = super().home(library)
        below = "".join(self.home(BY_NAME[name]).name for name in library.over)
        return own.with_name(f"{own.name}{hashlib.sha256(below.encode()).hexdigest()[:4] if below else ''}")

    def installed(self, name: str) -> Path:
        library = BY_NAME[name]
        return library.source(self.home(library)) / "installed"


@dataclass
class Library(Application):
    # Libraries that this one is built over; @NAME@ in a step is where one is installed.
    over: tuple = ()

    def command(self, text: str, world: Shelf) -> str:
        for name in self.over:
            text = text.replace(f"@{name}@", str(world.installed(name)))
        return super().command(text, world)


@dataclass
class Test:
    """One test: a shell command in which `mpiexec` is the launcher of the library under test, run in a new folder, $HERE."""

    name: str
    ranks: int
    command: str
    # The folder in which the command runs, if not the new one.
    folder: Path | None = None
    environment: dict = field(default_factory=dict)

    def title(self) -> str:
        return f"{self.name} on {self.ranks}"


def below(prefix: Path, environment: dict) -> dict:
    """The environment in which `mpiexec` and the library are those of a prefix."""
    return environment | {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{prefix}/lib"}


def run(test: Test, prefix: Path, limit: int) -> tuple[str, str, float]:
    """pass, fail, skip or cut; why; seconds."""
    with tempfile.TemporaryDirectory(prefix="fishplate-files-", dir=SCRATCH) as folder:
        environment = below(prefix, test.environment | {"HERE": folder, "TMPDIR": folder})
        ran = harness.run(["bash", "-c", test.command], seconds=limit, env=environment, cwd=test.folder or folder)
    if ran.code == SKIPPED:
        return "skip", last_lines(ran), ran.seconds
    if ran.code is None:
        return "cut", f"no end after {limit} s" + last_lines(ran), ran.seconds
    if ran.code:
        return "fail", f"exit status {ran.code}" + last_lines(ran), ran.seconds
    return "pass", "", ran.seconds


# The exit status by which the test programs of automake say that they were not run.
SKIPPED = 77


# Programs of HDF5's testpar.
TESTPAR = ("t_mpi", "testphdf5", "t_cache", "t_cache_image", "t_pread", "t_pshutdown", "t_init_term", "t_shapesame",
           "t_filters_parallel", "t_bigio")
# They test nothing on fewer than three ranks; t_cache then frees datatypes that it has not made.
MORE_THAN_TWO = ("t_pread", "t_cache")
# Its tests take hours without: 0 is everything, 3 the least.
EXPRESS = {"t_shapesame": 2, "t_cache": 1}


def hdf5(source: Path, world: Shelf) -> list[Test]:
    folder = source / "testpar"
    tests = []
    for ranks in (2, 4):
        for name in TESTPAR:
            command = f"mpiexec -n {ranks} {folder}/{name}"
            if name == "t_pshutdown":
                # The second program reads what the first one left.
                name, command = "t_pshutdown, t_prestart", f"{command} && mpiexec -n {ranks} {folder}/t_prestart"
            if name == "t_cache_image":
                # It starts itself, by its bare name.
                command = f"ln -s {folder}/{name} . && {command}"
            if name in MORE_THAN_TWO and ranks <= 2:
                continue
            tests.append(Test(f"hdf5: {name}", ranks, command))
        # The first program ends without MPI_Finalize, so its exit status says nothing; the second one judges the file.
        tests.append(Test("hdf5: t_pflush1, t_pflush2", ranks, f"mpiexec -n {ranks} {folder}/t_pflush1; mpiexec -n {ranks} {folder}/t_pflush2"))
    for test in tests:
        express = EXPRESS.get(test.name.removeprefix("hdf5: "), 0)
        test.environment = {"HDF5TestExpress": str(express), "HDF5_ALARM_SECONDS": str(SECONDS)}
        test.command = f'export HDF5_PARAPREFIX="$HERE" HDF5_PREFIX="$HERE"; {test.command}'
    return tests


# Folders of PnetCDF's tests, with the programs of each that are run by `make ptest`, alone or together, and by `make check`.
PTESTS = {"test/C": (4,), "test/header": (2, 4), "test/testcases": (2, 4), "test/nonblocking": (2, 4), "test/cdf_format": (4,),
          "test/CXX": (4,), "test/F90": (2, 4), "examples/C": (4,), "examples/CXX": (4,), "examples/F77": (4,), "examples/F90": (4,)}
CHECKS = ("test/C", "test/fandc", "test/nc_test", "test/cdf_format", "test/header", "test/testcases", "test/nonblocking", "test/CXX",
          "test/nf_test", "test/nf90_test", "test/F90")
# Folders whose ptest runs each program of check_PROGRAMS in the same way.
ONE_BY_ONE = ("test/testcases", "test/nonblocking")


def pnetcdf(source: Path, world: Shelf) -> list[Test]:
    def make(folder: str, ranks: int, words: str, of: str) -> Test:
        return Test(f"pnetcdf: {of}", ranks, f'make -C {source / folder} {words} TESTOUTDIR="$HERE" TESTMPIRUN="mpiexec -n NP"', source)

    def programs(folder: str, variable: str) -> list[str]:
        shown = subprocess.run(["make", "-s", "-C", source / folder, f"--eval=show-it: ; @echo $({variable})", "show-it"],
                               capture_output=True, text=True, check=True)
        return shown.stdout.split()
    tests = []
    for folder, every in PTESTS.items():
        for ranks in every:
            if folder in ONE_BY_ONE:
                tests += [make(folder, ranks, f"ptest{ranks} check_PROGRAMS={name}", f"{folder}/{name}")
                          for name in programs(folder, "check_PROGRAMS")]
            else:
                tests.append(make(folder, ranks, f"ptest{ranks}", folder))
    for folder in CHECKS:
        tests += [make(folder, 1, f"check TESTS={name} VERBOSE=1", f"{folder}/{name}") for name in programs(folder, "TESTS")]
    return tests


# Scripts of netCDF whose lines `@MPIEXEC@ -n RANKS ./PROGRAM` are tests.
SCRIPTS = ("nc_test4/run_par_test.sh.in", "h5_test/run_par_tests.sh.in", "nc_test/run_pnetcdf_tests.sh.in")


def netcdf(source: Path, world: Shelf) -> list[Test]:
    tests = []
    for script in SCRIPTS:
        folder = source / Path(script).parent
        lines = re.findall(r"^\s*@MPIEXEC@ -n (\d+) \./(\S+)$", (source / script).read_text(), re.MULTILINE)
        tests += [Test(f"netcdf: {folder.name}/{name}", int(ranks), f"mpiexec -n {ranks} {folder / name}") for ranks, name in lines]
    # Two that the last script starts without a launcher, one after the other.
    tests.append(Test("netcdf: nc_test/tst_pnetcdf, tst_addvar", 1,
                      f"mpiexec -n 1 {source}/nc_test/tst_pnetcdf && mpiexec -n 1 {source}/nc_test/tst_addvar tst_pnetcdf.nc"))
    return tests


# Packages of PyPI that h5py is built and tested with, mpi4py and h5py itself aside.
PYTHON = "numpy==1.26.4 Cython==0.29.37 pkgconfig==1.5.5 setuptools==65.5.1 wheel==0.45.1 pytest==7.4.4 pytest-mpi==0.6"


@dataclass
class Module(Library):
    """A source distribution of PyPI."""

    def fetched(self, world: Shelf) -> Path:
        path = world.cache / self.archive
        world.cache.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", self.package, "-d", world.cache,
                                   f"{self.package}=={self.version}"], capture_output=True, text=True)
            if not path.exists():
                raise debian.Unavailable(f"{self.package} {self.version} could not be fetched from PyPI: {done.stderr[-300:]}")
        seen = hashlib.sha256(path.read_bytes()).hexdigest()
        if seen != self.sha256:
            path.unlink()
            raise debian.Unavailable(f"{self.archive} has SHA-256 {seen}, not {self.sha256}")
        return path


def h5py(source: Path, world: Shelf) -> list[Test]:
    python, folder = source / "env/bin/python", next(source.glob("env/lib/python*/site-packages/h5py/tests"))
    pytest = f"{python} -m pytest -q -p no:cacheprovider --with-mpi"
    listed = subprocess.run(["sh", "-c", f"{pytest} -m mpi --collect-only {folder}"], cwd=SCRATCH, capture_output=True, text=True,
                            env=os.environ | below(world.prefix, {}))
    names = re.findall(r"\S*(test_\w+\.py::\S+)", listed.stdout)
    if not names:
        raise Problem("pytest finds no tests" + harness.output(listed.stdout + listed.stderr))
    # A test that skips itself would end with 0 too.
    tests = [Test(f"h5py: {name}", ranks, f"mpiexec -n {ranks} sh -c '{pytest} {folder}/{name} > $$.log; code=$?; cat $$.log; "
                                          "grep -q \"1 passed\" $$.log && exit $code'")
             for ranks in (2, 4) for name in names]
    # The other tests use files of one rank each; a module that has none to run ends with 5.
    modules = [str(path.relative_to(folder)) for path in sorted(folder.rglob("test_*.py"))]
    # One test expects that a file without the permission to write cannot be opened for writing.
    powerless = "setpriv --bounding-set -dac_override,-dac_read_search " if os.geteuid() == 0 else ""
    return tests + [Test(f"h5py: {name}", 2, f"mpiexec -n 2 {powerless}sh -c '{pytest} -m \"not mpi\" {folder}/{name} || test $? = 5'")
                    for name in modules]


LIBRARIES = [
    Library("hdf5", "hdf5", "1.10.8", "hdf5_1.10.8+repack1.orig.tar.gz",
            "7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31", (),
            # The test programs have the library inside: libtool would otherwise make scripts of them.
            ((".", "./configure --prefix=$PWD/installed --enable-parallel --disable-tools --disable-dependency-tracking "
                   "--enable-optimization=-O1 CC=mpicc"),
             (".", "make -j@JOBS@ -C src && make -j@JOBS@ -C hl/src && make -C src install && make -C hl/src install"),
             (".", "make -j@JOBS@ -C test libh5test.la && make -j@JOBS@ -C testpar LDFLAGS=-static "
                   + " ".join((*TESTPAR, "t_prestart", "t_pflush1", "t_pflush2")))),
            hdf5),
    Library("pnetcdf", "pnetcdf", "1.12.3", "pnetcdf_1.12.3.orig.tar.xz",
            "8f54023ffbbd3c8137e5422b44e32324113d5690f1da0cb7ecd5842c2de850a9", ("autoreconf", "automake", "libtoolize", "m4"),
            ((".", "autoreconf -i"),
             (".", "./configure --prefix=$PWD/installed --disable-dependency-tracking --enable-shared=no MPICC=mpicc MPICXX=mpicxx "
                   "MPIF77='mpifort -fc=gfortran' MPIF90='mpifort -fc=gfortran' CFLAGS=-O1 CXXFLAGS=-O1 FFLAGS='-O1 -fallow-argument-mismatch' "
                   "FCFLAGS='-O1 -fallow-argument-mismatch'"),
             (".", "make -j@JOBS@ && make install"), (".", "make -j@JOBS@ tests")),
            pnetcdf, fortran=True),
    Library("netcdf", "netcdf", "4.9.0", "netcdf_4.9.0.orig.tar.gz",
            "9f4cb864f3ab54adb75409984c6202323d2fc66c003e5308f3cdf224ed41c0a6", ("m4",),
            ((".", "./configure --prefix=$PWD/installed --disable-shared --disable-dap --disable-byterange --disable-nczarr --disable-libxml2 "
                   "--disable-plugins --enable-pnetcdf --enable-parallel-tests --disable-dependency-tracking CC=mpicc CFLAGS=-O1 "
                   "CPPFLAGS='-I@hdf5@/include -I@pnetcdf@/include' LDFLAGS='-L@hdf5@/lib -Wl,-rpath,@hdf5@/lib -L@pnetcdf@/lib'"),
             (".", "make -j@JOBS@"),
             (".", "for folder in nc_test4 h5_test nc_test; do make -j@JOBS@ -C $folder check TESTS= || exit 1; done")),
            netcdf, over=("hdf5", "pnetcdf")),
    Module("h5py", "h5py", "3.7.0", "h5py-3.7.0.tar.gz", "3fcf37884383c5da64846ab510190720027dca0768def34dd8dcb659dbe5cbf3", (),
           ((".", f"python3 -m venv env && env/bin/pip install -q {PYTHON}"),
            (".", f"MPICC=mpicc CFLAGS=-O0 env/bin/pip install -q --no-deps --no-binary :all: mpi4py=={MPI4PY}"),
            (".", "HDF5_MPI=ON HDF5_DIR=@hdf5@ H5PY_SETUP_REQUIRES=0 CC=mpicc CFLAGS=-O1 env/bin/pip install -q --no-deps "
                  "--no-build-isolation .")),
           h5py, over=("hdf5",)),
]
BY_NAME = {library.name: library for library in LIBRARIES}


def judge(tests: list[Test], world: Shelf, peer: Path | None, verdict: Judge, record: dict) -> None:
    """Runs each test over our library, then over the peer's, and says how each ended."""
    for test in tests:
        state, why, seconds = run(test, world.prefix, SECONDS)
        row = test.name.partition(":")[0]
        kind = verdict.add(test.name, test.ranks, "fail" if state == "cut" else state, why.splitlines()[0] if why else "", row)
        line = {"fail": "FAIL", "surprise": "FAIL"}.get(kind, kind)
        text = f"{line} {test.title()} ({seconds:.1f} s)"
        if peer:
            theirs, their_why, their_seconds = run(test, peer, PEER_SECONDS)
            record.setdefault(row, []).append((test.title(), kind, theirs))
            text += f"; MPICH: {theirs} ({their_seconds:.1f} s)"
            if theirs in ("fail", "cut"):
                why += f"\nMPICH: {their_why}"
        print(text, flush=True)
        for told in why.splitlines():
            print(f"    | {told}", flush=True)
        result = {"pass": "passed", "expected": "passed", "skip": "skipped"}.get(kind, "failed")
        case = {"name": test.title(), "result": result, "seconds": round(seconds, 2)}
        verdict.times.append(case if result == "passed" else case | {"reason": why})


HEADS = ("passed", "failed as expected", "skipped", "MPICH: passed", "failed", "cut off", "skipped", "failed or cut off over MPICH's library alone")


def row(library: Library, record: list[tuple]) -> str:
    """The counts of one library's tests over both, as a row of a document; the last column names tests."""
    own, peer = [kind for _, kind, _ in record], [theirs for _, _, theirs in record]
    only = [f"`{title.partition(': ')[2]}`" for title, kind, theirs in record if kind == "pass" and theirs in ("fail", "cut")]
    cells = (own.count("pass"), own.count("expected"), own.count("skip"), *map(peer.count, ("pass", "fail", "cut", "skip")), ", ".join(only) or "none")
    return f"{beginning(library)}{' | '.join(map(str, cells))} |\n"


def beginning(library: Library) -> str:
    return f"| {library.name} {library.version} | "


def table(record: dict) -> str:
    """The new rows, and those of the document for libraries that were not run."""
    text = f"| | {' | '.join(HEADS)} |\n| --- |{' ---: |' * (len(HEADS) - 1)} --- |\n"
    kept = FIGURES.read_text().splitlines(keepends=True)
    for library in LIBRARIES:
        if library.name in record:
            text += row(library, record[library.name])
        else:
            text += "".join(line for line in kept if line.startswith(beginning(library)))
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="compilers at once")
    parser.add_argument("--build-only", action="store_true", help="fetch and build, and stop")
    parser.add_argument("--no-peer", action="store_true", help="our library alone")
    parser.add_argument("--update", action="store_true", help="write the rows of docs/figures/foreign.md; it needs whole libraries")
    options = parser.parse_args()
    world = Shelf(harness.checked_prefix(options.prefix), harness.ROOT / "build/foreign", options.jobs)
    peer = None if options.no_peer else PEER
    if peer and not (peer / "bin/mpiexec").exists():
        sys.exit(f"{peer} is missing: scripts/peers.sh fetches it")
    began, record, unavailable = time.monotonic(), {}, False
    verdict = Judge(Expectations.read(KEPT), None)
    for library in LIBRARIES:
        # `--only` may name a library, or tests of one.
        needed = [library.name, *(other.name for other in LIBRARIES if library.name in other.over)]
        if not any(options.only.startswith(name) or name.startswith(options.only) for name in needed):
            continue
        try:
            source = build(world, library)
        except debian.Unavailable as why:
            unavailable = bool(harness.not_run(library.name, str(why)))
            continue
        except Problem as found:
            verdict.add(f"{library.name}: build", 1, "fail", str(found), library.name)
            print(f"FAIL {library.name} does not build: {found}", flush=True)
            continue
        print(f"{library.name} {library.version} is built", flush=True)
        if options.only in BY_NAME and options.only != library.name:
            continue
        tests = [test for test in library.cases(source, world) if options.only in BY_NAME or options.only in test.title()]
        if options.list:
            print("\n".join(test.title() for test in tests))
        elif not options.build_only:
            judge(tests, world, peer, verdict, record)
    if options.list or options.build_only:
        return 1 if verdict.wrong else 0
    if unavailable and not verdict.counts:
        return harness.NOT_RUN
    stale = [] if options.only else verdict.stale()
    print("\n".join([*stale, *verdict.wrong]))
    if options.update and peer and (not options.only or options.only in BY_NAME):
        sound = {name: rows for name, rows in record.items() if not any(kind in ("fail", "surprise") for _, kind, _ in rows)}
        publish("file-libraries", table(sound))
    return verdict.close("foreign-files", stale, began)


if __name__ == "__main__":
    sys.exit(main())
