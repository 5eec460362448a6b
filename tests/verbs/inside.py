#!/usr/bin/env python3
"""The tests that run inside a virtual machine of one kind, module by module.

A module has a function `tests`, which returns `Case`s for a `World`. It may have a function `prepare`, which runs on the host
before the machine starts; a text that it returns is the reason why none of the module's tests can run.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass, replace
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
import mixed  # noqa: E402
import mpich  # noqa: E402
import c_programs  # noqa: E402
import rails  # noqa: E402
import shown  # noqa: E402
import suites  # noqa: E402
import waiting  # noqa: E402
from harness import Case  # noqa: E402


@dataclass
class World:
    """Where things are, and how to run them."""

    prefix: Path

    @property
    def work(self) -> Path:
        """A folder that the host sees too."""
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
MODULES = {"roce": (devices, info, suites, launching, c_programs, rails, mixed, waiting, benches, counts, foreign, mpich, shown), "iwarp": (iwarp, iwarp_foreign)}
# Files of the work folder: by module, why its tests cannot run; the results of a kind.
ABSENT = "absent.json"
RESULTS = "results-{kind}.json"


def tests(kind: str) -> list[Case]:
    return [case for module in MODULES[kind] for case in module.tests()]


def wanted(kind: str, options, absent: dict) -> list[Case]:
    return [replace(case, skip=absent.get(module.__name__, "")) for module in MODULES[kind]
            for case in module.tests() if case.wanted(options)]


def mend_rails(_world) -> None:
    """No test inherits a broken cable."""
    for rail in (0, 1):
        subprocess.run(["rail", str(rail), "up"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--kind", default="roce")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    world = World(harness.checked_prefix(options.prefix))
    absent = json.loads((world.work / ABSENT).read_text())
    tally = harness.run_cases(wanted(options.kind, options, absent), world, after=mend_rails)
    (world.work / RESULTS.format(kind=options.kind)).write_text(json.dumps(asdict(tally)))
    return 1 if tally.failed else 0


if __name__ == "__main__":
    if os.getpid() == 1:
        sys.exit("to be started by run.py")
    sys.exit(main())
