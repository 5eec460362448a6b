#!/usr/bin/env python3
"""Times loops over the real stack under the default limit of eager messages and under fixed ones.

    scripts/verbs-vm --timeout 900 -- python3 tests/verbs/limits.py build/bin/fishplate PATTERNS [ROUNDS]

PATTERNS is tests/protocols/patterns.c, compiled by mpicc. Two ranks on the two hosts of the machine. The limits take turns, and each has the
least time of its rounds: an emulated processor only ever adds time. The last column is the default over the best.
"""

import os
import re
import subprocess
import sys

LIMITS = [None, "1K", "2K", "4K", "8K", "16K", "32K", "64K"]
LOOPS = ["ring 3000 60", "ring 6000 60", "ring 14000 60", "wave 6000 120"]


def time(fishplate: str, patterns: str, loop: str, limit: str | None) -> float:
    environment = os.environ | ({"FISHPLATE_EAGER_LIMIT": limit} if limit else {})
    words = [fishplate, "run", "-n", "2", "--hosts", "0,1", "--launch-with", "on-host {host}", patterns, *loop.split()]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r"([0-9.]+) s\b", ran.stdout)
    if ran.returncode or not found:
        sys.exit(f"{' '.join(words)}: {ran.returncode}\n{ran.stdout}{ran.stderr}")
    return float(found[1]) / int(loop.split()[-1]) * 1e6


def main() -> None:
    fishplate, patterns, *rest = sys.argv[1:]
    print(f"{'µs a step':<16}" + "".join(f"{limit or 'default':>10}" for limit in LIMITS) + f"{'ratio':>8}", flush=True)
    for loop in LOOPS:
        least = dict.fromkeys(LIMITS, float("inf"))
        for _ in range(int(rest[0]) if rest else 3):
            for limit in LIMITS:
                least[limit] = min(least[limit], time(fishplate, patterns, loop, limit))
        best = min(value for limit, value in least.items() if limit)
        print(f"{loop:<16}" + "".join(f"{value:10.0f}" for value in least.values()) + f"{least[None] / best:8.2f}", flush=True)


if __name__ == "__main__":
    main()
