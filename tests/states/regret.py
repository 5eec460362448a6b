#!/usr/bin/env python3
"""Writes a page about the figures of `fishplate bench --every-choice --keep FILE`.

    tests/states/regret.py FILE > docs/regret.md

A row for each benchmark and number of ranks, and a row for each point at which another choice is better by more than its limit.
"""

import json
import sys
from pathlib import Path

HEAD = """# Regret: the default beside every forced choice

*By `fishplate bench BENCHMARK -n RANKS -m 8:… --seconds 0.05 --every-choice --keep tests/states/choices.jsonl`
(collectives: `--seconds 0.02 --rounds 7`) and `tests/states/regret.py`.*

Regret is the time of the default over that of the best choice that settings can force, medians of the rounds of one state of the cores, of at most 15
rounds that alternate all choices. The bound holds with 95 % confidence. A point is within its limit if the bound is at most 1.05 (collectives 1.10) + noise, the difference
between the default and its own choice, forced. [Measuring](bench.md#is-the-default-the-best-choice) has the details. The bounds of points beyond them are missed targets. Collectives miss them where the bodies of messages
go to cells, which made messages of 8 to 128 KiB up to twice as fast as the collective buffers: the rows for ranks that share memory are older than cells.
The file is kept for comparison:

```sh
build/bin/fishplate bench latency -m 8:64 --rounds 3 --seconds 0.05 --every-choice --beside tests/states/choices.jsonl
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


def main() -> int:
    points = [json.loads(line) for line in Path(sys.argv[1]).read_text().splitlines()]
    keys = list(dict.fromkeys((point["benchmark"], point["ranks"]) for point in points))
    groups = [[point for point in points if (point["benchmark"], point["ranks"]) == key] for key in keys]
    met = sum(point["is_met"] for point in points)
    misses = [point for point in points if not point["is_met"] and of_other_choice(point)]
    misses.sort(key=lambda point: -point["regret"])
    noisy = len(points) - met - len(misses)
    print(HEAD)
    print(f"{met} of {len(points)} points are within their limit; at {noisy} of the others the default's own choice is the best one, so noise alone "
          f"keeps the bound above the limit; at {len(misses)} another choice is better or may be.\n")
    print(table(["benchmark", "cores", "ranks", "points", "within limit", "worst of another choice"], [summary(group) for group in groups], 2))
    print("## Points at which another choice is better, or may be\n\nTimes in µs, bandwidths in MB/s.\n")
    print(table(["benchmark", "default's choice", "best", "cores", "ranks", "size", "default", "best forced", "regret", "≤", "noise"],
                [miss(point) for point in misses], 4), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
