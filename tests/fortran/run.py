#!/usr/bin/env python3
"""Builds the Fortran programs of this folder with each compiler that is installed, with checks and optimised, and runs them.

    tests/fortran/run.py [--prefix build] [--only SUBSTRING] [--through COMMAND] [--list]

`every` (every.py) calls each procedure by both modules, by its names of the profiling interface, with large counts and by mpif.h, over a
library that checks what arrives in C. A program is one `.f` (fixed form) or `.f90` file, with a C file of its name if it has parts in C. It prints ` ok` on one rank, and exits
with 0. The modules are built from the sources of the prefix, once for each compiler. With `--through`, the compiler is one for aarch64.
"""

import argparse
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import every  # noqa: E402
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

SECONDS = 60
# Programs that run on another number of ranks than two.
RANKS = {"f77_conversions": 4, "mpi_collectives": 3, "f08_collectives": 3}


@dataclass(frozen=True)
class Compiler:
    name: str
    command: str
    # Options of each variant.
    variants: dict
    # The option before the folder for module files.
    modules: str
    # What the probe prints.
    word: str
    # Options for a program that calls one procedure with different types, without an interface.
    legacy: tuple = ()
    # The compiler for parts in C.
    in_c: str = "cc"

    def label(self, variant: str) -> str:
        return f"{self.name} {variant}"


COMPILERS = [
    Compiler("gfortran", "gfortran",
             {"checked": ["-O0", "-g", "-fcheck=all"], "optimised": ["-O3"], "sanitized": ["-O1", "-g", "-fsanitize=address"]},
             "-J", "descriptors", ("-fallow-argument-mismatch", "-w")),
    Compiler("flang-19", "/usr/lib/llvm-19/bin/flang-new", {"checked": ["-O0"], "optimised": ["-O3"]}, "-module-dir", "descriptors", ("-w",)),
]


# Of another kind of processor. Its emulator has no sanitizer.
CROSS = [replace(COMPILERS[0], name="gfortran-aarch64", command="aarch64-linux-gnu-gfortran", in_c="aarch64-linux-gnu-gcc",
                 variants={name: words for name, words in COMPILERS[0].variants.items() if name != "sanitized"})]


def installed(compilers: list[Compiler]) -> list[Compiler]:
    return [compiler for compiler in compilers if shutil.which(compiler.command)]


def build(arguments: list, folder: Path) -> None:
    done = subprocess.run([str(word) for word in arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(f"does not compile: {' '.join(map(str, arguments))}{harness.output(done.stdout + done.stderr)}")


@dataclass
class World:
    prefix: Path
    # The command that runs programs for another kind of processor.
    through: list

    @property
    def sources(self) -> Path:
        return self.prefix / "share" / "fishplate" / "fortran"

    def folder(self, compiler: Compiler) -> Path:
        folder = self.prefix.absolute() / "tests" / "fortran" / compiler.name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def probe(self, compiler: Compiler) -> str:
        """What the probe prints with a compiler: the word behind the sources that are for it."""
        folder, sources = self.folder(compiler), self.sources.absolute()
        build([compiler.in_c, "-c", sources / "probe.c", "-o", folder / "probe-c.o"], folder)
        build([compiler.command, compiler.modules, folder, sources / "probe.f90", folder / "probe-c.o", "-o", folder / "probe"], folder)
        return subprocess.run([*self.through, folder / "probe"], capture_output=True, text=True).stdout.strip() or "plain"

    def names(self, word: str) -> list[str]:
        """The names of the sources for compilers with this word."""
        lines = [line.split() for line in (self.sources / "sources").read_text().splitlines()]
        return [words[0] for words in lines if words[1:] in ([], [word])]

    def objects(self, compiler: Compiler) -> list[Path]:
        return [self.folder(compiler) / (Path(name).stem + ".o") for name in self.names(compiler.word)]

    def modules(self, compiler: Compiler, word: str) -> list[Path]:
        """The objects of the modules, whose files lie beside them."""
        folder, objects = self.folder(compiler), []
        for name in self.names(word):
            source, target = (self.sources / name).absolute(), folder / (Path(name).stem + ".o")
            build([compiler.command, "-O1", compiler.modules, folder, "-I", folder, "-c", source, "-o", target], folder)
            objects.append(target)
        return objects


def sources() -> list[Path]:
    return sorted([*HERE.glob("*.f"), *HERE.glob("*.f90")])


def module_case(compiler: Compiler):
    def test(world: World) -> None:
        # The modules without descriptors are valid, too; those with them stay for the programs.
        world.modules(compiler, "plain")
        (world.folder(compiler) / "mpi_f08_plain.o").unlink()
        word = world.probe(compiler)
        world.modules(compiler, word)
        if word != compiler.word:
            raise Problem(f"the probe prints {word}, not {compiler.word}")
    return test


def program_case(source: Path, compiler: Compiler, variant: str):
    def test(world: World) -> None:
        folder = world.folder(compiler)
        program = folder / f"{source.stem}-{variant}"
        objects = world.objects(compiler)
        in_c = source.with_suffix(".c")
        if in_c.exists():
            part = folder / f"{source.stem}-{variant}-c.o"
            build([world.prefix.absolute() / "bin" / "mpicc", f"-cc={compiler.in_c}", "-O1", "-Wall", "-c", in_c, "-o", part], folder)
            objects.append(part)
        library = world.prefix.absolute() / "lib"
        build([compiler.command, *compiler.variants[variant], "-I", folder, "-I", world.sources.absolute(), source, *objects, "-o", program,
               "-L", library, "-lmpifort_abi", "-lmpi_abi", f"-Wl,-rpath,{library}"], folder)
        # The C library keeps memory as long as a process lives.
        ran = harness.launch(world.prefix, RANKS.get(source.stem, 2), [*world.through, program], seconds=SECONDS, env={"ASAN_OPTIONS": "detect_leaks=0"})
        if ran.code != 0 or sum(line.strip() == "ok" for line in ran.out.splitlines()) != 1:
            raise Problem(f"exit code {ran.code}{harness.output(ran.out + ran.err)}")
    return test


def every_case(form: str, compiler: Compiler, variant: str):
    def test(world: World) -> str:
        folder, library = world.folder(compiler) / "every", world.prefix.absolute() / "lib"
        folder.mkdir(exist_ok=True)
        (folder / "library.c").write_text(every.library())
        name = form.replace(" ", "-")
        source, program = folder / f"{name}.f90", folder / f"{name}-{variant}"
        source.write_text(every.program(every.FORMS[form]))
        stand_in = folder / "libmpi_abi.so.1"
        build([compiler.in_c, "-shared", "-fPIC", "-Wall", "-Werror", "-DFISHPLATE_NO_FORTRAN_NAMES", "-I", world.prefix.absolute() / "include",
               "library.c", f"-Wl,-soname,{stand_in.name}", "-o", stand_in], folder)
        build([compiler.command, *compiler.variants[variant], *compiler.legacy, "-I", world.folder(compiler),
               "-I", world.sources.absolute(), source, *world.objects(compiler), "-o", program, "-L", library, "-lmpifort_abi", stand_in],
              folder)
        ran = harness.run([*world.through, program], seconds=SECONDS, env={"LD_LIBRARY_PATH": f"{folder}:{library}"})
        lines = [line.strip() for line in ran.out.splitlines()]
        if ran.code != 0 or lines[-1:] != ["ok"]:
            raise Problem(f"exit code {ran.code}{harness.output(ran.out + ran.err)}")
        return lines[0]
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--through", default="", metavar="COMMAND", help="what runs a program built for aarch64")
    options = parser.parse_args()
    compilers = installed(CROSS if options.through else COMPILERS)
    if not compilers:
        wanted = "aarch64-linux-gnu-gfortran" if options.through else "gfortran, flang-19"
        return harness.not_run("fortran", f"no Fortran compiler is installed ({wanted})")
    cases = []
    for compiler in compilers:
        cases.append(Case(f"{compiler.name} modules", module_case(compiler)))
        for variant in compiler.variants:
            label = compiler.label(variant)
            if variant != "sanitized":
                cases += [Case(f"{label} every {form}", every_case(form, compiler, variant)) for form in every.FORMS]
            cases += [Case(f"{label} {source.stem}", program_case(source, compiler, variant)) for source in sources()]
    # The modules are those that the programs are built with, so they are built in any case.
    cases = [case for case in cases if case.wanted(options) or case.name.endswith(" modules")]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    world = World(harness.checked_prefix(options.prefix), shlex.split(options.through))
    return harness.run_suite("fortran-aarch64" if options.through else "fortran", cases, world)


if __name__ == "__main__":
    sys.exit(main())
