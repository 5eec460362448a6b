#!/usr/bin/env python3
"""Builds applications with a prefix's compilers, unchanged, and runs their own checks under its mpiexec.

    tests/applications/run.py [--prefix build] [--jobs N] [--build-only] [--fortran] [--only TEXT] [--list]

FFTW, HYPRE, PT-SCOTCH, MUMPS and Quantum ESPRESSO come from Debian's source packages (debian.py) and are configured as their documents
say, with `mpicc` and `mpifort` for the compilers. Each is built in a folder of its own under build/foreign, once for each header and prefix; a build that was
interrupted goes on where it was. Every check is one that the application brings and judges itself:

- FFTW: `mpi-bench` verifies random transforms, on 1 to 4 ranks (tests/check.pl, as `make check` runs it);
- HYPRE: the drivers of TEST_struct, TEST_sstruct and TEST_ij, on up to 9 ranks, against the numbers that HYPRE keeps;
- PT-SCOTCH: `make ptcheck`, on 3 and 4 ranks;
- MUMPS: its examples in Fortran and C, real and complex, with the solutions that its README names, on 1 to 4 ranks. In place of ScaLAPACK,
  which Debian's archive does not hand out as source any more, it has the procedures that MUMPS brings for builds without MPI: they end
  the program where they are called, and the examples never call them;
- Quantum ESPRESSO: its suite for pw.x, by categories, on 2 ranks, against the numbers that it keeps.

Each application prints a line `NAME: N passed, N failed`; the last line counts all. Exit status 3: nothing could be fetched.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import debian  # noqa: E402
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

# The compiler behind mpifort: options below are its own.
FORTRAN = "gfortran"
BUILD_SECONDS = 3600
# For one check; on a quiet machine the longest takes a tenth of it.
CHECK_SECONDS = 300


@dataclass
class World:
    prefix: Path
    cache: Path
    # Commands that a build runs at once.
    jobs: int

    def environment(self) -> dict:
        return os.environ | {"PATH": f"{self.prefix}/bin:{os.environ['PATH']}"}

    def home(self, application: "Application") -> Path:
        """The folder of a build, which belongs to one header, one prefix and one recipe."""
        headers = [self.prefix / "include/mpi.h"]
        if application.fortran:
            headers += sorted((self.prefix / "share/fishplate/fortran").iterdir())
        texts = [header.read_bytes() for header in headers]
        key = hashlib.sha256(b"\0".join([*texts, str(self.prefix).encode(), repr(application.steps).encode()]))
        return self.cache / f"{application.name}-{application.version}-{key.hexdigest()[:12]}"


@dataclass
class Application:
    name: str
    package: str
    version: str
    archive: str
    sha256: str
    # Commands that the build needs beside a compiler and make.
    needs: tuple
    # Steps of the build: a folder below the source's, and a command.
    steps: tuple
    # Makes the cases from the folder of the source.
    cases: Callable
    # Of a program in Fortran, the packages of Debian whose libraries it is linked with; @LIBRARIES@ is their folder.
    fortran: bool = False
    libraries: tuple = ()
    # Part of the names of files that are not unpacked.
    without: str = ""
    # More archives of the source package, with hashes, unpacked into the folder of the source.
    more: tuple = ()
    # The suite of Debian that has the archive.
    suite: str = debian.SUITE

    def source(self, home: Path) -> Path:
        return next(path for path in home.iterdir() if path.is_dir())

    def fetched(self, world: World) -> Path:
        """The archive of the source."""
        return debian.fetch(self.package, self.archive, self.sha256, world.cache, self.suite)

    def command(self, text: str, world: World) -> str:
        """A step, filled in."""
        if self.libraries:
            root = debian.extracted(list(self.libraries), world.cache / f"libraries-{self.name}", world.cache)
            text = text.replace("@LIBRARIES@", str(next(root.glob("usr/lib/*-linux-gnu*"))))
        return text.replace("@JOBS@", str(world.jobs))


def build(world: World, application: Application) -> Path:
    """The folder of the built source; raises `Unavailable` where it cannot be had, and `Problem` where it does not build."""
    home = world.home(application)
    if missing := [command for command in application.needs if not shutil.which(command)]:
        raise debian.Unavailable(f"commands are missing: `scripts/needs.sh {' '.join(missing)}` installs them")
    if application.fortran and not shutil.which(FORTRAN):
        raise debian.Unavailable(f"there is no {FORTRAN}")
    debian.unpack(application.fetched(world), home, lambda member: not application.without or application.without not in member.name)
    source = application.source(home)
    for name, sha256 in application.more:
        # Each has a folder of its own, of which the steps take what they need.
        debian.unpack(debian.fetch(application.package, name, sha256, world.cache), source / "more")
    for number, (folder, command) in enumerate(application.steps):
        done = home / f"step-{number}"
        if done.exists():
            continue
        log = home / f"step-{number}.log"
        with open(log, "w") as file:
            ran = subprocess.run(["sh", "-c", application.command(command, world)], cwd=source / folder,
                                 env=world.environment(), stdin=subprocess.DEVNULL, stdout=file, stderr=file, timeout=BUILD_SECONDS)
        if ran.returncode:
            lines = log.read_text(errors="replace").splitlines()[-harness.SHOWN_LINES:]
            raise Problem(f"`{command}` ended with {ran.returncode}" + harness.output("\n".join(lines)))
        done.touch()
    return source


def check(world: World, folder: Path, command: list) -> harness.Outcome:
    """Runs one check of an application."""
    return checked(harness.run([str(word) for word in command], seconds=CHECK_SECONDS, env=world.environment(), cwd=folder))


def checked(ran: harness.Outcome) -> harness.Outcome:
    if ran.code is None:
        raise Problem(f"no end after {CHECK_SECONDS} s" + last_lines(ran))
    if ran.code:
        raise Problem(f"exit status {ran.code}" + last_lines(ran))
    return ran


def last_lines(ran: harness.Outcome) -> str:
    return harness.output("\n".join((ran.out + ran.err).splitlines()[-harness.SHOWN_LINES:]))


def fftw(source: Path) -> list:
    def transforms(ranks: int):
        def test(world: World) -> None:
            bench = source / "mpi" / "mpi-bench"
            check(world, source / "mpi", ["perl", "-w", source / "tests/check.pl", "--random", "--maxsize=10000", "-c=10", "--mpi",
                                          f"mpirun -np {ranks} {bench}"])
        return test
    return [Case(f"fftw: transforms on {ranks}", transforms(ranks)) for ranks in (1, 2, 3, 4)]


def hypre(source: Path) -> list:
    folder = source / "src/test"

    def driver(script: Path):
        def test(world: World) -> None:
            check(world, folder, ["bash", "./runtest.sh", "-rtol", "1e-4", "-atol", "1e-6", "-mpi", "mpirun -np",
                                  script.relative_to(folder)])
            # Differences from the kept numbers, and whatever the drivers wrote to standard error.
            errors = script.with_suffix(".err").read_text(errors="replace")
            if errors.strip():
                raise Problem("its numbers or its words differ" + harness.output(errors))
        return test
    scripts = [script for suite in ("struct", "sstruct", "ij") for script in sorted(folder.glob(f"TEST_{suite}/*.sh"))]
    return [Case(f"hypre: {script.parent.name[5:]}/{script.stem}", driver(script)) for script in scripts]


def scotch(source: Path) -> list:
    folder = source / "src/check"
    text = (folder / "Makefile").read_text().replace("\\\n", " ")
    names = re.search(r"^CHECKPTSCOTCH\s*=(.*)$", text, re.MULTILINE).group(1).split()

    def one(name: str):
        def test(world: World) -> None:
            check(world, folder, ["make", "ptcheck", f"CHECKPTSCOTCH={name}"])
        return test
    return [Case(f"scotch: {name}", one(name)) for name in names]


def mumps(source: Path) -> list:
    folder = source / "examples"

    def simple(kind: str, ranks: int):
        def test(world: World) -> None:
            data = "input_simpletest_cmplx" if kind in "cz" else "input_simpletest_real"
            ran = check(world, folder, ["sh", "-c", f"mpirun -np {ranks} ./{kind}simpletest <{data}"])
            solution = re.search(r"Solution is\s+(.*)", ran.out, re.DOTALL)
            # A complex number is a pair, whose second part is nothing here.
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d*(?:E[-+]\d+)?", solution[1])] if solution else []
            parts = numbers[::2] if kind in "cz" else numbers
            if [round(number, 3) for number in parts[:5]] != [1, 2, 3, 4, 5]:
                raise Problem("the solution is not 1, 2, 3, 4, 5" + last_lines(ran))
        return test

    def in_c(ranks: int):
        def test(world: World) -> None:
            ran = check(world, folder, ["mpirun", "-np", ranks, "./c_example"])
            if not re.search(r"Solution is\s*:\s*\(\s*1\.00\s+2\.00\)", ran.out):
                raise Problem("the solution is not (1, 2)" + last_lines(ran))
        return test
    return [*(Case(f"mumps: {kind}simpletest on {ranks}", simple(kind, ranks)) for kind in "dz" for ranks in (1, 2, 4)),
            *(Case(f"mumps: c_example on {ranks}", in_c(ranks)) for ranks in (1, 3))]


# Categories of the suite for pw.x whose pseudopotentials Debian has, and which take a minute or less. pw_noncolin is left out: the pressure
# of its noncolin-pbe differs from the number that is kept by 1.2 on two ranks, with Open MPI too (docs/figures/foreign.md), and the suite allows 0.9.
ESPRESSO = ("pw_atom", "pw_berry", "pw_cluster", "pw_lattice-ibrav", "pw_lsda", "pw_metal", "pw_pawatom", "pw_scf", "pw_spinorbit", "pw_uspp")


def espresso(source: Path) -> list:
    suite = source / "test-suite"

    def category(name: str):
        def test(world: World) -> None:
            check(world, suite, ["env", f"ESPRESSO_ROOT={source}", f"ESPRESSO_PSEUDO={source}/pseudo", "QE_USE_MPI=1", "TESTCODE_NPROCS=2",
                                 "OMP_NUM_THREADS=1", "testcode/bin/testcode.py", "--verbose", f"--category={name}"])
        return test
    return [Case(f"espresso: {name}", category(name)) for name in ESPRESSO]


# The choices that SCOTCH leaves to its user, in the form of its own Make.inc/Makefile.inc.x86-64_pc_linux2, without compressed files.
SCOTCH_CHOICES = """\
EXE=
LIB=.a
OBJ=.o
MAKE=make
AR=ar
ARFLAGS=-ruv
CAT=cat
CCS=cc
CCP=mpicc
CCD=mpicc
CFLAGS=-O2 -fPIC -DCOMMON_PTHREAD -DCOMMON_RANDOM_FIXED_SEED -DSCOTCH_PTHREAD -DSCOTCH_PTHREAD_MPI -DSCOTCH_RENAME \
-Drestrict=__restrict -DIDXSIZE64
LDFLAGS=-lm -lrt -pthread
CP=cp
FLEX=flex
LN=ln
MKDIR=mkdir -p
MV=mv
RANLIB=ranlib
BISON=bison
"""

# The choices of MUMPS, in the form of its own Make.inc/Makefile.inc.generic.
MUMPS_CHOICES = """\
LPORDDIR = $(topdir)/PORD/lib/
IPORD = -I$(topdir)/PORD/include/
ORDERINGSF = -Dpord
ORDERINGSC = -Dpord
LORDERINGS = -L$(LPORDDIR) -lpord
IORDERINGSC = $(IPORD)
PLAT =
LIBEXT = .a
OUTC = -o
OUTF = -o
RM = rm -f
CC = mpicc
FC = mpifort -fc=gfortran
FL = mpifort -fc=gfortran
AR = ar rcs
RANLIB = ranlib
LIBS = $(topdir)/scalapack.o @LIBRARIES@/lapack/liblapack.a
LIBBLAS = @LIBRARIES@/blas/libblas.a
LIBOTHERS = -lpthread
CDEFS = -DAdd_
OPTF = -O1 -fallow-argument-mismatch
OPTC = -O1 -I.
OPTL = -O1
LIBSEQNEEDED =
"""

APPLICATIONS = [
    Application("fftw", "fftw3", "3.3.10", "fftw3_3.3.10.orig.tar.gz",
                "56c932549852cddcfafdab3820b0200c7742675be92179e59e6215b340e26467", ("perl",),
                ((".", "./configure --enable-mpi --disable-fortran --disable-doc MPICC=mpicc CFLAGS=-O2"), (".", "make -j@JOBS@")),
                fftw),
    Application("hypre", "hypre", "2.26.0", "hypre_2.26.0.orig.tar.gz",
                "c214084bddc61a06f3758d82947f7f831e76d7e3edeac2c78bb82d597686e05d", ("bash",),
                (("src", "./configure --disable-fortran --with-MPI CC=mpicc CXX=mpicxx CFLAGS=-O2 CXXFLAGS=-O2"),
                 ("src", "make -j@JOBS@"), ("src/test", "make -j@JOBS@ all")),
                hypre),
    Application("scotch", "scotch", "7.0.3", "scotch_7.0.3.orig.tar.xz",
                "09b582e75df3cf91313e8dd83306bc9d59385fa358d6d4052e5bbf8c75a83348", ("flex", "bison"),
                # Its Makefiles are not made for several jobs at once.
                (("src", f"cat > Makefile.inc <<'END'\n{SCOTCH_CHOICES}END"), ("src", "make scotch ptscotch")),
                scotch),
    Application("mumps", "mumps", "5.5.1", "mumps_5.5.1.orig.tar.gz",
                "1abff294fa47ee4cfd50dfd5c595942b72ebfcedce08142a75a99ab35014fa15", (),
                # The spaces behind AR and the options of output are part of them.
                ((".", f"sed -e 's/^AR.*/& /' -e 's/^OUT.*/& /' > Makefile.inc <<'END'\n{MUMPS_CHOICES}END"),
                 (".", "sed -n '/SUBROUTINE blacs_gridinit/,$p' libseq/mpi.f > scalapack.f && gfortran -O1 -c scalapack.f"),
                 (".", "make -j@JOBS@ d z"), ("examples", "make dsimpletest zsimpletest c_example")),
                mumps, fortran=True, libraries=("libblas-dev", "liblapack-dev")),
    Application("espresso", "espresso", "6.7", "espresso_6.7.orig.tar.gz",
                "8f06ea31ae52ad54e900a2f51afd5c70f78096d9dcf39c86c2b17dccb1ec9c87", ("python3",),
                ((".", "./configure --enable-parallel --with-scalapack=no MPIF90='mpifort -fc=gfortran' F90=gfortran CC=cc CFLAGS=-O1 "
                       "FFLAGS='-O2 -fallow-argument-mismatch' BLAS_LIBS=@LIBRARIES@/blas/libblas.a "
                       "LAPACK_LIBS=@LIBRARIES@/lapack/liblapack.a"),
                 (".", "make -j@JOBS@ pw"),
                 (".", "cp more/debian/pseudo/*.UPF pseudo && sed \"s|XXXXXX|$PWD|g\" test-suite/userconfig.tmp > test-suite/userconfig")),
                # Its graphical interface has a link to an absolute path.
                espresso, fortran=True, libraries=("libblas-dev", "liblapack-dev"), without="/GUI/",
                more=(("espresso_6.7-2.debian.tar.xz", "5edf8634a3c58b0023713f3e30870bf943bb187c8218722117058907f1e26c2b"),)),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--fortran", action="store_true", help="those in Fortran alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="compilers at once")
    parser.add_argument("--build-only", action="store_true", help="fetch and build, and stop")
    options = parser.parse_args()
    world = World(harness.checked_prefix(options.prefix), harness.ROOT / "build/foreign", options.jobs)
    return run("applications", [application for application in APPLICATIONS if application.fortran or not options.fortran], world, options)


def run(suite: str, applications: list, world: World, options) -> int:
    """Builds applications and runs their checks."""
    began, tally, unavailable = time.monotonic(), harness.Tally(), []
    for application in applications:
        # `--only` may name an application, or tests of one.
        if not (options.only.startswith(application.name) or application.name.startswith(options.only)):
            continue
        start = time.monotonic()
        try:
            source = build(world, application)
        except debian.Unavailable as why:
            unavailable.append(harness.not_run(application.name, str(why)))
            continue
        except Problem as found:
            print(f"FAIL {application.name} does not build: {found}", flush=True)
            tally.add(f"{application.name}: build", "failed", time.monotonic() - start, str(found))
            continue
        print(f"{application.name} {application.version} is built ({time.monotonic() - start:.1f} s)", flush=True)
        cases = [case for case in application.cases(source) if case.wanted(options)]
        if options.list:
            print("\n".join(case.name for case in cases))
        elif not options.build_only:
            own = harness.run_cases(cases, world)
            print(f"{application.name}: {own.passed} passed, {own.failed} failed", flush=True)
            tally.merge(own)
    if options.list or options.build_only:
        return 1 if tally.failed else 0
    if unavailable and not tally.cases:
        return harness.NOT_RUN
    return harness.close(suite, tally, began)


if __name__ == "__main__":
    sys.exit(main())
