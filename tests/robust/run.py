#!/usr/bin/env python3
"""What must not happen: jobs that hang, fall silent or leave something behind when things go wrong.

    tests/robust/run.py [--prefix build] [--only TEXT] [--seed N] [--list]

The subjects are in deaths.py, launcher.py, hosts.py, modelled.py and surroundings.py; job.py watches a job. The tests run
in a mount namespace of their own (unshare), with an empty /tmp and /dev/shm, so that whatever is
found there was left by the job at hand. They are written for our prefix only: another library's
launcher says other things. The seed of the random moments is printed and can be given.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import random
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import deaths  # noqa: E402
import hosts  # noqa: E402
import launcher  # noqa: E402
import modelled  # noqa: E402
import surroundings  # noqa: E402
from job import Problem, check_no_files  # noqa: E402

INSIDE = "ROBUST_INSIDE"
# Folders that are the tests' own and empty, and where a prefix goes that lies in one of them.
EMPTY = ("/tmp", "/dev/shm")
ELSEWHERE = "/mnt"


@dataclass
class World:
    """What a test needs: the launcher, the programs, a folder for files, a source of chance."""

    mpiexec: Path
    work: Path
    victim: Path
    refuse: Path
    programs: Path
    random: random.Random


def enter_namespace() -> None:
    """Starts this script again in a mount namespace of its own, as root in it if not outside."""
    if INSIDE in os.environ:
        return
    for rights in (["--mount"], ["--mount", "--map-root-user"]):
        command = ["unshare", *rights, "--propagation", "private"]
        probe = subprocess.run([*command, "true"], capture_output=True, text=True)
        if probe.returncode == 0:
            os.execvpe("unshare", [*command, sys.executable, *sys.argv], os.environ | {INSIDE: "1"})
    sys.exit(f"the tests need a mount namespace, and unshare says: {probe.stderr.strip()}")


def prepare(prefix: Path, work: Path, seed: int) -> World:
    work.mkdir(parents=True, exist_ok=True)
    mpicc = [str(prefix / "bin/mpicc"), "-O1", "-pthread"]
    programs = {HERE / f"{name}.c": mpicc for name in ("victim", "rounds", "crowd")} | {HERE / "refuse.c": ["cc", "-O1"]}
    programs |= {HERE.parent / "c" / f"{name}.c": mpicc for name in ("hello", "send_modes", "many_ranks")}
    for source, compiler in programs.items():
        subprocess.run([*compiler, "-o", str(work / source.stem), str(source)], check=True)
    return World(prefix / "bin/mpiexec", work, work / "victim", work / "refuse", work, random.Random(seed))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--only", default="", metavar="TEXT", help="tests whose name holds this")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    tests = [test for module in (deaths, launcher, hosts, modelled, surroundings) for test in module.tests()
             if options.only in test[0]]
    if options.list:
        print("\n".join(name for name, _ in tests))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    enter_namespace()
    root = HERE.parent.parent
    if any(root.is_relative_to(folder) for folder in EMPTY) and prefix.is_relative_to(root):
        # All of it, since tests use what lies beside them; and once more from there.
        surroundings.mount("--bind", str(root), ELSEWHERE)
        there = Path(ELSEWHERE)
        os.chdir(there)
        again = ["--only", options.only, "--seed", str(options.seed), "--prefix", str(there / prefix.relative_to(root))]
        os.execv(sys.executable, [sys.executable, str(there / HERE.relative_to(root) / "run.py"), *again])
    if any(prefix.is_relative_to(folder) for folder in EMPTY):
        # Seen in this namespace only, so nothing is left behind.
        surroundings.mount("--bind", str(prefix), ELSEWHERE)
        prefix = Path(ELSEWHERE)
    world = prepare(prefix, prefix / "tests" / "robust", options.seed)
    print(f"seed {options.seed}")
    passed = failed = 0
    for folder in EMPTY:
        surroundings.mount("-t", "tmpfs", "tmpfs", folder)
    for name, test in tests:
        began, problem = time.monotonic(), ""
        try:
            test(world)
            check_no_files()
        except Problem as found:
            problem = str(found)
        except Exception:  # a fault of the test's own is a failure too, and the others still run
            problem = traceback.format_exc()
        for folder in EMPTY:
            for left in os.listdir(folder):
                subprocess.run(["rm", "-rf", os.path.join(folder, left)], check=True)
        print(f"{'FAIL' if problem else 'pass'} {name} ({time.monotonic() - began:.1f} s)"
              f"{': ' if problem else ''}{problem}", flush=True)
        failed, passed = failed + bool(problem), passed + (not problem)
    return harness.closing_line(passed, failed, 0)


if __name__ == "__main__":
    sys.exit(main())
