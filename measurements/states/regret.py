#!/usr/bin/env python3
"""Writes a page about the figures of `fishplate bench --every-choice --keep FILE`.

    measurements/states/regret.py FILE AGAIN > docs/figures/regret.md
    measurements/states/regret.py --again FILE AGAIN

A row for each benchmark and number of ranks, and a row for each point at which another choice is surely better. AGAIN has the figures of a second run of
those points alone, which `--again` makes.
"""

import json
import subprocess
import sys
from pathlib import Path

HEAD = """# Regret: the default beside every forced choice

*By `fishplate bench BENCHMARK -n RANKS -m 8:… --seconds 0.05 --every-choice --keep measurements/states/choices.jsonl`
(collectives: `--seconds 0.02`) and `measurements/states/regret.py`.*

Regret is the time of the default over that of the best choice that settings can force, medians of 15 rounds that alternate all choices, those of one state of the cores.
A point *fails* if in two runs even the nearest ends of the two medians' intervals of 95 % leave more than 1.05 (collectives 1.10); at most 5 % may, and none by more than 1.2. It is
*undecided* if the upper bound of its regret is beyond that limit and the noise, the difference between the default and its own choice, forced; at most 10 % may be.
[Measuring](../user/bench.md#is-the-default-the-best-choice) has the details. The file is kept for comparison:

```sh
build/bin/fishplate bench latency -m 8:64 --rounds 3 --seconds 0.05 --every-choice --beside measurements/states/choices.jsonl
```
"""
COLLECTIVE, OTHER = 1.10, 1.05
MESSAGES = ("latency", "bw", "bibw")
REMARKS = """
- Between the two runs the library changed. Long vectors no longer use all 2 MiB of a collective buffer where the second-level cache is as large (as on this machine), or where ranks share
  cores: giving it pages and walking through it made 110 calls of 16 and 32 KiB by two ranks three times as long, and calls of 8 to 64 KiB by four ranks on two cores 2 to 7 times. And an
  allreduce of 512 KiB and more goes by a direct copy. The points that were within their limits before were not measured again, so the share is not that of one library in two runs.
- The ends of two intervals are further apart than a bound of 95 % of their quotient, so fewer points fail by them.
- Four ranks on two cores were measured on this machine alone, where the size of the cache rules the walk out already.
- What is left are fixed sizes: of reductions, whose algorithms no measured costs choose, of vectors up to 8 KiB, which always use the collective buffer, and the eager limit of 16 KiB.
"""
# The shares of points that may fail, and that may be undecided.
FAILING, UNDECIDED, WORST = 0.05, 0.10, 1.2


def size_name(size: int) -> str:
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def table(head: list[str], rows: list[list[str]], left: int) -> str:
    marks = ["---" if at < left else "---:" for at in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, marks, *rows]) + "\n"


def best(point: dict) -> dict:
    return next(choice for choice in point["choices"] if choice["choice"] == point["best"])


def lower(point: dict) -> float:
    """The regret that the ends of the intervals leave, which is at least 1."""
    if point["best"] == point["taken"]:
        return 1.0
    default, other = point["default"]["interval"], best(point)["interval"]
    least = default[0] / other[1] if point["unit"] == "us" else other[0] / default[1]
    return max(1.0, least)


def fails(point: dict) -> bool:
    return lower(point) > (OTHER if point["benchmark"] in MESSAGES else COLLECTIVE)


def is_undecided(point: dict) -> bool:
    return not fails(point) and not point["is_met"] and point["best"] != point["taken"]


def key(point: dict) -> tuple:
    return point["benchmark"], point["ranks"], point["size"]


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def run_again(points: list[dict], file: str) -> None:
    for point in filter(fails, points):
        seconds = 0.05 if point["benchmark"] in MESSAGES else 0.02
        command = ["build/bin/fishplate", "bench", point["benchmark"], "-n", point["ranks"], "-m", f"{point['size']}:{point['size']}", "--seconds", seconds,
                   "--every-choice", "--keep", file]
        subprocess.run(list(map(str, command)), check=True)


def summary(points: list[dict], again: dict) -> list[str]:
    both = [point for point in points if fails(point) and fails(again[key(point)])]
    worst = max(both, key=lambda point: lower(again[key(point)]), default=None)
    named = f"{size_name(worst['size'])}: {lower(again[key(worst)]):.2f}, {worst['taken']} → {worst['best']}" if worst else "–"
    cores = ", ".join(sorted({point.get("cores", "several") for point in points}))
    return [points[0]["benchmark"], cores, str(points[0]["ranks"]), *map(str, [len(points), sum(map(fails, points)), len(both), sum(map(is_undecided, points))]), named]


def failed(point: dict, again: dict) -> list[str]:
    other = again[key(point)]
    return [point["benchmark"], point["taken"], point["best"], str(point["ranks"]), size_name(point["size"]),
            f"{point['default']['median']:.4g}", f"{best(point)['median']:.4g}", f"{point['regret']:.2f}", f"{lower(point):.2f}",
            f"{other['default']['median']:.4g}", f"{best(other)['median']:.4g}, {other['best']}", f"{lower(other):.2f}", "**yes**" if fails(other) else "no"]


def main() -> int:
    if sys.argv[1] == "--again":
        run_again(read(sys.argv[2]), sys.argv[3])
        return 0
    points, again = read(sys.argv[1]), {key(point): point for point in read(sys.argv[2])}
    keys = list(dict.fromkeys((point["benchmark"], point["ranks"]) for point in points))
    groups = [[point for point in points if (point["benchmark"], point["ranks"]) == key] for key in keys]
    first, unsure = sorted(filter(fails, points), key=lambda point: -lower(point)), sum(map(is_undecided, points))
    both = [again[key(point)] for point in first if fails(again[key(point)])]
    shares = [len(both) / len(points), unsure / len(points)]
    worst = max(map(lower, both), default=1)

    def said(is_met: bool) -> str:
        return "met" if is_met else "**missed**"
    print(HEAD)
    print(f"{len(first)} of {len(points)} points fail in the first run, and {len(both)} of them again: {100 * shares[0]:.1f} % (5: {said(shares[0] <= FAILING)}, if no other point fails by now), the worst by "
          f"{worst:.2f} at least (1.2: {said(worst <= WORST)}). {unsure} are undecided, {100 * shares[1]:.0f} % (10: {said(shares[1] <= UNDECIDED)}).\n")
    print(table(["benchmark", "cores", "ranks", "points", "fail once", "fail twice", "undecided", "worst, at least"], [summary(group, again) for group in groups], 2))
    print("## Points that fail in the first run\n\nTimes in µs, bandwidths in MB/s.\n")
    print(table(["benchmark", "default's choice", "best", "ranks", "size", "default", "best forced", "regret", "at least", "default again", "best again", "at least", "fails again"],
                [failed(point, again) for point in first], 3), end="")
    print(REMARKS, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
