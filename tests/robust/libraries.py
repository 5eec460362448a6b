"""Programs that are linked with another MPI library are refused, and those that load one are named."""

import os
import subprocess
import sys
from pathlib import Path

from harness import Problem
from job import Job

FAKE = "int fake(void) { return 0; }\n"
CALLS = "int fake(void);\nint main(void) { return fake(); }\n"
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
    """A python that ends before MPI, and whose mpi4py is for other ABIs."""
    folder = world.work / "libraries" / "site" / "mpi4py"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "__init__.py").write_text("")
    (folder / "MPI.mpich.abi3.so").write_text("")
    own = folder / "MPI.abi3.so"
    for is_built, code in [(False, 1), (True, 1), (False, 0)]:
        own.write_text("") if is_built else own.unlink(missing_ok=True)
        program = [sys.executable, "-c", f"import sys; sys.exit({code})"]
        with Job(world.work, [world.mpiexec, "-n", 2, *program], env={"PYTHONPATH": str(folder.parent)}) as job:
            if (found := job.end(20)) != code:
                raise Problem(f"exit status {found}: {job.err}")
            says = "is a wheel of mpi4py for the ABIs of MPICH and Open MPI" in job.err
            if says != (code == 1 and not is_built):
                raise Problem(f"with an own build {is_built}, exit code {code}: {job.err}")


def tests() -> list:
    return [
        other_abi("libmpi.so.12", "the ABI of MPICH and Intel MPI"),
        other_abi("libmpi.so.40", "the ABI of Open MPI", "mpi4py"),
        ("a program's own search path finds another library", search_path),
        ("ranks load another library while they run", loaded_later),
        ("programs without MPI", no_library),
        ("a python with a wheel of mpi4py for other ABIs", wheel),
    ]
