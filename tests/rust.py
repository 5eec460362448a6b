"""The Rust tests: `unit`, all of the workspace with its examples in documentation, or `loom`.

`unit` uses cargo-nextest (scripts/nextest), which gives each test a process and a time limit (.config/nextest.toml). Where it cannot
be had, `cargo test` runs the tests, and one limit holds for all of them. `loom` explores every order of the memory accesses of rings,
doorbells and the worker of files. `--compile` compiles the test programs and stops. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import shlex
import subprocess
import time
import xml.etree.ElementTree as xml
from pathlib import Path

import harness
from harness import Tally

CARGO = shlex.split(os.environ.get("CARGO", "cargo"))
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", harness.ROOT / "target"))
UNIT = ["test", "--workspace"]
LOOM = ["test", "-p", "channel", "-p", "file_io", "--lib", "--profile", "loom", "--target-dir", str(TARGET / "loom")]
# Limits of a whole run.
SECONDS = {"unit": 1800, "documentation": 600, "loom": 1200}
RESULT = re.compile(r"test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; .* finished in ([\d.]+)s")


def environment(suite: str) -> dict:
    return os.environ | ({"RUSTFLAGS": "--cfg loom"} if suite == "loom" else {})


def compile_only(suite: str) -> int:
    command = [*CARGO, *(LOOM if suite == "loom" else UNIT), "--no-run", "--quiet"]
    return subprocess.run(command, cwd=harness.ROOT, env=environment(suite)).returncode


def cargo_test(name: str, words: list, suite: str, tally: Tally) -> None:
    """`cargo test`, shown as it runs; every test binary is a case."""
    command = ["timeout", str(SECONDS[name]), *CARGO, *words, "--no-fail-fast", "--quiet"]
    process = subprocess.Popen(command, cwd=harness.ROOT, env=environment(suite), stdout=subprocess.PIPE, text=True)
    failed = tally.failed
    for line in process.stdout:
        found = RESULT.search(line)
        if not found:
            print(line, end="", flush=True)
            continue
        tally.passed, tally.failed, tally.skipped = (count + int(more) for count, more in zip(
            (tally.passed, tally.failed, tally.skipped), found.groups()))
        if found[1] != "0":
            tally.cases.append({"name": f"{name}, {found[1]} tests", "seconds": float(found[4])})
    if process.wait() != 0 and tally.failed == failed:
        tally.add(name, "failed", 0, f"cargo ended with {process.returncode}")
        print(f"FAIL {name}: cargo ended with {process.returncode}")


def nextest_program() -> str | None:
    """The path of cargo-nextest, if it can be had here."""
    found = subprocess.run([harness.ROOT / "scripts/nextest"], stdout=subprocess.PIPE, text=True)
    return found.stdout.strip() if found.returncode == 0 else None


def nextest(program: str, tally: Tally) -> None:
    report = TARGET / "nextest" / "default" / "junit.xml"
    report.unlink(missing_ok=True)
    # Many tests sleep: one more than there are cores.
    slots = str(len(os.sched_getaffinity(0)) + 1)
    done = subprocess.run([program, "nextest", "run", "--workspace", "--cargo-quiet", "--test-threads", slots], cwd=harness.ROOT)
    if report.exists():
        root = xml.parse(report).getroot()
        for case in root.iter("testcase"):
            bad = [child for child in case if child.tag in ("failure", "error")]
            reason = " ".join(f"{child.get('message')} {child.text}" for child in bad)
            tally.add(f"{case.get('classname')} {case.get('name')}", "failed" if bad else "passed", float(case.get("time")), reason)
    if done.returncode != 0 and not tally.failed:
        tally.add("nextest", "failed", 0, f"it ended with {done.returncode}")


def run(suite: str, said: str) -> int:
    parser = argparse.ArgumentParser(description=said.splitlines()[0])
    parser.add_argument("--compile", action="store_true", help="compile the tests and stop")
    options = parser.parse_args()
    if options.compile:
        return compile_only(suite)
    tally, began = Tally(), time.monotonic()
    if suite == "loom":
        cargo_test("loom", LOOM, "loom", tally)
        return harness.close("loom", tally, began)
    if (program := nextest_program()) is not None:
        nextest(program, tally)
        cargo_test("documentation", [*UNIT, "--doc"], "unit", tally)
    else:
        cargo_test("unit", UNIT, "unit", tally)
    return harness.close("unit", tally, began)
