#!/usr/bin/env python3
"""Runs every command that the documents show.

    tests/docs/run.py [--only TEXT] [--list] [FILE...]

A command is a line of a ```sh block in README.md or docs/*.md, run from the repository's root. `make demo` and `make test` are left
out: both stage the tree that is under test, and `make test` runs this script. A command that needs the machine of scripts/verbs-vm
is skipped where that cannot start (status 125). The last line is `N passed, N failed, N skipped`.
"""

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402

ELSEWHERE = ("make demo", "make test")
MACHINE, NO_MACHINE = "scripts/verbs-vm ", 125
SECONDS = 600


def commands(document: Path):
    for block in re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.M | re.S):
        yield from (line for line in block.splitlines() if line.strip() and not line.startswith(ELSEWHERE))


def runs(command: str):
    def test(_world) -> None:
        done = harness.run(["bash", "-c", command], seconds=SECONDS, cwd=harness.ROOT)
        if command.startswith(MACHINE) and done.code == NO_MACHINE:
            raise Skip(" ".join(done.err.split()))
        if done.code != 0:
            raise Problem(f"exit status {done.code}{harness.output(done.out + done.err)}")
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_case_options(parser)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    options = parser.parse_args()
    documents = options.files or [harness.ROOT / "README.md", *sorted((harness.ROOT / "docs").glob("*.md"))]
    cases = [Case(f"{document.name}: {command}", runs(command)) for document in documents for command in commands(document)]
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if not cases:
        sys.exit("the documents show no such command")
    return harness.run_suite("documents", cases)


if __name__ == "__main__":
    sys.exit(main())
