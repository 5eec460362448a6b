#!/usr/bin/env python3
"""Run every command that the documents show.

    tests/docs/run.py [FILE...]

A command is a line of a ```sh block in README.md or docs/*.md, run from the repository's root. `make demo` and `make test`
are left out here: the one is run by the target that calls this script, the other calls it. Where the machine of
scripts/verbs-vm cannot be started (status 125), its commands are not run, and this is said. The last line is
`N passed, N failed`.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
ELSEWHERE = ("make demo", "make test")
MACHINE, NO_MACHINE = "scripts/verbs-vm ", 125


def commands(document: Path):
    for block in re.findall(r"^```sh\n(.*?)^```", document.read_text(), re.M | re.S):
        yield from (line for line in block.splitlines() if line.strip() and not line.startswith(ELSEWHERE))


def main() -> int:
    documents = [Path(name) for name in sys.argv[1:]] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    passed = failed = 0
    for document in documents:
        for command in commands(document):
            done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=600)
            if done.returncode == 0:
                passed += 1
                continue
            if command.startswith(MACHINE) and done.returncode == NO_MACHINE:
                print(f"*** {document.name}: NOT RUN: `{command}`: {done.stderr.strip()} ***")
                continue
            failed += 1
            print(f"{document.name}: `{command}` ended with {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
