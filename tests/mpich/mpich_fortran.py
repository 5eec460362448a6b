"""MPICH's conformance programs in Fortran: the folders f77, f90 and f08, and how they are compiled.

Most are in Fortran alone, some have a part in C, and some are in C alone. Headers that configure would fill in are filled in here;
the programs of files are made of one template by MPICH's own script in Perl.
"""

import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

from mpich_sources import Builder

CHAPTERS = [f"{form}/{folder}" for form, folders in {
    "f77": "attr coll comm datatype ext info init io profile pt2pt rma spawn topo",
    "f90": "attr coll comm datatype ext f90types info init io misc profile pt2pt rma spawn timer topo",
    "f08": "attr coll comm datatype ext info init io misc profile pt2pt rma spawn subarray timer topo",
}.items() for folder in folders.split()]

# Programs of other folders use headers of this one.
ATTRIBUTES = "f77/attr"
# What configure fills into testlists and headers.
FILLED_IN = {"@ALLOCMEMF@": "allocmemf 1", "@ALLOCMEMFC@": "allocmemf90 1",
             "@F77_MPI_ADDRESS@": "integer*8", "@F77_MPI_OFFSET@": "integer*8", "@PERL@": "/usr/bin/perl"}
# Pointers of Cray's kind, for the procedures that return addresses; and arguments of several types for one procedure without an
# interface. gfortran allows both on request alone.
FLAGS = {"gfortran": ["-fcray-pointer", "-fallow-argument-mismatch"]}
MANGLED = ["-DF77_NAME_LOWER_USCORE"]


def filled_in(text: str) -> str:
    for word, value in FILLED_IN.items():
        text = text.replace(word, value)
    return text


def free_form(text: str) -> str:
    """A template of the folder f77 for programs of the folder f90, which has none of its own."""
    for pattern, new in ((r'filename="(.*)f\.f"', r'filename="\1f90.f90"'), (r"include.*mpif.*", "use mpi"), (r"^.*implicit *none.*\n", ""),
                         (r"include.*iooffset.*", "integer (kind=MPI_OFFSET_KIND)offset"), (r"fheader", "f90header"), (r"^C", "!")):
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text


class FortranBuilder(Builder):
    """Compiles programs into a folder that belongs to one compiler, too."""

    def __init__(self, tests: Path, prefix: Path, cache: Path, compiler: str):
        self.compiler = compiler
        # What does not compile of the utilities of a form is told with the programs that need it.
        self.complaints = {}
        # Programs are compiled two at a time.
        self.generating = threading.Lock()
        self.mpifort = [str(prefix / "bin/mpifort"), f"-fc={compiler}"]
        super().__init__(tests, prefix, cache)
        self.flags += MANGLED
        self.fortran_flags = [*next((flags for name, flags in FLAGS.items() if name in compiler), [])]

    def key(self, prefix: Path) -> list[str]:
        """What the programs depend on: also the compiler and the sources of the modules."""
        version = subprocess.run([self.compiler, "--version"], capture_output=True, text=True).stdout
        modules = sorted((prefix / "share/fishplate/fortran").glob("*"))
        sources = hashlib.sha256(b"".join(path.read_bytes() for path in modules)).hexdigest()
        return [*super().key(prefix), self.compiler, version, sources]

    def utilities(self) -> None:
        super().utilities()
        # Headers that configure would make.
        for template in self.tests.glob("f77/*/*.h.in"):
            made = self.out / template.relative_to(self.tests).with_suffix("")
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(filled_in(template.read_text()))
        for form, suffix in (("f77", "f"), ("f90", "f90"), ("f08", "f90")):
            target = self.out / "util" / f"mtest_{form}.o"
            self.complaints[form] = self.fortran([self.tests / "util" / f"mtest_{form}.{suffix}"], target, ["-c"])

    def fortran(self, sources: list, target: Path, flags: list) -> str:
        """The complaint of mpifort, or nothing."""
        if target.exists():
            return ""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(target.name + ".part")
        # Module files of one program must not be found by another.
        with tempfile.TemporaryDirectory() as work:
            command = [*self.mpifort, *self.fortran_flags, *flags, *map(str, sources), "-o", str(fresh)]
            done = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if done.returncode:
            return done.stdout + done.stderr or f"mpifort ended with {done.returncode}"
        fresh.rename(target)
        return ""

    def program(self, folder: str, name: str) -> tuple[Path, str]:
        form = folder.partition("/")[0]
        home, target = self.tests / folder, self.out / folder / name
        sources = self.sources(folder, name)
        if missing := [source.name for source in sources if not source.exists()]:
            return target, f"there is no {', '.join(missing)}: a script in Perl makes it, and Perl is missing"
        (self.out / folder).mkdir(parents=True, exist_ok=True)
        in_c = [source for source in sources if source.suffix == ".c"]
        if in_c == sources:
            return super().program(folder, name)
        if self.complaints[form]:
            return target, self.complaints[form]
        objects = [self.out / "util" / f"mtest_{form}.o"]
        for source in in_c:
            part = self.out / folder / f"{name}-{source.stem}.o"
            # It names the configuration's header by a path from its own folder.
            if complaint := self.compile([source], part, ["-c", f"-I{self.out / folder}"]):
                return target, complaint
            objects.append(part)
        rest = [source for source in sources if source not in in_c]
        return target, self.fortran([*rest, *objects], target, [f"-I{home}", f"-I{self.out / folder}", f"-I{self.out / ATTRIBUTES}"])

    def sources(self, folder: str, name: str) -> list[Path]:
        home, rules = self.tests / folder, self.rules(self.tests / folder)
        suffix = ".f" if folder.startswith("f77/") else ".f90"
        listed = rules.get(f"{name}_SOURCES") or rules.get(f"nodist_{name}_SOURCES")
        found = []
        for source in (listed or name + suffix).split():
            places = (home / source, home.parent.parent / "f90" / home.name / source, home.parent.parent / "f77" / home.name / source)
            found.append(next((place for place in places if place.exists()), self.generated(folder) / source))
        return found

    def generated(self, folder: str) -> Path:
        """A folder of the programs that MPICH's script makes of a template of this folder."""
        home, made = self.tests / folder, self.out / folder / "generated"
        if not folder.endswith("/io") or not shutil.which("perl"):
            return made
        with self.generating:
            if not made.exists():
                self.generate(home, made)
        return made

    def generate(self, home: Path, final: Path) -> None:
        made = final.with_suffix(".part")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        script = made / "testmerge"
        script.write_text(filled_in((self.tests / "maint/testmerge.in").read_text()))
        for name in ("ioharness.defn", "ioharness.tlt"):
            own, of_f77 = home / name, self.tests / "f77/io" / name
            (made / name).write_text(own.read_text() if own.exists() else free_form(of_f77.read_text()))
        subprocess.run(["perl", script, f"-defn={self.tests / 'maint/common.defn'}", "ioharness.defn", "ioharness.tlt"], cwd=made,
                       capture_output=True, check=True)
        made.rename(final)
