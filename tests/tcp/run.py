#!/usr/bin/env python3
"""Tests of jobs over TCP between hosts, which are network namespaces of this machine.

    tests/tcp/run.py [--prefix build] [--short | --quick] [--only TEXT] [--list]

Needs root and `ip`; tests/network.py says how hosts and cables are made. `--short` leaves out what repeats itself. The last line is
`N passed, N failed, N skipped`. Status 3: there can be no namespaces here, and the line before says why.
"""

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import applications  # noqa: E402
import harness  # noqa: E402
import network  # noqa: E402
import last_path  # noqa: E402
import c_programs  # noqa: E402
import rails  # noqa: E402
import shaped  # noqa: E402
import shown  # noqa: E402
import strangers  # noqa: E402

# In the order in which they run.
MODULES = [shown, c_programs, rails, last_path, strangers, shaped, applications]
TOOLS = ("ip", "tc", "ss", "cc", "unshare", "hostname")


# One case of each kind, for the tests that every change runs: a minute.
QUICK = {"shown: interfaces of all kinds", "shown: an interface that the user names", "c: hello -n 2", "c: flood -n 2", "c: coll_data -n 4", "c: fatal truncate -n 3",
         "programs: IPv6", "programs: two rails", "programs: 64 ranks on four hosts", "rails: rail 0, cut, and back", "strangers: garbage",
         "last path: cut 1 s, waitall, 8", "last path: unplugged 1 s, testall, 4", "last path: forged resets 0.1 s, waitall, 4",
         "last path: cut for ever, wait", "last path: hosts of two subnets", "shaped: the document has the table", "applications: every program has its figures", "applications: the document is made of the files"}


@dataclass
class World:
    prefix: Path
    work: Path


def why_not() -> str:
    """The reason why the suite cannot run here, or nothing."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"there is no {', '.join(absent)}" if absent else network.missing()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--short", action="store_true", help="leave out what repeats itself")
    parser.add_argument("--quick", action="store_true", help="run one case of each kind")
    harness.add_case_options(parser)
    options = parser.parse_args()
    cases = [case for module in MODULES for case in module.tests()]
    if options.quick:
        cases = [case for case in cases if case.name in QUICK]
        assert len(cases) == len(QUICK), "a name in QUICK is not a case's"
    if options.list:
        for case in cases:
            print(case.name if case.short else f"{case.name} (not in --short)")
        return 0
    if reason := why_not():
        return harness.not_run("tcp", reason)
    prefix = harness.checked_prefix(options.prefix)
    network.remove_leftovers()
    work = prefix / "tests" / "tcp"
    work.mkdir(parents=True, exist_ok=True)
    network.wire_program(prefix)
    c_programs.prepare(prefix)
    return harness.run_suite("tcp", [case for case in cases if case.wanted(options)], World(prefix, work))


if __name__ == "__main__":
    sys.exit(main())
