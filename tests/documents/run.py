#!/usr/bin/env python3
"""Runs every command that the documents show, and follows their links.

    tests/documents/run.py [--only TEXT] [--list] [--long] [FILE...]

A command is a line of a ```sh block in README.md, CONTRIBUTING.md or a page of docs/, run from the repository's root. Other suites run some of them: commands
in the virtual machine of scripts/verbs-vm run in its one start (tests/verbs/shown.py). Studies and other commands of half a minute run with `--long`. `make demo`,
`make stage` and `make test` are left out: they stage the tree that is under test, and `make test` runs this script. Commands about Fortran are skipped
where no Fortran compiler is. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
sys.path.insert(0, str(HERE))
import links  # noqa: E402
import prose  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

MACHINE = "scripts/verbs-vm -- "
ELSEWHERE = ("make demo", "make stage", "make test", MACHINE)
# Ten seconds of work and more, with --long only: commands whose options a shorter command or another suite (robust, scores, kernels) tries, too.
LONG = ("build/bin/fishplate study ", "build/bin/fishplate fabric calibrate --from examples/measured/",
        "build/bin/fishplate bench allreduce -n 8 -m 8:64K --fabric qdr --ppn 4 --every-choice",
        "build/bin/fishplate bench latency -m 8:4M --fabric qdr --every-choice",
        "build/bin/fishplate bench latency -m 4K:64K --every-choice --rounds 3 --seconds 0.1",
        "build/bin/fishplate compare --fabrics qdr,fdr,edr --host haswell -n 8 build/cg S",
        "build/bin/fishplate compare --fabrics qdr,edr -n 8 build/cg S",
        "build/bin/fishplate compare --fabrics qdr,edr -n 8 build/heat-fortran",
        "build/bin/fishplate compare --fabrics qdr,2xqdr,fdr,edr -n 8,16 --record build/heat.traces",
        "build/bin/fishplate compare --fabrics qdr,edr -n 16 --json build/heat.traces",
        "build/bin/fishplate compare -q --fast --fabrics 2xqdr,fdr --host fdr")
# Studies that take seconds.
QUICK = ("build/bin/fishplate study score --congestion --only taurus --placements 1",)
# Documents whose sentences are measured: what a newcomer reads first.
PLAIN = ("README.md",)
# The time of a check, written by hand. tests/README.md has it, which is generated.
BY_HAND = r"make test\S*`? .*\d+ (?:to \d+ )?minutes|(?<!\w)\d+ (?:tests|suites|test files)\b"
# Commands with this need a Fortran compiler.
FORTRAN = ("mpifort", "heat-fortran")
# Time limits of a command and of a study; HPL alone takes minutes.
SECONDS, LONG_SECONDS = 600, 3000


def commands(document: Path):
    for block in re.findall(r"^ *```sh\n(.*?)^ *```", document.read_text(), re.M | re.S):
        yield from (line.strip() for line in block.splitlines() if line.strip())


def documents() -> list[Path]:
    return [harness.ROOT / "README.md", harness.ROOT / "CONTRIBUTING.md", *sorted((harness.ROOT / "docs").rglob("*.md"))]


def in_the_machine() -> list[str]:
    """The commands that run in the virtual machine, without the words that start it."""
    return [command.removeprefix(MACHINE) for document in documents() for command in commands(document) if command.startswith(MACHINE)]


def runs(command: str):
    def test(_world) -> None:
        if any(word in command for word in FORTRAN) and not any(map(shutil.which, harness.FORTRAN_COMPILERS)):
            raise Skip("no Fortran compiler here")
        seconds = LONG_SECONDS if command.startswith(LONG) else SECONDS
        done = harness.run(["bash", "-c", command], seconds=seconds, cwd=harness.ROOT)
        if done.code != 0:
            raise Problem(f"exit status {done.code}{harness.output(done.out + done.err)}")
    return test


def reads_well(document: Path):
    """Its sentences are short."""
    def test(_world) -> None:
        if why := prose.problem(document):
            raise Problem(why)
    return test


def states_no_times(_world) -> None:
    """README, CONTRIBUTING and `make help` state no times and counts of tests: those of tests/README.md are measured."""
    stated = {file: re.findall(BY_HAND, (harness.ROOT / file).read_text()) for file in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "Makefile")}
    if any(stated.values()):
        raise Problem(f"times or counts of tests, written by hand: {stated}")


def names_what_exists(_world) -> None:
    """The paths that CONTRIBUTING names in backquotes exist."""
    named = re.findall(r"`((?:crates|docs|tests|fuzz|include|examples|measurements|\.github)/[\w./-]+)`", (harness.ROOT / "CONTRIBUTING.md").read_text())
    if missing := [name for name in named if not (harness.ROOT / name).exists()]:
        raise Problem(f"these paths lead nowhere: {', '.join(missing)}")


def leads_somewhere(document: Path):
    """Its links lead to files and headings of the repository."""
    def test(_world) -> None:
        if wrong := links.broken(document):
            raise Problem(f"these links lead nowhere: {', '.join(wrong)}")
    return test


def linked() -> list[Path]:
    """The documents whose links are followed."""
    root = harness.ROOT
    return [*sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")), *sorted((root / "examples").rglob("*.md"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_case_options(parser)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--long", action="store_true", help="run the studies, too")
    options = parser.parse_args()
    left_out = ELSEWHERE if options.long else ELSEWHERE + LONG
    cases = [Case(f"{document.name}: {command}", runs(command)) for document in options.files or documents()
             for command in commands(document) if command in QUICK or not command.startswith(left_out)]
    cases += [Case(f"{document.name}: its sentences are short", reads_well(document)) for document in options.files or documents()
              if document.name in PLAIN]
    cases += [Case(f"{document.name}: its links lead somewhere", leads_somewhere(document)) for document in options.files or linked()]
    cases += [] if options.files else [Case("times of tests are measured", states_no_times), Case("CONTRIBUTING.md: its paths", names_what_exists)]
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if not cases:
        sys.exit("the documents show no such command")
    return harness.run_suite("documents", cases)


if __name__ == "__main__":
    sys.exit(main())
