#!/usr/bin/env python3
"""Draws documented items and heads of files, to be judged by a reader who does not know the code.

    measurements/clarity/run.py [--count 60] [--seed N] [FILE...]

From the sources of the crates, tests left out, or from FILE, this many items with a comment (functions, types, fields, variants, constants, macros)
and this many files with a head are drawn, each with file, line and text, an item with its first line of code. The question is the same for each: does
it say at first reading what the thing is, without words that only this project uses and without its neighbours? The seed that is printed repeats the
draw while the sources do not change.
"""

import argparse
import random
import re
import sys
import time
from pathlib import Path
from typing import Iterator, List, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402

# Folders and files of tests.
TESTS = ("tests", "test_", "suite", "fuzz", "checks", "loom_tests.rs")
# The start of a module of tests inside a file.
TEST_MODULE = re.compile(r"\s*(pub(\(\w+\))? )?mod \w*tests? \{")
WIDTH = 150


class Comment(NamedTuple):
    file: str
    line: int
    text: List[str]
    # The first line of the item's code; empty for the head of a file.
    code: str

    def __str__(self) -> str:
        lines = ["   " + line for line in self.text]
        return "\n".join([f"{self.file}:{self.line}", *lines] + ([f"   | {self.code[:WIDTH]}"] if self.code else []))


def sources() -> List[Path]:
    """Files of the crates without those of tests."""
    files = sorted(harness.ROOT.glob("crates/*/*/src/**/*.rs"))
    return [file for file in files if not any(part.startswith(TESTS) or part.endswith("tests.rs") for part in file.relative_to(harness.ROOT).parts)]


def code_below(lines: List[str], at: int) -> str:
    """The first line of code from `at` on: attributes and plain comments are passed over."""
    depth = 0
    for line in (line.strip() for line in lines[at:]):
        opens = depth == 0 and line.startswith("#")
        if opens or depth > 0:
            depth += line.count("[") - line.count("]")
        elif line and not line.startswith("//"):
            return line
    return ""


def head(name: str, lines: List[str]) -> Iterator[Comment]:
    """The comment in `//!` that begins the file."""
    text = []
    for line in lines:
        if not line.startswith("//!"):
            break
        text.append(line[3:].strip())
    if text:
        yield Comment(name, 1, text, "")


def items(name: str, lines: List[str]) -> Iterator[Comment]:
    """The comments in `///`, each with the code that it documents, outside modules of tests."""
    at, closing = 0, None
    while at < len(lines):
        line = lines[at]
        if closing is not None:
            closing = None if line.rstrip() == closing else closing
        elif TEST_MODULE.match(line):
            closing = line[:len(line) - len(line.lstrip())] + "}"
        elif line.lstrip().startswith("///"):
            began = at
            while at < len(lines) and lines[at].lstrip().startswith("///"):
                at += 1
            yield Comment(name, began + 1, [line.lstrip()[3:].strip() for line in lines[began:at]], code_below(lines, at))
            continue
        at += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="how many items, and how many heads")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    heads, documented = [], []
    for file in sorted(file.resolve() for file in options.files) or sources():
        name, lines = str(file.relative_to(harness.ROOT)), file.read_text().splitlines()
        heads += head(name, lines)
        documented += items(name, lines)
    print(f"SEED={options.seed}")
    for title, comments in (("items", documented), ("heads", heads)):
        print(f"\n{title}: {min(options.count, len(comments))} of {len(comments)}")
        for number, comment in enumerate(sorted(chance.sample(comments, min(options.count, len(comments)))), 1):
            print(f"\n{number:3} {comment}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
