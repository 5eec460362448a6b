#!/usr/bin/env python3
"""Long messages both ways over several rails: their time must not depend on which rank begins first.

    tests/skew/run.py [--prefix build] [--short] [--only TEXT] [--list] [--table]

Every second rank begins a step later than the others, in turn. A case is a machine, a pattern and a length. Under each policy of rails the
steps with a skew take as long as those without, and the skew of each; between pairs of ranks over cards of their own, `adaptive` takes no
longer than the best static policy. Where that is missed by more than 3 %, `MISSED` has the case, and a larger miss fails. Time is virtual:
every run gives the same figures. `--table` prints them, as Markdown. `--short` has two machines and two patterns. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import functools
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

# Cards of their own, ports of one card, many and unequal rails, and one rail.
MACHINES = ("2xqdr", "qdr-2port", "fdr-2port", "edr-2port", "8xqdr", "2x-unequal", "qdr")
# Ranks of each pattern, each on a host of its own.
PATTERNS = {"pairs": 2, "halo": 4, "ring": 4, "shift": 6}
LENGTHS = (64 << 10, 256 << 10, 1 << 20, 4 << 20)
# Policies, each with the announcements of receives (FISHPLATE_RTR).
ADAPTIVE = (("adaptive", "auto"), ("adaptive", "on"))
STATIC = (("single", "auto"), ("stripe", "auto"), ("round-robin", "auto"), ("fixed", "auto"))
SKEWS = ("0", "0.5", "2", "10", "100")
STEPS = 20
# The most by which a skew may lengthen the steps, and by which `adaptive` may be behind the best static policy.
MARGIN = 1.03
# Machines, patterns and announcements with another margin: what is known of them is in docs/user/rails.md.
MISSED = {("2x-unequal", "halo", "auto"): 1.3, ("fdr-2port", "", ""): 1.12, ("edr-2port", "", ""): 1.08, ("2xqdr", "pairs", "on"): 1.06,
          ("2x-unequal", "", ""): 1.12, ("qdr-2port", "halo", "auto"): 1.05, ("8xqdr", "halo", "on"): 1.04, ("8xqdr", "ring", "auto"): 1.04}
# Machines on which `adaptive` is compared with the static policies, from this length on.
COMPARED, COMPARED_FROM = ("2xqdr", "8xqdr", "2x-unequal", "qdr"), 256 << 10
# Time limit of a run, in seconds.
SECONDS = 120


def size(length: int) -> str:
    return f"{length >> 20} MiB" if length >> 20 else f"{length >> 10} KiB"


@functools.cache
def times(prefix: Path, program: Path, case: tuple, policy: str, rtr: str) -> dict:
    """Microseconds of all steps, by skew."""
    fabric, pattern, length = case
    words = [program, pattern, STEPS, length, *SKEWS]
    ran = harness.launch(prefix, PATTERNS[pattern], words, options=("--fabric", fabric, "--summary", "none"), seconds=SECONDS,
                         env={"FISHPLATE_RAIL_POLICY": policy, "FISHPLATE_RTR": rtr})
    if ran.code != 0:
        raise Problem(f"{policy}: exit status {ran.code}" + harness.output(ran.out + ran.err))
    return {skew: float(time) for skew, time in map(str.split, ran.out.splitlines())}


def margin(case: tuple, rtr: str) -> float:
    fabric, pattern, _ = case
    fitting = (most for (name, of, announced), most in MISSED.items()
               if name == fabric and of in ("", pattern) and announced in ("", rtr))
    return next(fitting, MARGIN)


def allowed(found: dict, skew: str, most: float) -> float:
    return most * (found["0"] + STEPS * float(skew))


def row(name: str, found: dict) -> str:
    """A line of the table: the time without a skew, and by how much each skew lengthens it beyond itself."""
    base = found["0"]
    more = [f"{(found[skew] / (base + STEPS * float(skew)) - 1) * 100:+.1f} %" for skew in SKEWS[1:]]
    return f"| {name} | {base / 1e3:.3f} | {' | '.join(more)} |"


def judge(world: tuple, case: tuple) -> str:
    prefix, program, shows = world
    kinds = {f"{policy}, RTR {rtr}": (policy, rtr) for policy, rtr in ADAPTIVE + STATIC}
    found = {name: times(prefix, program, case, *kind) for name, kind in kinds.items()}
    most = {name: margin(case, rtr) for name, (_, rtr) in kinds.items()}
    lines = [row(name, of) for name, of in found.items()]
    if shows:
        print("\n".join([f"\n{', '.join(map(str, case))}\n", "| policy | ms without skew | 0.5 µs | 2 µs | 10 µs | 100 µs |",
                         "| --- | ---: | ---: | ---: | ---: | ---: |", *lines]))
    wrong = [f"{name}: {of[skew]:.0f} µs with a skew of {skew} µs, at most {allowed(of, skew, most[name]):.0f}"
             for name, of in found.items() for skew in SKEWS[1:] if of[skew] > allowed(of, skew, most[name])]
    fabric, pattern, length = case
    is_compared = fabric in COMPARED and pattern == "pairs" and length >= COMPARED_FROM
    for skew in SKEWS if is_compared else ():
        best = min(of[skew] for name, of in found.items() if not name.startswith("adaptive"))
        ours = found["adaptive, RTR auto"][skew]
        if ours > MARGIN * best:
            wrong.append(f"adaptive: {ours:.0f} µs with a skew of {skew} µs, the best static policy {best:.0f}")
    if wrong:
        raise Problem("\n".join([wrong[0], *wrong[1:], *lines]))
    worst = max(of[skew] / (of["0"] + STEPS * float(skew)) for of in found.values() for skew in SKEWS[1:])
    return f"{(worst - 1) * 100:+.1f} % at most"


def cases() -> list[Case]:
    def of(fabric: str, pattern: str, length: int) -> Case:
        short = fabric in ("2xqdr", "2x-unequal") and pattern in ("pairs", "halo") and length <= 1 << 20
        return Case(f"skew: {fabric}, {pattern}, {size(length)}", lambda world: judge(world, (fabric, pattern, length)), short)
    return [of(fabric, pattern, length) for fabric in MACHINES for pattern in PATTERNS for length in LENGTHS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="two machines, two patterns")
    parser.add_argument("--table", action="store_true", help="print the times")
    options = parser.parse_args()
    wanted = [case for case in cases() if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in wanted))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "skew"
        subprocess.run([prefix / "bin/mpicc", "-O1", "-Wall", "-Wextra", "-Werror", HERE / "skew.c", "-o", program], check=True)
        return harness.run_suite("skew", wanted, (prefix, program, options.table))


if __name__ == "__main__":
    sys.exit(main())
