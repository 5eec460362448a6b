"""Programs in Fortran that were compiled with the headers and modules of Debian's MPICH and Open MPI, and linked with their libraries:
forms.F90 in each form, and programs of tests/fortran."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness
from harness import Case, Problem, Skip

import debian  # noqa: E402

CACHE = harness.ROOT / "build/foreign"
FORMS = {"mpif.h": [], "mpi": ["-DMODULE"], "mpi_f08": ["-DF08"]}
# Package, the folders of header and modules, and the libraries that its mpifort names.
LIBRARIES = {
    "MPICH": ("libmpich-dev=4.0.2-3+b1", ["usr/include/*/mpich", "usr/lib/*/fortran/gfortran-mod-15/mpich"], ["mpichfort", "mpich"]),
    "Open MPI": ("libopenmpi-dev=4.1.4-3+b1", ["usr/lib/*/openmpi/include", "usr/lib/*/fortran/gfortran-mod-15/openmpi"],
                 ["mpi_usempif08", "mpi_usempi_ignore_tkr", "mpi_mpifh", "mpi"]),
}

PROGRAMS = harness.ROOT / "tests/fortran"
# Programs of tests/fortran with their numbers of ranks, but those that call procedures which Debian's modules lack.
OTHERS = {
    "MPICH": {"f77_pingpong.f": 2, "f77_conversions.f": 4, "mpi_attributes.f90": 2, "f08_collectives.f90": 3, "f08_random.f90": 2},
    "Open MPI": {"f77_pingpong.f": 2, "mpi_attributes.f90": 2},
}


def root_of(says: str) -> Path:
    package = LIBRARIES[says][0]
    if shutil.which("gfortran") is None:
        raise Skip("there is no gfortran")
    if shutil.which("apt-get") is None or f"VERSION_CODENAME={debian.SUITE}" not in Path("/etc/os-release").read_text():
        raise Skip(f"packages of Debian {debian.SUITE} are unpacked on that system alone")
    try:
        return debian.installed([package], CACHE / f"root-{package.partition('=')[0]}", CACHE)
    except debian.Unavailable as why:
        raise Skip(str(why)) from None


def compiled(world, says: str, source: Path, target: Path, *options: str) -> None:
    root = root_of(says)
    _, folders, libraries = LIBRARIES[says]
    includes = [f"-I{folder}" for pattern in folders for folder in root.glob(pattern)]
    [theirs] = root.glob("usr/lib/*-linux-gnu")
    # Of each program's own module, the file lies beside the program.
    (modules := world.work / f"modules-{target.name}").mkdir()
    objects = []
    if (in_c := source.with_suffix(".c")).exists():
        objects = [target.with_suffix(".o")]
        # Names of MPI 5.
        done("cc", "-w", "-DMPI_Comm_fromint=MPI_Comm_f2c", "-DMPI_Comm_toint=MPI_Comm_c2f", *includes, "-c", in_c, "-o", objects[0])
    done("gfortran", "-fallow-argument-mismatch", "-w", "-O2", *options, *includes, f"-I{source.parent}", f"-J{modules}", source, *objects,
         f"-L{theirs}", f"-L{theirs}/openmpi/lib", *(f"-l{name}" for name in libraries), "-Wl,--allow-shlib-undefined", "-o", target)


def done(*words) -> None:
    made = subprocess.run(list(map(str, words)), capture_output=True, text=True)
    if made.returncode:
        raise Problem(f"{words[0]} ended with {made.returncode}{harness.output(made.stderr)}")


def program(says: str, form: str, *options: str):
    def test(world):
        target = world.work / f"{says}-{form}{''.join(options)}".replace(" ", "-")
        compiled(world, says, Path(__file__).with_name("forms.F90"), target, *FORMS[form], *options)
        ran = harness.launch(world.prefix, 3, [target], seconds=60)
        if ran.code != 0 or ran.out.split() != ["passed"] * 3 or ran.err:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    at = " at fixed addresses" if "-no-pie" in options else ""
    return Case(f"a program by {says}'s {form}{at}", test)


def other(says: str, name: str, ranks: int):
    def test(world):
        target = world.work / f"{says}-{Path(name).stem}".replace(" ", "-")
        compiled(world, says, PROGRAMS / name, target)
        ran = harness.launch(world.prefix, ranks, [target], seconds=60)
        if ran.code != 0 or [line.strip() for line in ran.out.splitlines()].count("ok") != 1 or ran.err:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    return Case(f"{name} by {says}'s modules and header", test)


# Patterns of whole names that ours lack, and why programs do without. A pattern without a name fails.
LEFT_OUT = {
    "MPICH": {
        r"P?MPIXR?_COMM_(AGREE|FAILURE_ACK|FAILURE_GET_ACKED|REVOKE|SHRINK)(_F08)?_*": "fault tolerance is not in the standard ABI",
        r"P?MPIXR?_(GPU_QUERY|QUERY_(CUDA|HIP|ZE))_SUPPORT(_F08)?_*": "extensions that no known binary imports from Fortran",
        r"MPIR_[CF]_\w+|MPIRINIT[CF]_|MPI_F_(ARGVS?_NULL|ERRCODES_IGNORE)|__MPI_C_INTERFACE_GLUE_\w+": "what MPICH's library calls and stores itself",
        r"P?MPI_STATUS_(C2F08|F082C)": "ours are in libmpi.so.12, which every program of this library has too",
        r"__MPI_\w+_MOD___(COPY|DEF_INIT|VTAB)_\w+": "derived types as CLASS(*), which no known binary imports",
    },
    "Open MPI": {
        r"P?MPIX?_\w+_F(08)?": "names in C of functions that Open MPI's libraries call themselves",
        r"MPIEXT_PCOLLREQ_MPIFH_DUMMY|OMPI_INTERCEPT_\w+": "what Open MPI's libraries have for themselves",
        r"__MPI_\w+_MOD___(COPY|DEF_INIT|VTAB)_\w+": "derived types as CLASS(*), which no known binary imports",
    },
}


def exported(library: Path) -> set:
    """The names of Fortran's interface."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines}
    return {name for name in names if re.match(r"(__)?p?mpi|ompi_(f08|intercept)", name, re.I)}


def names(says: str, theirs: list[str], ours: str):
    def test(world):
        [folder] = root_of(says).glob("usr/lib/*-linux-gnu")
        lacking = set().union(*(exported(folder / name) for name in theirs)) - exported(world.prefix / "lib/fishplate" / ours)
        # Compilers write small letters or capitals.
        reasons = {name: [pattern for pattern in LEFT_OUT[says] if re.fullmatch(pattern, name.upper())] for name in lacking}
        if unknown := sorted(name for name, patterns in reasons.items() if not patterns):
            raise Problem(f"{ours} lacks {len(unknown)} names for no listed reason: {', '.join(unknown)}")
        used = {pattern for patterns in reasons.values() for pattern in patterns}
        if unused := [pattern for pattern in LEFT_OUT[says] if pattern not in used]:
            raise Problem(f"no name is left out by {', '.join(unused)}")
    return Case(f"the Fortran names of {says}'s libraries", test)


def cases() -> list[Case]:
    libraries = [names("MPICH", ["libmpichfort.so.12"], "libmpifort.so.12"),
                 names("Open MPI", ["libmpi_mpifh.so.40", "libmpi_usempi_ignore_tkr.so.40", "libmpi_usempif08.so.40"], "libmpi_mpifh.so.40")]
    libraries += [other(says, name, ranks) for says, programs in OTHERS.items() for name, ranks in programs.items()]
    return libraries + [program(says, form, *options) for says in LIBRARIES for form in FORMS for options in ([], ["-no-pie", "-fno-pie"])]
