#!/usr/bin/env python3
"""Tests on a real verbs stack, in the virtual machine of scripts/verbs-vm.

    tests/verbs/run.py [--prefix build] [--short] [--only TEXT] [--list]

vm.py tests the machine itself, from outside. All else runs within one start of each kind of it (inside.py), from the modules
that inside.py lists. `--short` leaves out what takes long where the processor is computed. The last line is
`N passed, N failed, N skipped`. Status 3: there is no machine here; the lines before, and tests/verbs/why-not in the prefix, say why.
Tests that could not be run are named with the reason, in tests/verbs/not-run in the prefix too.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import vm  # noqa: E402
from case import Problem  # noqa: E402
import inside as machine  # noqa: E402

# What takes longest is mpi4py's suite: ten minutes on a machine that does nothing else, three times that on a busy one.
INSIDE_SECONDS = 5400
# Words for scripts/verbs-vm.
KINDS = {"roce": [], "iwarp": ["--iwarp"]}
NO_MACHINE = 3


def outside(options) -> tuple[int, int, int]:
    passed = failed = 0
    for case in vm.tests():
        if not case.wanted(options):
            continue
        began, problem = time.monotonic(), ""
        try:
            case.run()
        except Problem as found:
            problem = str(found)
        except Exception:
            problem = traceback.format_exc()
        vm.clean_up()
        case.show(problem, time.monotonic() - began)
        failed, passed = failed + bool(problem), passed + (not problem)
    return passed, failed, 0


def prepare(kind: str, options, work: Path) -> None:
    """Builds what the tests within the machine need, and writes down what cannot be had."""
    absent = {}
    for module in machine.MODULES[kind]:
        wanted = any(case.wanted(options) for case in module.tests())
        if wanted and (why := getattr(module, "prepare", lambda _: "")(options)):
            absent[module.__name__] = why
    (work / machine.ABSENT).write_text(json.dumps(absent))


def inside(kind: str, options, work: Path) -> tuple[int, int, int] | None:
    """The tests within a machine of this kind; its own failure counts as one. None: there is no machine."""
    words = [HERE / "inside.py", "--kind", kind, "--prefix", options.prefix, "--only", options.only, *(["--short"] if options.short else [])]
    command = [vm.VM, *KINDS[kind], "--timeout", INSIDE_SECONDS, "--share", work, "--", "python3", *words]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    counts = None
    for line in process.stdout:
        if line.startswith("verbs-vm: "):
            (work / "why-not").write_text(line.strip())
        if line.startswith("NOT RUN "):
            with open(work / "not-run", "a") as file:
                file.write(f"*** verbs {line.strip()} ***\n")
        if found := re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped\n", line):
            counts = int(found[1]), int(found[2]), int(found[3])
        else:
            print(line, end="", flush=True)
    status = process.wait()
    if counts is None and status == vm.NO_MACHINE:
        return None
    if counts is None or status not in (0, 1):
        print(f"FAIL the machine: ended with {status} before its tests did")
        return 0, 1, 0
    return counts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--short", action="store_true", help="only what takes a minute or two in all")
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name holds this")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        for case in [*vm.tests(), *(case for kind in KINDS for case in machine.tests(kind))]:
            print(case.name if case.short else f"{case.name} (not in --short)")
        return 0
    options.prefix = harness.checked_prefix(options.prefix)
    work = options.prefix / "tests" / "verbs"
    work.mkdir(parents=True, exist_ok=True)
    (work / "not-run").write_text("")
    counts = []
    for kind in KINDS:
        if not any(case.wanted(options) for case in machine.tests(kind)):
            continue
        prepare(kind, options, work)
        seen = inside(kind, options, work)
        if seen is None and kind == "roce":
            return NO_MACHINE
        counts.append(seen or not_run(kind, options, work))
    counts.append(outside(options))
    return harness.closing_line(*(sum(column) for column in zip(*counts)))


def not_run(kind: str, options, work: Path) -> tuple[int, int, int]:
    """There is no such machine, but others."""
    cases = [case for case in machine.tests(kind) if case.wanted(options)]
    line = f"NOT RUN {kind}, {len(cases)} tests: {(work / 'why-not').read_text()}"
    print(line)
    with open(work / "not-run", "a") as file:
        file.write(f"*** verbs {line} ***\n")
    return 0, 0, len(cases)


if __name__ == "__main__":
    sys.exit(main())
