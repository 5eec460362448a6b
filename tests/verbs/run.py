#!/usr/bin/env python3
"""Tests on a real verbs stack, in the virtual machine of scripts/verbs-vm.

    tests/verbs/run.py [--prefix build] [--short] [--only TEXT] [--list]

vm.py tests the machine itself, from the host. All other tests run inside the machine, which starts once for each kind (inside.py
lists their modules). `--short` runs one case of each kind, because QEMU emulates the processor. The last line is
`N passed, N failed, N skipped`. Status 3: the machine cannot start here, and the lines before say why.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import vm  # noqa: E402
from harness import Tally  # noqa: E402
import inside as machine  # noqa: E402

# The longest part is mpi4py's suite: ten minutes on an idle machine, three times that on a busy one.
INSIDE_SECONDS = 5400
# Words for scripts/verbs-vm.
KINDS = {"roce": [], "iwarp": ["--iwarp"]}


def prepare(kind: str, options, work: Path) -> None:
    """Builds everything that the tests inside the machine need, and records what cannot be had."""
    absent = {}
    for module in machine.MODULES[kind]:
        wanted = any(case.wanted(options) for case in module.tests())
        if wanted and (why := getattr(module, "prepare", lambda _: "")(options)):
            absent[module.__name__] = why
    (work / machine.ABSENT).write_text(json.dumps(absent))


def inside(kind: str, options, work: Path) -> Tally | None:
    """The tests inside a machine of this kind; a failure of the machine counts as one more. None: the machine cannot start."""
    results = work / machine.RESULTS.format(kind=kind)
    results.unlink(missing_ok=True)
    words = [HERE / "inside.py", "--kind", kind, "--prefix", options.prefix, "--only", options.only, *(["--short"] if options.short else [])]
    command = [vm.VM, *KINDS[kind], "--timeout", INSIDE_SECONDS, "--share", work, "--", "python3", *words]
    process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
    for line in process.stdout:
        if line.startswith("verbs-vm: "):
            (work / "why-not").write_text(line.strip())
        print(line, end="", flush=True)
    status = process.wait()
    if not results.exists() and status == vm.NO_MACHINE:
        return None
    tally = Tally(**json.loads(results.read_text())) if results.exists() else Tally()
    if not results.exists() or status not in (0, 1):
        print(f"FAIL {kind}: the machine ended with {status} before its tests did")
        tally.add(f"{kind}: the machine", "failed", 0, "")
    return tally


def say_what_was_not_run(tally: Tally) -> None:
    for reason in dict.fromkeys(case["reason"] for case in tally.cases if case["result"] == "skipped"):
        names = [case["name"] for case in tally.cases if case.get("reason") == reason]
        harness.not_run(f"verbs: {names[0]}" + (f" and {len(names) - 1} more" if names[1:] else ""), reason)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--short", action="store_true", help="one case of each kind")
    harness.add_case_options(parser)
    options = parser.parse_args()
    if options.list:
        for case in [*vm.tests(), *(case for kind in KINDS for case in machine.tests(kind))]:
            print(case.name if case.short else f"{case.name} (not in --short)")
        return 0
    options.prefix = harness.checked_prefix(options.prefix)
    work = options.prefix / "tests" / "verbs"
    work.mkdir(parents=True, exist_ok=True)
    tally, began = Tally(), time.monotonic()
    for kind in KINDS:
        cases = [case for case in machine.tests(kind) if case.wanted(options)]
        if not cases:
            continue
        prepare(kind, options, work)
        seen = inside(kind, options, work)
        if seen is None and kind == "roce":
            return harness.not_run("verbs", (work / "why-not").read_text())
        if seen is None:  # no such machine, but others
            reason = (work / "why-not").read_text()
            seen = harness.run_cases([replace(case, skip=reason) for case in cases])
        say_what_was_not_run(seen)
        tally.merge(seen)
    tally.merge(harness.run_cases([case for case in vm.tests() if case.wanted(options)], after=vm.clean_up))
    return harness.close("verbs", tally, began)


if __name__ == "__main__":
    sys.exit(main())
