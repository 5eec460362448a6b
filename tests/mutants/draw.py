#!/usr/bin/env python3
"""Draws faults: one changed line of production code each, and says which test finds it.

    tests/mutants/draw.py [--count 10 | --each-suite] [--seed N] [--seconds N] [--list] [FILE...]

A file is drawn with a weight of its lines, or from FILE; with --each-suite, one from the files that each suite of `make test-ci` protects.
Then one of its lines is drawn that an operator fits: a comparison, a limit or a sign turned over, a condition negated, a constant one too
high, nothing returned, a statement left out. The fault is planted in a copy of the tree (build/mutants), and tests/affected.py runs there
for the file: what `make test-for` would find. A change that does not compile is drawn again. The seed that is printed repeats the series;
--list shows its changes alone.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
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
# The library is built anew for most faults: for what it does, not for how fast.
FAST = {"CARGO_PROFILE_LIB_LTO": "off", "CARGO_PROFILE_LIB_CODEGEN_UNITS": "8", "CARGO_INCREMENTAL": "1", "CARGO_PROFILE_DEV_DEBUG": "0",
        "CARGO_PROFILE_TEST_DEBUG": "0"}
# The status of timeout(1).
TIME_IS_UP = 124
# What begins no statement.
NO_STATEMENT = ('"', "const ", "fn ", "trait ", "impl ", "where ", "dyn ")
# Faults of one file and line that are tried before another is drawn.
TRIES = 40


def sources() -> list[Path]:
    """Files of production code."""
    files = sorted(harness.ROOT.glob("crates/*/*/src/**/*.rs"))
    names = ("tests", "suite", "fuzz", "checks", "loom_tests.rs", "test_device.rs")
    return [file for file in files if not any(part.startswith(names) or part.endswith("tests.rs") for part in file.relative_to(harness.ROOT).parts)]


def of_suites(files: list[Path]) -> list[list[Path]]:
    """The files of production code that each suite of `make test-ci` protects, where it protects any."""
    steps = [step for step in [*preparation(False), *rust_suites(), *other_suites(False)] if step.is_suite and not step.long]
    protected = [[file for file in files if str(file.relative_to(harness.ROOT)).startswith(step.protects)] for step in steps]
    return [chosen for chosen in protected if chosen]


def changes(file: Path) -> list[tuple[int, str]]:
    """Lines of the file with a replacement each."""
    found = []
    for number, line in enumerate(file.read_text().split("\n#[cfg(test)]")[0].splitlines()):
        if line.lstrip().startswith(("//", "#", "use ", "assert", "debug_assert")) or any(word in line for word in NO_STATEMENT):
            continue
        for pattern, replacement in OPERATORS:
            if re.search(pattern, line):
                found.append((number, re.sub(pattern, replacement, line, count=1)))
    return found


def drawn(chance: random.Random, files: list[Path]) -> tuple[Path, int, str]:
    """A file, the number of a line and the line that replaces it."""
    while True:
        file = chance.choices(files, weights=[len(file.read_text().splitlines()) for file in files])[0]
        if fitting := changes(file):
            return file, *chance.choice(fitting)


def compiles(file: str) -> bool:
    crate = Path(TREE, file).relative_to(TREE).parts[2]
    environment = os.environ | FAST | {"CARGO_TARGET_DIR": str(TARGET)}
    return subprocess.run(["cargo", "check", "--quiet", "-p", crate], cwd=TREE, env=environment, capture_output=True).returncode == 0


def finds(file: str, seconds: float) -> str | None:
    """The test or suite that fails, or what had run when time was up."""
    environment = os.environ | FAST | {"CARGO_TARGET_DIR": str(TARGET), "SEEDS": os.environ.get("SEEDS", "50")}
    command = ["timeout", str(seconds), sys.executable, "-u", "tests/affected.py", file]
    ran = subprocess.run(command, cwd=TREE, env=environment, capture_output=True, text=True, errors="replace")
    if ran.returncode == TIME_IS_UP:
        return "undecided"
    failed = re.findall(r"^(.*): FAILED$", ran.stdout, re.M)
    return failed[-1] if ran.returncode != 0 and failed else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--count", type=int, default=10)
    extent.add_argument("--each-suite", action="store_true", help="one fault for each suite, in a file that it protects")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--seconds", type=float, default=3600, help="the longest time of one fault; beyond it, the fault is undecided")
    parser.add_argument("--list", action="store_true", help="show the changes and try none")
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args()
    files, chance = [file.resolve() for file in options.files] or sources(), random.Random(options.seed)
    print(f"SEED={options.seed}", flush=True)
    if not options.list:
        copy_tree()
    missed = undecided = 0
    series = of_suites(files) if options.each_suite else [files] * options.count
    for number, among in enumerate(series):
        for _ in range(TRIES):
            file, line, replacement = drawn(chance, among)
            name, text = str(file.relative_to(harness.ROOT)), file.read_text()
            lines = text.splitlines(keepends=True)
            shown = f"{name}:{line + 1}: {lines[line].strip()} -> {replacement.strip()}"
            if options.list:
                print(shown)
                break
            planted = Path(TREE, name)
            planted.write_text("".join([*lines[:line], replacement + "\n", *lines[line + 1:]]))
            began = time.monotonic()
            if not compiles(name):
                planted.write_text(text)
                continue
            found = finds(name, options.seconds)
            planted.write_text(text)
            missed, undecided = missed + (found is None), undecided + (found == "undecided")
            print(f"{number + 1:3} {found or 'NOT FOUND':30} {time.monotonic() - began:5.0f} s  {shown}", flush=True)
            break
    if not options.list:
        print(f"{missed} of {len(series)} faults were not found, {undecided} undecided")
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
