#!/usr/bin/env python3
"""The tests that run within a machine of a kind: those of its modules, one after the other.

A module has a function `tests` that gives a list of `Case`s; what each runs gets a `World`. It may have a function `prepare`,
which is called before the machine starts, outside of it; what that answers, if anything, is why none of its tests can be run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import benches  # noqa: E402
import counts  # noqa: E402
import devices  # noqa: E402
import foreign  # noqa: E402
import harness  # noqa: E402
import info  # noqa: E402
import iwarp  # noqa: E402
import iwarp_foreign  # noqa: E402
import launching  # noqa: E402
import programs  # noqa: E402
import suites  # noqa: E402
import waiting  # noqa: E402
from case import Case, Problem  # noqa: E402


@dataclass
class World:
    """Where things are, and how to run them."""

    prefix: Path

    @property
    def work(self) -> Path:
        """What is written here is seen outside too."""
        return self.prefix / "tests" / "verbs"

    def run(self, *command, seconds: float = 60, env: dict | None = None) -> harness.Outcome:
        return harness.run(list(map(str, command)), seconds=seconds, env=env)

    def on_host(self, host: int, *command, **more) -> harness.Outcome:
        return self.run("on-host", host, *command, **more)

    def launcher(self, ranks: int, *command) -> list[str]:
        """An MPI job over both hosts."""
        words = [self.prefix / "bin/fishplate", "run", "-n", ranks, "--hosts", "0,1", "--launch-with", "on-host {host}", *command]
        return list(map(str, words))

    def job(self, ranks: int, *command, **more) -> harness.Outcome:
        return self.run(*self.launcher(ranks, *command), **more)


# By the kind of machine, as scripts/verbs-vm has them.
MODULES = {"roce": (devices, info, suites, launching, programs, waiting, benches, counts, foreign), "iwarp": (iwarp, iwarp_foreign)}
# In the folder of what is seen outside too: by module, why its tests are not run.
ABSENT = "absent.json"


def tests(kind: str) -> list[Case]:
    return [case for module in MODULES[kind] for case in module.tests()]


def wanted(kind: str, options, absent: dict) -> list[tuple[Case, str]]:
    """The tests, and why each is not run."""
    return [(case, absent.get(module.__name__, "")) for module in MODULES[kind] for case in module.tests()
            if case.wanted(options)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--kind", default="roce")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    world = World(harness.checked_prefix(options.prefix))
    passed = failed = skipped = 0
    for case, why_not in wanted(options.kind, options, json.loads((world.work / ABSENT).read_text())):
        if why_not:
            print(f"NOT RUN {case.name}: {why_not}", flush=True)
            skipped += 1
            continue
        began, problem = time.monotonic(), ""
        try:
            case.run(world)
        except Problem as found:
            problem = str(found)
        except Exception:
            problem = traceback.format_exc()
        # No test inherits a broken cable.
        for rail in (0, 1):
            subprocess.run(["rail", str(rail), "up"], check=True)
        case.show(problem, time.monotonic() - began)
        failed, passed = failed + bool(problem), passed + (not problem)
    return harness.closing_line(passed, failed, skipped)


if __name__ == "__main__":
    if os.getpid() == 1:
        sys.exit("to be started by run.py")
    sys.exit(main())
