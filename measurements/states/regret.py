#!/usr/bin/env python3
"""Writes a page about the figures of `fishplate bench --every-choice --keep FILE`.

    measurements/states/regret.py FILE OTHER LEARNED > docs/figures/regret.md

A row for each benchmark and number of ranks, and a row for each point at which another choice is better by more than its limit. OTHER has
the collectives of another machine, and LEARNED those after contests, for the same two tables.
"""

import json
import sys
from pathlib import Path

HEAD = """# Regret: the default beside every forced choice

*By `fishplate bench BENCHMARK -n RANKS -m 8:… --seconds 0.05 --every-choice --keep measurements/states/choices.jsonl`
(collectives: `--seconds 0.02 --rounds 7`) and `measurements/states/regret.py`.*

Regret is the time of the default over that of the best choice that settings can force, medians of the rounds of one state of the cores, of at most 15
rounds that alternate all choices. The bound holds with 95 % confidence. A point is within its limit if the bound is at most 1.05 (collectives 1.10) + noise, the difference
between the default and its own choice, forced. [Measuring](../user/bench.md#is-the-default-the-best-choice) has the details. The bounds of points beyond them are missed targets. Collectives miss them where the bodies of messages
go to cells, which made messages of 8 to 128 KiB up to twice as fast as the collective buffers on this machine, and not on [another](#another-machine).
The file is kept for comparison:

```sh
build/bin/fishplate bench latency -m 8:64 --rounds 3 --seconds 0.05 --every-choice --beside measurements/states/choices.jsonl
```
"""


def size_name(size: int) -> str:
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"


def table(head: list[str], rows: list[list[str]], left: int) -> str:
    marks = ["---" if at < left else "---:" for at in range(len(head))]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, marks, *rows]) + "\n"


def of_other_choice(point: dict) -> bool:
    return point["best"] != point["taken"]


def summary(points: list[dict]) -> list[str]:
    met = [point for point in points if point["is_met"]]
    others = [point for point in points if of_other_choice(point)]
    worst = max(others, key=lambda point: point["regret"], default=None)
    cores = sorted({point.get("cores", "several") for point in points})
    named = f"{size_name(worst['size'])}: {worst['regret']:.2f} (≤ {worst['bound']:.2f}), {worst['taken']} → {worst['best']}" if worst else "–"
    first = points[0]
    return [first["benchmark"], ", ".join(cores), str(first["ranks"]), str(len(points)), str(len(met)), named]


def miss(point: dict) -> list[str]:
    noise = point["noise"]
    best = next(choice for choice in point["choices"] if choice["choice"] == point["best"])
    return [point["benchmark"], point["taken"], point["best"], point.get("cores", "several"), str(point["ranks"]), size_name(point["size"]),
            f"{point['default']['median']:.4g}", f"{best['median']:.4g}", f"{point['regret']:.2f}", f"{point['bound']:.2f}",
            "–" if noise is None else f"{noise:.2f}"]


OTHER = """
## Another machine

*By `fishplate bench COLLECTIVE -n 2 and 4 -m 4K:512K --rounds 5 --seconds 0.015 --every-choice --keep measurements/states/choices-other-machine.jsonl`.*

On one machine messages of 8 to 128 KiB were up to twice as fast as the collective buffers. On the next one (both AMD EPYC, a cache line takes 26 ns in either)
the buffers were the fastest between two ranks at nearly all points: a copy of 64 KiB through them took 2.7 µs for 10.3. So no fixed sizes in the
table of algorithms serve both machines, and the table was left as it is. [Contests](#contests) are the cure.
"""

LEARNED = """
## Contests

*By `fishplate bench COLLECTIVE -n 4 (scatter, alltoall, allgather) and -n 2 (allgather, alltoall, bcast) -m 8K:512K --rounds 5 --iterations 400
--warmup 400 --every-choice --keep measurements/states/choices-learned.jsonl`, on that other machine.*

Members that share memory compare collective buffer, direct copies and messages after 320 calls of a size class, add up their times, and take the fastest
([running](../user/running.md#algorithms-of-collectives)). Scatter of 64 KiB among 4 ranks, 4.2 times the best choice's time before, takes 1.1 times (between far cores; the first figure is of one core's threads). Reductions have no contests, so
that their bits stay equal; the misses of `reduce`, `allreduce` and `reduce-scatter` above stay.
"""


def read(name: str) -> list[dict]:
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def tables(points: list[dict]) -> tuple[str, str]:
    """The rows of benchmarks, and those of points at which another choice is better."""
    keys = list(dict.fromkeys((point["benchmark"], point["ranks"]) for point in points))
    groups = [[point for point in points if (point["benchmark"], point["ranks"]) == key] for key in keys]
    misses = sorted(filter(is_miss, points), key=lambda point: -point["regret"])
    return (table(["benchmark", "cores", "ranks", "points", "within limit", "worst of another choice"], [summary(group) for group in groups], 2),
            table(["benchmark", "default's choice", "best", "cores", "ranks", "size", "default", "best forced", "regret", "≤", "noise"],
                  [miss(point) for point in misses], 4))


def is_miss(point: dict) -> bool:
    return not point["is_met"] and of_other_choice(point)


def main() -> int:
    points = read(sys.argv[1])
    other, learned = read(sys.argv[2]), read(sys.argv[3])
    met = sum(point["is_met"] for point in points)
    misses = sum(map(is_miss, points))
    noisy = len(points) - met - misses
    benchmarks, worse = tables(points)
    print(HEAD)
    print(f"{met} of {len(points)} points are within their limit; at {noisy} of the others the default's own choice is the best one, so noise alone "
          f"keeps the bound above the limit; at {misses} another choice is better or may be.\n")
    print(benchmarks)
    print("## Points at which another choice is better, or may be\n\nTimes in µs, bandwidths in MB/s.\n")
    print(worse, end="")
    print(OTHER)
    print("\n".join(tables(other)), end="")
    print(LEARNED)
    print("\n".join(tables(learned)), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
