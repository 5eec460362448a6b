"""Programs that are linked with another MPI library are refused, and those that load one are named."""

import os
import subprocess
import sys
from pathlib import Path

from harness import Problem
from job import Job

FAKE = "int fake(void) { return 0; }\n"
CALLS = "int fake(void);\nint main(void) { return fake(); }\n"
# MPICH's MPI_COMM_WORLD is an integer.
MPICH = """#include <stdio.h>
int MPI_Init(int *, char ***); int MPI_Finalize(void); int MPI_Comm_rank(int, int *); int MPI_Comm_size(int, int *);
int main(int argc, char **argv) {
    int rank = -1, size = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(0x44000000, &rank);
    MPI_Comm_size(0x44000000, &size);
    printf("%d/%d\\n", rank, size);
    return MPI_Finalize();
}
"""
OPENS = """#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv) { if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) return 1; for (;;) pause(); }
"""


def built(world, name: str, text: str, *options: str) -> Path:
    """A file made of this C program."""
    folder = world.work / "libraries"
    folder.mkdir(exist_ok=True)
    target = folder / name
    subprocess.run(["cc", "-x", "c", "-", "-o", str(target), *options], input=text, text=True, check=True)
    return target


def other_abi(name: str, *patterns: str):
    def test(world):
        library = built(world, name, FAKE, "-shared", "-fPIC", f"-Wl,-soname,{name}")
        program = built(world, f"linked-with-{name}", CALLS, "-x", "none", str(library), f"-Wl,-rpath,{library.parent}")
        for allowed, wanted in [([], 126), (["--allow-other-mpi"], 0)]:
            with Job(world.work, [world.mpiexec, *allowed, "-n", 2, program]) as job:
                if (code := job.end(10)) != wanted:
                    raise Problem(f"exit status {code} with {allowed}: {job.err}")
                job.check_one_line(f"is linked with {name}", *patterns, "mpicc")
        with Job(world.work, [world.mpiexec, "-n", 1, program]) as job:
            job.end(10)
            if job.err:
                raise Problem(f"one rank alone is a job of one rank: {job.err}")
    return f"a program is linked with {name}", test


def search_path(world):
    """DT_RPATH comes before LD_LIBRARY_PATH; the ranks load our library all the same."""
    prefix = world.mpiexec.parent.parent
    own = (prefix / "lib/libmpi_abi.so.1").resolve()
    other = world.work / "libraries" / "other"
    other.mkdir(parents=True, exist_ok=True)
    (other / "libmpi_abi.so.1").write_bytes(own.read_bytes())
    source = Path(__file__).with_name("which_library.c").read_text()
    program = built(world, "which", source, f"-I{prefix}/include", "-x", "none", str(own),
                    f"-Wl,-rpath,{other}", "-Wl,--disable-new-dtags")
    with Job(world.work, [world.mpiexec, "-n", 2, program], env={"LD_PRELOAD": ""}) as job:
        if (code := job.end(10)) != 0:
            raise Problem(f"exit status {code}: {job.err}")
        job.check_one_line("which would load .*/other/libmpi_abi.so.1 by its own DT_RPATH", "LD_PRELOAD")
        loaded = {os.path.realpath(line.split(" ", 1)[1]) for line in job.out.splitlines()}
        if loaded != {str(own)} or not all(line.startswith("2 ") for line in job.out.splitlines()):
            raise Problem(f"the ranks loaded {job.out}")


def mpich(world):
    """A program that needs libmpi.so.12 gets ours, also where its own search path has another."""
    ours = world.mpiexec.parent.parent / "lib/fishplate/libmpi.so.12"
    other = built(world, "libmpi.so.12", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12")
    for tags, lines in [("--enable-new-dtags", 0), ("--disable-new-dtags", 1)]:
        program = built(world, f"mpich{tags}", MPICH, "-x", "none", str(ours), f"-Wl,-rpath,{other.parent},{tags}")
        with Job(world.work, [world.mpiexec, "-n", 2, program], env={"LD_PRELOAD": ""}) as job:
            if (code := job.end(10)) != 0 or sorted(job.out.split()) != ["0/2", "1/2"]:
                raise Problem(f"exit status {code}, {job.out!r}: {job.err}")
            if lines:
                job.check_one_line("would load .*/libmpi.so.12 by its own DT_RPATH", "LD_PRELOAD")
            elif job.err:
                raise Problem(f"nothing is to be said: {job.err}")


def mpich_abi(world):
    """Handles, statuses, constants, callbacks and limits of MPICH's ABI, by a program that has its numbers."""
    of_abi(world, "mpich_abi", "libmpi.so.12")


def openmpi_abi(world):
    """The same program with the facts of Open MPI's ABI. At fixed addresses it has copies of the objects whose addresses are handles."""
    for options in [[], ["-no-pie", "-fno-pie"], ["-fPIC"]]:
        of_abi(world, "openmpi_abi", "libmpi.so.40", *options)


def openmpi_cxx(world):
    """What programs of Open MPI's C++ bindings import."""
    folder = world.mpiexec.parent.parent / "lib/fishplate"
    cxx = Path(__file__).with_name("openmpi_abi") / "cxx.c"
    for options in [["-no-pie", "-fno-pie"], ["-fPIC"]]:
        of_abi(world, "openmpi_abi", "libmpi.so.40", "-rdynamic", *options, source=cxx, more=(str(folder / "libmpi_cxx.so.40"),))


def of_abi(world, abi: str, library: str, *options: str, source: Path = Path(__file__).parent / "mpich_abi/abi.c", more: tuple = ()):
    tests = Path(__file__).parent
    ours = world.mpiexec.parent.parent / "lib/fishplate" / library
    program = built(world, f"{abi}-{source.stem}", source.read_text(), f"-I{tests / abi}", *options, "-Wall", "-Wextra", "-Werror", "-x", "none", *more, str(ours))
    with Job(world.work, [world.mpiexec, "-n", 3, program]) as job:
        if (code := job.end(20)) != 0 or job.out.split() != ["passed"] * 3 or job.err:
            raise Problem(f"exit status {code}, {job.out!r}: {job.err}")


def loaded_later(world):
    """Seen in the memory of ranks that never call this library: the searches come before the time is up."""
    library = built(world, "libmpi.so.40", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40")
    program = built(world, "opens", OPENS)
    with Job(world.work, [world.mpiexec, "-n", 2, "--timeout", 2, program, library]) as job:
        if (code := job.end(10)) != 124:
            raise Problem(f"exit status {code}, not 124: {job.err}")
        job.check_says("none of the 2 ranks called MPI_Init", "libmpi.so.40 in memory", "the ABI of Open MPI")


def no_library(world):
    with Job(world.work, [world.mpiexec, "-n", 2, "sh", "-c", "sleep 0.3"]) as job:
        job.end(10)
        if job.err:
            raise Problem(f"programs without MPI are fine: {job.err}")


def wheel(world):
    """A python gets what a wheel of mpi4py needs to choose MPICH's ABI, unless the user has chosen."""
    program = [sys.executable, "-c", "import os, ctypes; ctypes.CDLL('libmpi.so.12').MPI_Initialized; os.write(1, os.environb[b'MPI4PY_MPIABI'] + b'\\n')"]
    for given, wanted in [({}, "mpich"), ({"MPI4PY_MPIABI": "openmpi"}, "openmpi")]:
        with Job(world.work, [world.mpiexec, "-n", 2, *program], env=given) as job:
            if (code := job.end(20)) != 0 or job.out.split() != [wanted] * 2:
                raise Problem(f"exit status {code}, {job.out!r}: {job.err}")


def tests() -> list:
    return [
        ("a program of MPICH's ABI", mpich),
        ("handles, statuses, callbacks and limits of MPICH's ABI", mpich_abi),
        ("handles, statuses, callbacks and limits of Open MPI's ABI", openmpi_abi),
        ("the C++ bindings of Open MPI's ABI", openmpi_cxx),
        other_abi("libmpifort.so.12", "MPICH's Fortran"),
        ("a program's own search path finds another library", search_path),
        ("ranks load another library while they run", loaded_later),
        ("programs without MPI", no_library),
        ("a python with a wheel of mpi4py", wheel),
    ]
