#!/usr/bin/env python3
"""Draws faults: one changed line of production code each, and says which test finds it.

    tests/mutants/draw.py [--count 10 | --each-suite | --suite NAME...] [--seed N] [--seconds N] [--list] [FILE...]

A file is drawn with a weight of its lines, or from FILE; with --each-suite, one from the files that each suite of `make test-ci` protects,
with --suite from those of the suites that are named. Then one of its lines is drawn that an operator fits: a comparison, a limit or a sign
turned over, a condition negated, a constant one too high, nothing returned, a statement left out. The fault is planted in a copy of the
tree (build/mutants), and tests/affected.py runs there for the file: what `make test-for` would find. A change that does not compile is
drawn again. The seed that is printed repeats the series; --list shows its changes alone.

Each fault is compiled alone, which takes most of the time. schemata.py compiles many at once.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
from run import TREE, copy_tree  # noqa: E402
from suite_table import other_suites, preparation, rust_suites  # noqa: E402

TARGET = harness.ROOT / "build/mutants-target"
# What is turned over, and its replacement.
OPERATORS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "), (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ 1\b", ""), (r" - 1\b", ""), (r" \+ ", " - "), (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\bif (?!let\b)(.*) \{$", r"if !(\1) {"),
    (r"\.min\(", ".max("), (r"\.max\(", ".min("), (r"(?<![\w.])([1-9]\d*)(?![\w.])", lambda number: str(int(number[1]) + 1)),
    (r"^(\s+)(return )?Some\(.*\)(;?)$", r"\1\2None\3"), (r"^(\s+)self\.[^=]*\);$", r"\1;"), (r"0\.\.", "1.."),
]
# Builds for what the code does, not for how fast.
FAST_TESTS = {"CARGO_INCREMENTAL": "1", "CARGO_PROFILE_DEV_DEBUG": "0", "CARGO_PROFILE_TEST_DEBUG": "0"}
FAST_LIBRARY = {"CARGO_PROFILE_LIB_LTO": "off", "CARGO_PROFILE_LIB_CODEGEN_UNITS": "8"}
# The suite that counts instructions: its figures are those of the library as it is installed.
COUNTS = "counts"
# The status of timeout(1).
TIME_IS_UP = 124
# What begins no statement.
NO_STATEMENT = ('"', "const ", "fn ", "trait ", "impl ", "where ", "dyn ")
# Faults of one file and line that are tried before another is drawn.
TRIES = 40


@dataclass(frozen=True)
class Fault:
    """A line of a file, which the name gives from the tree's root, and the line that replaces it."""

    name: str
    line: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.name}:{self.line + 1}: {self.old.strip()} -> {self.new.strip()}"

    @property
    def crate(self) -> str:
        return Path(self.name).parts[2]

    def planted(self, text: str) -> str:
        lines = text.split("\n")
        lines[self.line] = self.new
        return "\n".join(lines)


def production(file: Path) -> str:
    """The part of a file before its tests."""
    return file.read_text().split("\n#[cfg(test)]")[0]


def sources() -> list[Path]:
    """Files of production code."""
    files = sorted(harness.ROOT.glob("crates/*/*/src/**/*.rs"))
    names = ("tests", "suite", "fuzz", "checks", "loom_tests.rs", "test_device.rs")
    files = [file for file in files if not any(part.startswith(names) or part.endswith("tests.rs") for part in file.relative_to(harness.ROOT).parts)]
    # A module of tests has them outside of any #[cfg(test)].
    return [file for file in files if "\n#[test]" not in production(file)]


def of_suites(files: list[Path]) -> dict[str, list[Path]]:
    """The files of production code that each suite of `make test-ci` protects, where it protects any."""
    steps = [step for step in [*preparation(False), *rust_suites(), *other_suites(False)] if step.is_suite and not step.long]
    protected = {step.name: [file for file in files if str(file.relative_to(harness.ROOT)).startswith(step.protects)] for step in steps}
    return {name: chosen for name, chosen in protected.items() if chosen}


def changes(file: Path) -> list[Fault]:
    """Lines of the file with a replacement each."""
    found, name = [], str(file.relative_to(harness.ROOT))
    for number, line in enumerate(production(file).split("\n")):
        if line.lstrip().startswith(("//", "#", "use ", "assert", "debug_assert")) or any(word in line for word in NO_STATEMENT):
            continue
        for pattern, replacement in OPERATORS:
            if re.search(pattern, line):
                found.append(Fault(name, number, line, re.sub(pattern, replacement, line, count=1)))
    return found


def drawn(chance: random.Random, files: list[Path]) -> Fault:
    while True:
        file = chance.choices(files, weights=[len(file.read_text().splitlines()) for file in files])[0]
        if fitting := changes(file):
            return chance.choice(fitting)


def environment() -> dict:
    return os.environ | FAST_TESTS | {"CARGO_TARGET_DIR": str(TARGET), "SEEDS": os.environ.get("SEEDS", "50")}


def compiles(fault: Fault) -> bool:
    return subprocess.run(["cargo", "check", "--quiet", "-p", fault.crate], cwd=TREE, env=environment(), capture_output=True).returncode == 0


def finds(fault: Fault, seconds: float) -> str | None:
    """The test or suite that fails, or what had run when time was up."""
    is_counted = any(str(file.relative_to(harness.ROOT)) == fault.name for file in of_suites(sources()).get(COUNTS, []))
    command = ["timeout", str(seconds), "nice", "-n", "19", sys.executable, "-u", "tests/affected.py", fault.name]
    ran = subprocess.run(command, cwd=TREE, env=environment() | ({} if is_counted else FAST_LIBRARY), capture_output=True, text=True, errors="replace")
    if ran.returncode == TIME_IS_UP:
        return "undecided"
    failed = re.findall(r"^(.*): FAILED$", ran.stdout, re.M)
    return failed[-1] if ran.returncode != 0 and failed else None


def alone(chance: random.Random, files: list[Path], seconds: float) -> tuple[Fault, str | None]:
    """Plants a fault of these files alone. Returns it with what finds it."""
    for _ in range(TRIES):
        fault = drawn(chance, files)
        planted, text = Path(TREE, fault.name), Path(harness.ROOT, fault.name).read_text()
        planted.write_text(fault.planted(text))
        try:
            if compiles(fault):
                return fault, finds(fault, seconds)
        finally:
            planted.write_text(text)
    sys.exit(f"of {TRIES} faults none compiles")


def options_of(parser: argparse.ArgumentParser, seconds: float) -> argparse.Namespace:
    """The command line, with options that every way to plant faults has."""
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=seconds, help=f"the longest time of one run of tests ({seconds:g}); beyond it, the fault is undecided")
    parser.add_argument("--list", action="store_true", help="show the changes and try none")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args()
    print(f"SEED={options.seed}", flush=True)
    options.files = [file.resolve() for file in options.files] or sources()
    return options


def row(number: int, found: str | None, began: float, fault: Fault) -> None:
    print(f"{number:3} {found or 'NOT FOUND':30} {time.monotonic() - began:5.0f} s  {fault}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--count", type=int, default=10)
    extent.add_argument("--each-suite", action="store_true", help="one fault for each suite, in a file that it protects")
    extent.add_argument("--suite", action="append", default=[], metavar="NAME", help="one fault in a file that this suite protects")
    options = options_of(parser, 3600)
    suites, chance = of_suites(options.files), random.Random(options.seed)
    if unknown := set(options.suite) - set(suites):
        parser.error(f"{', '.join(unknown)}: no suite of `make test-ci` that protects such files")
    series = [suites[name] for name in options.suite or suites] if options.each_suite or options.suite else [options.files] * options.count
    if options.list:
        print(*(drawn(chance, files) for files in series), sep="\n")
        return 0
    copy_tree()
    missed = undecided = 0
    for number, files in enumerate(series, 1):
        began = time.monotonic()
        fault, found = alone(chance, files, options.seconds)
        missed, undecided = missed + (found is None), undecided + (found == "undecided")
        row(number, found, began, fault)
    print(f"{missed} of {len(series)} faults were not found, {undecided} undecided")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
