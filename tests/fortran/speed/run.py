#!/usr/bin/env python3
"""Speed of the Fortran bindings: exchanges of 8 bytes beside those in C, sections of arrays beside packing by hand and MPICH's bindings,
and the building of the modules. It prints tables.

    tests/fortran/speed/run.py [--prefix build] [--fc gfortran] [--rounds 15] [--count 200000] [--peer PREFIX]

The machine should be otherwise idle. Runs alternate, and figures are medians of runs. `--peer` names a prefix with mpifort and mpiexec of
another library; without it Debian's MPICH is fetched and unpacked into build/foreign, for gfortran.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent.parent
sys.path.insert(0, str(TESTS))
import debian  # noqa: E402
import harness  # noqa: E402

# Forms of the exchange: C, and the words for mpifort.
FORMS = {"C": None, "mpif.h": [], "mpi_f08": ["-DF08"]}
CACHE = harness.ROOT / "build/foreign"


def peer(folder: Path) -> Path:
    """A prefix whose commands are Debian's MPICH, as it is packaged."""
    root = debian.installed(["mpich", "libmpich-dev"], CACHE / "mpich-debian", CACHE)
    libraries = next(root.glob("usr/lib/*-linux-gnu"))
    modules = next(root.glob("usr/lib/*-linux-gnu/fortran/*/mpich"))
    (folder / "bin").mkdir(parents=True)
    commands = {"mpifort": f'exec gfortran -I{root}/usr/include/{libraries.name}/mpich -I{modules} "$@" -L{libraries} '
                           f"-Wl,-rpath,{libraries},--disable-new-dtags -lmpichfort -lmpich",
                "mpiexec": f'LD_LIBRARY_PATH={libraries} exec {root}/usr/bin/mpiexec.hydra "$@"'}
    for name, text in commands.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    return folder


def figures(prefix: Path, ranks: int, program: Path, count: int) -> dict:
    ran = harness.launch(prefix, ranks, [program, count], seconds=300, env={"FISHPLATE_WAIT": "spin"})
    if ran.code != 0:
        sys.exit(f"{program.name} ended with {ran.code}{harness.output(ran.out + ran.err)}")
    return dict(line.split() for line in ran.out.splitlines())


def exchanges(prefix: Path, mpifort: list, folder: Path, options) -> None:
    programs = {form: folder / f"exchange-{number}" for number, form in enumerate(FORMS)}
    for form, words in FORMS.items():
        command = ([prefix / "bin/mpicc", "-O2", TESTS / "abis/latency.c"] if words is None else
                   [*mpifort, "-O2", *words, HERE / "exchange.F90"])
        subprocess.run([*command, "-o", programs[form]], cwd=folder, check=True)
    print(f"| ranks | exchange of 8 bytes | {' | '.join(f'{form}, ns' for form in FORMS)} | {' | '.join(f'{form}, more' for form in list(FORMS)[1:])} |")
    print(f"|{' --- |' * (1 + 2 * len(FORMS))}")
    for ranks in (1, 2):
        found = {form: [] for form in FORMS}
        for round_ in range(options.rounds):
            # Each comes first as often as the other.
            for form in list(FORMS) if round_ % 2 else reversed(FORMS):
                found[form].append(figures(prefix, ranks, programs[form], options.count))
        for name in found["mpi_f08"][0]:
            medians = [statistics.median(float(run[name]) for run in found[form]) for form in FORMS]
            more = [f"{median - medians[0]:+.1f}" for median in medians[1:]]
            print(f"| {ranks} | {name} | {' | '.join(f'{median:.1f}' for median in medians)} | {' | '.join(more)} |")


def sections(prefix: Path, mpifort: list, folder: Path, options) -> None:
    other = options.peer or peer(folder / "peer")
    libraries = {"Fishplate": (prefix, mpifort), "peer": (other, [other / "bin/mpifort"])}
    found = {}
    for name, (_, compiler) in libraries.items():
        subprocess.run([*compiler, "-O2", HERE / "section.f90", "-o", folder / f"section-{name}"], cwd=folder, check=True)
    for _ in range(options.rounds):
        for name, (where, _) in libraries.items():
            for row, figure in figures(where, 2, folder / f"section-{name}", 51).items():
                found.setdefault(row, {}).setdefault(name, []).append(figure)
    print("\n| 1 MiB of doubles | Fishplate, µs | other library, µs |\n| --- | ---: | ---: |")
    for row, by_library in found.items():
        cells = ["wrong" if "wrong" in runs else f"{statistics.median(map(float, runs)):.0f}" for runs in
                 (by_library.get(name, ["nan"]) for name in libraries)]
        print(f"| {row} | {' | '.join(cells)} |")


def modules(prefix: Path, compiler: str, folder: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([prefix / "bin/mpifort", f"-fc={compiler}", "-modules"], env=os.environ | {"MPIFORT_CACHE": str(folder / "cache")},
                   stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"\nThe modules for {compiler}: {took:.1f} s of processor time")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--fc", default="gfortran", metavar="COMPILER")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=200_000, help="exchanges of a run")
    parser.add_argument("--peer", type=Path, metavar="PREFIX")
    parser.add_argument("--only", default="", metavar="TEXT", help="exchanges, sections or modules")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    if not shutil.which(options.fc):
        sys.exit(f"there is no {options.fc}")
    mpifort = [prefix / "bin/mpifort", f"-fc={options.fc}"]
    with tempfile.TemporaryDirectory(prefix="fishplate-fortran-speed-") as work:
        folder = Path(work)
        if options.only in "modules":
            modules(prefix, options.fc, folder)
        if options.only in "exchanges":
            exchanges(prefix, mpifort, folder, options)
        if options.only in "sections":
            sections(prefix, mpifort, folder, options)


if __name__ == "__main__":
    main()
