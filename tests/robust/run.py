#!/usr/bin/env python3
"""Jobs under failures: none hangs, falls silent or leaves anything behind.

    tests/robust/run.py [--prefix build] [--only TEXT] [--seed N] [--kills N] [--releases] [--list]

The cases are in allocations.py, binding.py, clocks.py, comparison.py, deaths.py, debuggers.py, disks.py, endings.py, first_look.py, floods.py, launcher.py, libraries.py, lines.py, loops.py,
liveness.py, memory.py, hosts.py, inside.py, mismatches.py, modelled.py, private.py, shared_sends.py, summaries.py and surroundings.py; tests/watched.py watches a job. They run in a mount namespace (unshare)
with an empty /tmp and /dev/shm, so every file found there was left by the job under test. They are written for our prefix only:
another library's launcher prints other messages. The seed of the random moments is printed and can be given. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import platform
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import allocations  # noqa: E402
import binding  # noqa: E402
import clocks  # noqa: E402
import comparison  # noqa: E402
import conflicts  # noqa: E402
import mismatches  # noqa: E402
import deaths  # noqa: E402
import debuggers  # noqa: E402
import disks  # noqa: E402
import endings  # noqa: E402
import first_look  # noqa: E402
import floods  # noqa: E402
import hosts  # noqa: E402
import inside  # noqa: E402
import launcher  # noqa: E402
import libraries  # noqa: E402
import lines  # noqa: E402
import liveness  # noqa: E402
import loops  # noqa: E402
import memory  # noqa: E402
import modelled  # noqa: E402
import namespace  # noqa: E402
import polling  # noqa: E402
import private  # noqa: E402
import shared_sends  # noqa: E402
import summaries  # noqa: E402
import surroundings  # noqa: E402
from harness import Case  # noqa: E402
from watched import check_no_files  # noqa: E402

# The mount point of a prefix that lies in a folder which is empty in the namespace.
ELSEWHERE = "/mnt"


@dataclass
class World:
    """The launcher, the programs, a folder for files, and random numbers."""

    mpiexec: Path
    work: Path
    victim: Path
    refuse: Path
    programs: Path
    random: random.Random
    # Kills at random moments in each test of them.
    kills: int


def prepare(prefix: Path, work: Path, options) -> World:
    work.mkdir(parents=True, exist_ok=True)
    mpicc = [str(prefix / "bin/mpicc"), "-O1", "-pthread"]
    programs = {HERE / f"{name}.c": mpicc for name in ("victim", "rounds", "conflicts", "mismatches", "crowd", "polls", "threads_compute", "ending", "place", "clocks", "disk", "inside", "large_window", "refusals", "shared_flow")}
    if platform.machine() == "x86_64":
        programs[HERE / "counter.c"] = mpicc
    programs |= {HERE / "refuse.c": ["cc", "-O1"]}
    programs |= {HERE.parent / "programs" / f"{name}.c": mpicc for name in ("hello", "send_modes", "many_ranks", "shared_sends")}
    programs[HERE.parent.parent / "examples/heat.c"] = mpicc
    for source, compiler in programs.items():
        subprocess.run([*compiler, "-o", str(work / source.stem), str(source), "-lm"], check=True)
    return World(prefix / "bin/mpiexec", work, work / "victim", work / "refuse", work, random.Random(options.seed), options.kills)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kills", type=int, default=25, help="kills at random moments in each test of them")
    parser.add_argument("--releases", action="store_true", help="also releases from a binding, which depend on the scheduler")
    options = parser.parse_args()
    modules = (allocations, binding, clocks, comparison, conflicts, deaths, debuggers, disks, endings, first_look, floods, launcher, libraries, lines, liveness, loops, memory, hosts, inside, mismatches, modelled, polling, private, shared_sends, summaries, surroundings)
    found = [*(case for module in modules for case in module.tests()), *(binding.releases() if options.releases else [])]
    cases = [Case(name, run) for name, run in found if options.only in name]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    namespace.enter()
    root = HERE.parent.parent
    if any(root.is_relative_to(folder) for folder in namespace.EMPTY) and prefix.is_relative_to(root):
        # The whole tree, since tests use files beside them; then the script starts again from there.
        namespace.mount("--bind", str(root), ELSEWHERE)
        there = Path(ELSEWHERE)
        os.chdir(there)
        again = ["--only", options.only, "--seed", str(options.seed), "--kills", str(options.kills), "--prefix", str(there / prefix.relative_to(root)),
                 *(["--releases"] if options.releases else [])]
        os.execv(sys.executable, [sys.executable, str(there / HERE.relative_to(root) / "run.py"), *again])
    if any(prefix.is_relative_to(folder) for folder in namespace.EMPTY):
        # Visible in this namespace only, so nothing is left behind.
        namespace.mount("--bind", str(prefix), ELSEWHERE)
        prefix = Path(ELSEWHERE)
    world = prepare(prefix, prefix / "tests" / "robust", options)
    print(f"seed {options.seed}")
    namespace.empty_folders()
    return harness.run_suite("robust", cases, world, after=nothing_left)


def nothing_left(_world) -> None:
    """A test leaves no file behind; the next one begins without it in any case."""
    try:
        check_no_files()
    finally:
        for folder in namespace.EMPTY:
            for left in os.listdir(folder):
                subprocess.run(["rm", "-rf", os.path.join(folder, left)], check=True)


if __name__ == "__main__":
    sys.exit(main())
