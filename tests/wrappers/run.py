#!/usr/bin/env python3
"""The compiler wrappers and package descriptions of a prefix, as build systems use them.

    tests/wrappers/run.py [--prefix build] [--only TEXT] [--list]

Tests of pkg-config, CMake and meson are skipped where the tool is missing. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import fortran  # noqa: E402
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

# The variables that name the compiler, the strongest first.
COMPILERS = {"mpicc": ("MPICC_CC", "MPICH_CC", "OMPI_CC", "I_MPI_CC"), "mpicxx": ("MPICXX_CXX", "MPICH_CXX", "OMPI_CXX", "I_MPI_CXX")}
SECONDS = 120

PROBE = "char {name}();\nint main(void) {{ return {name}(); }}\n"
OWN = """\
#define FISHPLATE_NO_FORTRAN_NAMES
#include <mpi.h>
typedef int MPI_Fint;
MPI_Comm MPI_Comm_f2c(MPI_Fint comm);
MPI_Comm MPI_Comm_f2c(MPI_Fint comm) { (void)comm; return MPI_COMM_SELF; }
int MPI_Comm_c2f();
int main(void) { return MPI_Comm_f2c(257) != MPI_COMM_SELF || MPI_Comm_c2f(MPI_COMM_WORLD) != 257; }
"""
PROGRAM = """\
#include <mpi.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Fint world = MPI_Comm_c2f(MPI_COMM_WORLD);
    int wrong = MPI_Comm_f2c(world) != MPI_COMM_WORLD;
    MPI_Finalize();
    return wrong;
}
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(probe C CXX)
find_package(MPI 3.1 REQUIRED COMPONENTS C CXX)
include(CheckFunctionExists)
set(CMAKE_REQUIRED_LIBRARIES MPI::MPI_C)
check_function_exists(MPI_Comm_f2c FOUND)
if(NOT FOUND)
  message(FATAL_ERROR "MPI_Comm_f2c is not found")
endif()
add_executable(program program.c)
target_link_libraries(program MPI::MPI_C)
"""
MESON = """\
project('probe', 'c')
mpi = dependency('mpi', version: '>=3')
executable('program', 'program.c', dependencies: mpi)
"""


@dataclass
class World:
    prefix: Path
    work: Path

    def run(self, *words, env: dict | None = None, cwd: Path | None = None, prefix: Path | None = None) -> str:
        """The standard output of a command that must succeed; `mpicc` is the prefix's."""
        path = f"{prefix or self.prefix}/bin:{os.environ['PATH']}"
        clean = {name: text for name, text in os.environ.items() if name not in sum(COMPILERS.values(), ())}
        done = subprocess.run([str(word) for word in words], env=clean | {"PATH": path} | (env or {}), cwd=cwd or self.work,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS)
        if done.returncode:
            raise Problem(f"`{' '.join(map(str, words))}` ended with {done.returncode}" + harness.output(done.stdout + done.stderr))
        return done.stdout

    def write(self, name: str, text: str) -> Path:
        path = self.work / name
        path.write_text(text)
        return path

    def folder(self, name: str, **files: str) -> Path:
        folder = self.work / name
        folder.mkdir()
        (folder / "program.c").write_text(PROGRAM)
        for file, text in files.items():
            (folder / file.replace("_", ".")).write_text(text)
        return folder


def expect(seen, wanted, what: str) -> None:
    if seen != wanted:
        raise Problem(f"{what} is {seen!r}, not {wanted!r}")


def compilers(wrapper: str):
    def test(world: World) -> None:
        names = COMPILERS[wrapper]
        for at, name in enumerate(names):
            env = {other: f"compiler-{other}" for other in names[at:]}
            expect(world.run(wrapper, "-show", "a.c", env=env).split()[0], f"compiler-{name}", "the compiler")
        expect(world.run(wrapper, "-showme:command").strip(), "cc" if wrapper == "mpicc" else "c++", "the compiler")
        expect(world.run(wrapper, "-cc=own", "-show", "a.c", env={names[0]: "x"}).split()[0], "own", "the compiler")
    return f"{wrapper}: the variables that name the compiler", test


def words(world: World) -> None:
    shown = world.run("mpicc", "-show", "a.c").split()
    expect(shown[-2:], ["-lfishplate_names", "-lmpi_abi"], "the end of the command")
    expect(world.run("mpicc", "-showme:link").split()[-2:], ["-lfishplate_names", "-lmpi_abi"], "the end of the link options")
    expect(world.run("mpicc", "-showme:libs").split(), ["fishplate_names", "mpi_abi"], "the libraries")
    if "-showme" not in world.run("mpicc", "-showme:help"):
        raise Problem("-showme:help does not name -showme")
    # Build systems take the first number of three parts for the version of MPI.
    version = world.run("mpicc", "-showme:version")
    if "MPI 5.0.0" not in version:
        raise Problem(f"the version is {version!r}")
    expect(world.run("mpicc", "-v").splitlines()[0] + "\n", version, "the first line of -v")


def probes(world: World) -> None:
    for name in ("MPI_Comm_f2c", "MPI_Comm_c2f", "MPI_Status_f2c", "PMPI_Info_c2f"):
        world.run("mpicc", "-w", "-o", world.work / "probe", world.write("probe.c", PROBE.format(name=name)))


def own_definition(world: World) -> None:
    world.run("mpicc", "-w", "-o", world.work / "own", world.write("own.c", OWN))
    world.run(world.work / "own")


def without_archive(world: World) -> None:
    """A tree that was installed where no C compiler was."""
    tree = world.work / "tree"
    for folder in ("bin", "lib"):
        (tree / folder).mkdir(parents=True)
    shutil.copy(world.prefix / "bin/mpicc", tree / "bin")
    (tree / "include").symlink_to(world.prefix / "include")
    for library in ("libmpi_abi.so", "libmpi_abi.so.1"):
        shutil.copy(world.prefix / "lib" / library, tree / "lib")
    program = world.write("bare.c", PROGRAM)
    world.run("mpicc", "-Wall", "-Werror", "-o", world.work / "bare", program, prefix=tree)
    world.run(world.work / "bare")


def only_supported(world: World) -> None:
    """-only-supported hides the procedures that do not work from the linker, and from nothing else."""
    table = (harness.ROOT / "crates/faces/tables/procedures.txt").read_text()
    rows = [line.split() for line in table.splitlines() if line and not line.startswith(("#", "chapter "))]
    hidden = [f"MPI_{row[0]}" for row in rows if row[2] != "works"]
    works = [f"MPI_{row[0]}" for row in rows if row[2] == "works"]
    compiled = ("mpicc", "-only-supported", "-w", "-o", world.work / "only")
    for name in ("MPI_Send_c", "PMPI_Send", "MPI_Attr_get", "MPI_Comm_f2c", "MPI_Win_c2f", works[0], works[-1]):
        world.run(*compiled, world.write("only.c", PROBE.format(name=name)))
    for name in {"MPI_Session_init", "PMPI_Session_init", hidden[0], hidden[-1]}:
        program = world.write("only.c", PROBE.format(name=name))
        try:
            world.run(*compiled, program)
        except Problem as why:
            if f"undefined reference to `{name}'" in str(why):
                world.run("mpicc", "-w", "-o", world.work / "only", program)
                continue
            raise
        raise Problem(f"{name} is found, though it does not work")
    program = world.write("only.c", PROGRAM)
    world.run("mpicc", "-only-supported", "-Wall", "-Werror", "-o", world.work / "only", program)
    world.run("mpiexec", "-n", "2", world.work / "only")
    world.run("mpicxx", "-only-supported", "-x", "c++", "-o", world.work / "only", program)
    if (first := world.run("mpicc", "-only-supported", "-showme:link").split()[0]) != f"-L{world.prefix}/lib/supported":
        raise Problem(f"the first link option is {first}")


def tool(name: str) -> None:
    if not shutil.which(name):
        raise Skip(f"no {name} here")


def pkg_config(world: World) -> None:
    tool("pkg-config")
    env = {"PKG_CONFIG_PATH": str(world.prefix / "lib/pkgconfig")}
    expect(world.run("pkg-config", "--modversion", "mpi", env=env).strip(), "5.0", "the version of mpi.pc")
    flags = world.run("pkg-config", "--cflags", "--libs", "mpi", env=env).split()
    world.run("cc", "-o", world.work / "packaged", world.write("packaged.c", PROGRAM), *flags)
    world.run(world.work / "packaged")


def cmake(world: World) -> None:
    tool("cmake")
    folder = world.folder("cmake", CMakeLists_txt=CMAKE)
    world.run("cmake", "-S", folder, "-B", folder / "build")
    world.run("cmake", "--build", folder / "build")
    world.run(folder / "build/program")


def meson(world: World) -> None:
    tool("meson")
    tool("ninja")
    folder = world.folder("meson", meson_build=MESON)
    world.run("meson", "setup", folder / "build", folder)
    world.run("ninja", "-C", folder / "build")
    world.run(folder / "build/program")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    table = [
        *map(compilers, COMPILERS),
        ("mpicc: the words of -show, -showme and -v", words),
        ("mpicc: link probes find the names that the ABI leaves out", probes),
        ("mpicc: a program's own definition comes before the archive's", own_definition),
        ("mpicc: without the archive", without_archive),
        ("mpicc: -only-supported hides what does not work", only_supported),
        ("pkg-config", pkg_config),
        ("CMake", cmake),
        ("meson", meson),
        *fortran.TABLE,
    ]
    cases = [case for case in (Case(name, test) for name, test in table) if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory() as work:
        return harness.run_suite("wrappers", cases, World(harness.checked_prefix(options.prefix), Path(work)))


if __name__ == "__main__":
    sys.exit(main())
