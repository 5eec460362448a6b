"""Programs in Fortran that were compiled with the headers and modules of Debian's MPICH and Open MPI, and linked with their libraries."""

import shutil
import subprocess
import sys
from pathlib import Path

import harness
from harness import Case, Problem, Skip

sys.path.append(str(harness.ROOT / "tests/foreign"))
import debian  # noqa: E402

CACHE = harness.ROOT / "build/foreign"
FORMS = {"mpif.h": [], "mpi": ["-DMODULE"], "mpi_f08": ["-DF08"]}
# Package, the folders of header and modules, and the libraries that its mpifort names.
LIBRARIES = {
    "MPICH": ("libmpich-dev=4.0.2-3+b1", ["usr/include/*/mpich", "usr/lib/*/fortran/gfortran-mod-15/mpich"], ["mpichfort", "mpich"]),
    "Open MPI": ("libopenmpi-dev=4.1.4-3+b1", ["usr/lib/*/openmpi/include", "usr/lib/*/fortran/gfortran-mod-15/openmpi"],
                 ["mpi_usempif08", "mpi_usempi_ignore_tkr", "mpi_mpifh", "mpi"]),
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


def program(says: str, form: str, *options: str):
    def test(world):
        root = root_of(says)
        _, folders, libraries = LIBRARIES[says]
        includes = [f"-I{folder}" for pattern in folders for folder in root.glob(pattern)]
        [theirs] = root.glob("usr/lib/*-linux-gnu")
        target = world.work / f"{says}-{form}{''.join(options)}".replace(" ", "-")
        # Of each program's own module, the file lies beside the program.
        (modules := target.with_suffix(".modules")).mkdir()
        words = ["gfortran", "-fallow-argument-mismatch", "-O2", *FORMS[form], *options, *includes, f"-J{modules}",
                 Path(__file__).with_name("forms.F90"), f"-L{theirs}", f"-L{theirs}/openmpi/lib", *(f"-l{name}" for name in libraries),
                 "-Wl,--allow-shlib-undefined", "-o", target]
        made = subprocess.run(words, capture_output=True, text=True)
        if made.returncode:
            raise Problem(f"gfortran ended with {made.returncode}{harness.output(made.stderr)}")
        ran = harness.launch(world.prefix, 3, [target], seconds=60)
        if ran.code != 0 or ran.out.split() != ["passed"] * 3 or ran.err:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    at = " at fixed addresses" if "-no-pie" in options else ""
    return Case(f"a program by {says}'s {form}{at}", test)


def cases() -> list[Case]:
    return [program(says, form, *options) for says in LIBRARIES for form in FORMS for options in ([], ["-no-pie", "-fno-pie"])]
