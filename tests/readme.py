#!/usr/bin/env python3
"""Writes README.md of this folder from suite_table.py, times.json and the heads of the scripts.

    tests/readme.py [--check]     --check: says whether it is up to date, and whether `make` knows all suites
"""

import argparse
import ast
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import times  # noqa: E402
from suite_table import all_suites, other_suites, preparation, rust_suites  # noqa: E402

PAGE, MAKE = HERE / "README.md", harness.ROOT / "mk/test.mk"
MEASUREMENTS = harness.ROOT / "measurements"
# What a contributor changes, and what finds a fault there, in the order in which to run it.
CHANGES = [
    ("a procedure's arguments or errors (`crates/faces/abi`)", "`cargo test -p abi`, then `make programs`, `make mpich`, `make mpi4py`"),
    ("one-sided communication, as a displacement of `MPI_Win_create` (`crates/library/mpi/src/window`)",
     "`cargo test -p mpi --test it windows`, then `python3 tests/programs/run.py --prefix build --only windows`, `make mpich`"),
    ("point-to-point messages (`crates/library/mpi/src/p2p`)", "`cargo test -p mpi`, then `make programs`, `make counts`"),
    ("an algorithm of a collective (`crates/library/mpi/src/coll`)", "`cargo test -p mpi`, then `make figures`, `make choice`"),
    ("datatypes (`crates/base/datatype`)", "`cargo test -p datatype`, then `make programs`, `make mpich`"),
    ("files (`crates/library/file_io`, `mpi/src/file`)", "`cargo test -p file_io -p mpi`, then `make loom`, `make programs`"),
    ("rings, doorbells, waits (`crates/library/channel`)", "`cargo test -p channel`, `make loom`, then `make counts`, `make robust`"),
    ("rails and failover (`channel/src/rdma`)", "`cargo test -p channel`, `make mutants`, `make rails`, then `make tcp`, `make test-verbs`"),
    ("a device (`crates/devices`)", "`cargo test -p tcp -p verbs`, then `make tcp`, `make test-verbs`"),
    ("the model (`crates/machines`)", "`cargo test -p model -p fabric -p sim`, then `make figures`, `make scores`"),
    ("the launcher (`crates/job`)", "`cargo test -p launch -p pmi`, then `make robust`, `make launchers`, `make messages`"),
    ("old ABIs (`crates/faces/*_abi`)", "`make abis`, `make binaries`"),
    ("Fortran (`crates/faces/fortran*`)", "`make fortran`, `make mpich-gfortran`"),
    ("`compare`, `study`, `bench` (`crates/answers`)", "`cargo test -p CRATE`, then `make figures`, `make speed-ups`, `make documents`"),
    ("a page (`docs/`, README.md)", "`python3 tests/documents/run.py --only PAGE`"),
    ("anything else", '`make test-for FILES="FILE..."`'),
]


def head(script: Path) -> str:
    """The first line of a script's head."""
    said = ast.get_docstring(ast.parse(script.read_text())) or ""
    return said.splitlines()[0] if said else ""


def folder(name: str) -> str:
    """The folder of a suite or of a variant of it."""
    while not (HERE / name / "run.py").exists():
        name, _, _ = name.rpartition("-")
    return name


def places(protects: tuple) -> str:
    return ", ".join(f"`{place}`" for place in protects)


def suites() -> list[str]:
    in_ci = {step.name for step in [*preparation(False), *rust_suites(), *other_suites(False)] if step.is_suite and not step.long}
    first = {step.name for step in [*preparation(False), *other_suites(False)] if step.first}
    lines = ["| suite | subject | it protects | in | seconds |", "| --- | --- | --- | --- | ---: |"]
    known = times.kept()
    for step in sorted(all_suites(), key=lambda step: step.name):
        runs = "test" if step.name in first else "test-ci" if step.name in in_ci else "test-all"
        seconds = known.get(step.name, {}).get("seconds", "")
        lines.append(f"| [{step.name}]({folder(step.name)}/run.py) | {step.subject} | {places(step.protects)} | `make {runs}` | {seconds} |")
    return lines


def shared() -> list[str]:
    return [f"| [{script.name}]({script.name}) | {head(script)} |" for script in sorted(HERE.glob("*.py"))]


def measurements() -> list[str]:
    scripts = sorted(MEASUREMENTS.glob("*/*.py"))
    return [f"| [{script.relative_to(MEASUREMENTS)}](../{script.relative_to(harness.ROOT)}) | {head(script)} |" for script in scripts if "main" in script.read_text()]


def page() -> str:
    return "\n".join([
        "# Tests", "",
        "*Written by `tests/readme.py` from suite_table.py, times.json and the heads of the scripts.*", "",
        "A suite is a folder with the script `run.py`; `make NAME` brings the installed tree in `build/` up to date and runs it. `make test` is the first check of a machine, "
        "`make test-ci` protects the main branch, `make test-all` runs every suite in full. Seconds are those of one run on two cores, in `make test-ci` where the suite belongs to it.", "",
        "## If you change", "", "| change | run |", "| --- | --- |", *(f"| {change} | {run} |" for change, run in CHANGES), "",
        "## Suites", "", *suites(), "",
        "## One case", "",
        "`python3 tests/SUITE/run.py --prefix build --list` names the cases of a suite, and `--only TEXT` runs those whose name contains the text. One test in Rust: "
        "`cargo test -p CRATE NAME`. A failed simulation prints its seed, and `SEED=n` before the command repeats it.", "",
        "## Faults", "",
        "`make faults` draws thirty faults in production code, at least one for each suite of `make test-ci`, compiles them at once, each with a switch, and says which test "
        "finds each ([schemata.py](mutants/schemata.py)). `tests/mutants/draw.py` plants one after the other ([draw.py](mutants/draw.py)), and `make mutants` removes each rule of "
        "failover in turn ([run.py](mutants/run.py)). A printed seed repeats a series.", "",
        "## Shared parts", "", "| module | subject |", "| --- | --- |", *shared(), "",
        "## Measurements", "",
        "They give figures, not verdicts, and belong to no suite: `../measurements`. `make measurements` lists them.", "",
        "| script | subject |", "| --- | --- |", *measurements(), "",
    ])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check:
        PAGE.write_text(page())
        return 0
    wrong = []
    if PAGE.read_text() != page():
        wrong.append("tests/README.md is not what tests/readme.py writes: run it")
    listed = set(re.search(r"^SUITES := (.*)$", MAKE.read_text(), re.M)[1].split())
    if listed != (names := {step.name for step in all_suites()}):
        wrong.append(f"SUITES in mk/test.mk and the table in tests/suite_table.py differ: {', '.join(sorted(listed ^ names))}")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
