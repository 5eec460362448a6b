"""The Fortran libraries of older ABIs under each of their names: a program by mpif.h, at addresses that the loader chooses and at fixed ones, with
each compiler and each of its names for procedures and COMMON blocks. The headers here have what the program needs of either ABI."""

import re
import shutil
import subprocess

import harness
from further_names import stub
from harness import Case, Problem, Skip

HERE = harness.ROOT / "tests/abis/mpif"
# ABI, our library, and further libraries of its names that programs need in its place: Debian's, and those of Open MPI's modules.
ABIS = {"mpich": ("libmpifort.so.12", ["libmpichfort.so.12"]), "openmpi": ("libmpi_mpifh.so.40", ["libmpi_usempi_ignore_tkr.so.40", "libmpi_usempif08.so.40"])}
# Compilers, with options for calls of one procedure with different types, without an interface.
COMPILERS = {"gfortran": ["gfortran", "-fallow-argument-mismatch", "-w"], "flang-19": ["/usr/lib/llvm-19/bin/flang-new", "-w"]}
# Options of gfortran for further names: `mpi_send`, `mpi_send__`.
MANGLINGS = ["-fno-underscoring", "-fsecond-underscore"]
# gfortran's library keeps what is printed into a pipe until it is told to write.
ABORT = """program main
  include 'mpif.h'
  call MPI_Init(ierror)
  print '(a)', 'a message before the end'
  call MPI_Abort(MPI_COMM_WORLD, 3, ierror)
end program
"""


def compiled(world, abi: str, library: str, compiler: str, options: list, source, built) -> None:
    if not shutil.which(COMPILERS[compiler][0]):
        raise Skip(f"{compiler} is not installed")
    own, _ = ABIS[abi]
    linked = world.prefix.absolute() / "lib/fishplate" / own if library == own else stub(world, library, own)
    # The folder for module files is the working directory.
    words = [*COMPILERS[compiler], f"-I{HERE / abi}", *options, source, "-o", built, linked, "-Wl,--allow-shlib-undefined"]
    ran = subprocess.run([str(word) for word in words], cwd=world.work, capture_output=True, text=True)
    if ran.returncode:
        raise Problem(f"{compiler} ended with {ran.returncode}{harness.output(ran.stdout + ran.stderr)}")


def program(abi: str, library: str, compiler: str, *options: str):
    def test(world):
        built = world.work / f"fortran-{abi}"
        compiled(world, abi, library, compiler, options, HERE / "program.f90", built)
        entries = subprocess.run(["readelf", "-d", built], check=True, capture_output=True, text=True).stdout
        if re.findall(r"NEEDED.*\[(libmpi.*)\]", entries) != [library]:
            raise Problem(f"the program needs something else:\n{entries}")
        ran = harness.launch(world.prefix, 3, [built, world.work / "file"], seconds=60)
        if ran.code != 0 or ran.out.split() != ["passed"] * 3:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    return Case(f"Fortran of {abi}: {library}, {compiler} {' '.join(options)}", test)


def message_before_abort(world):
    source, built = world.work / "abort.f90", world.work / "abort"
    source.write_text(ABORT)
    compiled(world, "mpich", "libmpifort.so.12", "gfortran", [], source, built)
    ran = harness.launch(world.prefix, 1, [built], seconds=60)
    if ran.code != 3 or ran.out != "a message before the end\n":
        raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")


def cases() -> list[Case]:
    found = []
    for abi, (own, others) in ABIS.items():
        for compiler in COMPILERS:
            found += [program(abi, library, compiler, option) for option in ("-fPIE", "-no-pie") for library in (own, *others)]
        found += [program(abi, own, "gfortran", "-no-pie", option) for option in MANGLINGS]
    return [*found, Case("a message that a Fortran program prints before MPI_Abort", message_before_abort)]
