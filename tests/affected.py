#!/usr/bin/env python3
"""Runs the tests and suites that protect files: `make test-for FILES="crates/library/mpi/src/window/machine/memory.rs"`.

    tests/affected.py [--list] FILE...

First the tests in Rust of the crates that have the files, then those of the crates that use these by name, then the suites whose entry in suite_table.py
names the files, the shortest first; the first failure ends it. The suites use the tree in build/, which is brought up to date before the first. --list says what would run and how
long each suite took last (times.json).
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import harness  # noqa: E402
import rust  # noqa: E402
import times  # noqa: E402
from suite_table import Step, all_suites, other_suites, preparation  # noqa: E402

# Suites that the tests in Rust replace here, or that are only run by their names.
APART = {"unit", "fuzz", "packages", "applications", "scores", "choice", "protocols"}
# Crates whose tests run for the crates that they use. Those of the command show what the crates below it print.
USERS = {"channel": ["mpi"], "datatype": ["mpi"], "device": ["channel", "model"], "file_io": ["mpi"], "sim": ["model"], "fabric": ["model"],
         **dict.fromkeys(("bench", "compare", "fast", "launch", "perf", "pmi", "profile", "replay", "results", "rma_check", "message_check", "study", "trace"), ["fishplate"])}


def crate_of(file: Path) -> str | None:
    """The crate that has the file."""
    for folder in file.parents:
        manifest = folder / "Cargo.toml"
        if manifest.exists() and folder != harness.ROOT:
            return tomllib.loads(manifest.read_text())["package"]["name"]
    return None


def suites_of(files: list[str]) -> list[Step]:
    """The suites that protect the files, the shortest first, each as `make test-ci` runs it where it does."""
    short = {step.name: step for step in [*preparation(False), *other_suites(False)]}
    known = times.kept()
    found = [step for step in all_suites() if step.name not in APART and any(file.startswith(begin) for begin in step.protects for file in files)]
    found.sort(key=lambda step: known.get(step.name, {}).get("seconds", 0))
    return [short.get(step.name, step) for step in found if step.name in short]


def tests_of(crate: str, nextest: str | None, is_built: bool) -> list[str]:
    """The command that runs the tests in Rust of a crate. nextest gives each a time limit, and ends at the first failure. `is_built`: the tests of all
    crates have been built together. Alone, a crate would have others with other features, which are compiled anew."""
    if nextest is None:
        return ["cargo", "test", "--quiet", "-p", crate]
    chosen = ["--workspace", "-E", f"package({crate})"] if is_built else ["-p", crate]
    return [nextest, "nextest", "run", *chosen, "--cargo-quiet", "--fail-fast", "--no-tests", "pass"]


def commands_of(files: list[str], nextest: str | None, is_built: bool = False) -> list[tuple[str, list[str]]]:
    """What protects the files, by its name, in the order in which it runs."""
    own = dict.fromkeys(crate for file in files if (crate := crate_of(harness.ROOT / file)))
    users = dict.fromkeys(user for crate in own for user in USERS.get(crate, []) if user not in own)
    return [*((f"tests of {crate}", tests_of(crate, nextest, is_built)) for crate in [*own, *users]),
            *((f"suite {step.name}", list(map(str, step.command))) for step in suites_of(files))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    files = []
    for name in options.files:
        file = Path(name).resolve()
        if not file.exists():
            parser.error(f"{name}: there is no such file")
        files.append(str(file.relative_to(harness.ROOT)))
    commands = commands_of(files, None if options.list else rust.nextest_program())
    if not commands:
        print(f"no suite names {', '.join(files)}: `make test` checks the whole")
        return 1
    known, is_staged = times.kept(), options.list
    for name, command in commands:
        if name.startswith("suite ") and not is_staged:
            if subprocess.run(["make", "--no-print-directory", "tree"], cwd=harness.ROOT, stdout=subprocess.DEVNULL).returncode != 0:
                print("the tree for the suites: FAILED")
                return 1
            is_staged = True
        took = known.get(name.removeprefix("suite "), {}).get("seconds")
        print(f"{name}{f', {took} s the last time' if took else ''}", flush=True)
        if not options.list and subprocess.run(command, cwd=harness.ROOT).returncode != 0:
            print(f"{name}: FAILED")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
