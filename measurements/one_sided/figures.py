#!/usr/bin/env python3
"""Measures one-sided accesses between two hosts beside messages and beside the device: on a modelled machine, and over TCP.

    measurements/one_sided/figures.py [--prefix build] [--rounds 7] [--seconds 0.3] [--only modelled,tcp] [--page docs/figures/one-sided.md]

On the modelled machine each figure is exact. Over TCP two network namespaces are the hosts; in each round everything runs once, one after the
other, and the table has the medians. It is a measurement and belongs to no suite: run it on a quiet machine.
"""

import argparse
import json
import re
import statistics
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "tests/tcp"), str(HERE.parent / "tcp")]
import harness  # noqa: E402
import network  # noqa: E402
import measure  # noqa: E402
import c_programs  # noqa: E402
from harness import Problem  # noqa: E402
from network import Hosts  # noqa: E402

MACHINE = "edr"
OURS = measure.OURS
SHORT, LONG = [8, 1 << 10, 8 << 10, 64 << 10], [8, 4 << 10, 64 << 10, 1 << 20, 4 << 20]
LIMIT = 1.15
# Accesses with what the device's benchmark has for them, the messages beside them, and the direction of better.
TIMES = [("put", "write round trip"), ("get", "read-lat")]
RATES = [("put-bw", "write-bw"), ("get-bw", "read-bw")]


class Table:
    """Rows of figures: what, size, the figures of each column in all rounds."""

    def __init__(self):
        self.rows = {}

    def add(self, what: str, size: int, column: str, value: float | None) -> None:
        if value is not None:
            self.rows.setdefault((what, size), {}).setdefault(column, []).append(value)

    def median(self, row: tuple, column: str) -> float | None:
        values = self.rows[row].get(column)
        return statistics.median(values) if values else None


def objects(prefix: Path, *words) -> list:
    ran = harness.run(list(map(str, [prefix / "bin/fishplate", *words, "--json"])), seconds=300)
    if ran.code != 0:
        raise Problem(f"{words}: {ran.err}")
    return [json.loads(line) for line in ran.out.splitlines()]


def figure(row: dict) -> float:
    return next(row[key] for key in ("median", "typical", "mean", "average") if key in row)


def modelled(prefix: Path, table: Table) -> None:
    """Accesses and messages on a modelled machine, and `perf` of its device."""
    def bench(name: str, size: int) -> float:
        return figure(objects(prefix, "bench", name, "--fabric", MACHINE, "-m", f"{size}:{size}")[0])

    def perf(name: str, size: int) -> float:
        return figure(objects(prefix, "perf", name, "--fabric", MACHINE, "--size", size)[0])

    for size in SHORT:
        device = {"put": 2 * perf("write-lat", size), "get": perf("read-lat", size)}
        for what, _ in TIMES:
            table.add(what, size, "access", bench(what, size))
            table.add(what, size, "messages", 2 * bench("latency", size))
            table.add(what, size, "device", device[what])
    for size in LONG:
        for what, counterpart in RATES:
            table.add(what, size, "access", bench(what, size))
            table.add(what, size, "messages", bench("bw", size))
            table.add(what, size, "device", perf(counterpart, size))


def over_tcp(prefix: Path, table: Table, rounds: int, seconds: float) -> None:
    """Accesses and messages between two network namespaces, and `perf` of the device over TCP."""
    with Hosts(prefix) as hosts:
        def bench(name: str, size: int) -> float:
            return measure.bench(hosts, name, f"{size}:{size}", seconds, {})[OURS, size]

        for _ in range(rounds):
            for size in SHORT:
                device = {"put": measure.device(hosts, "write-lat", size), "get": measure.device(hosts, "read-lat", size)}
                device["put"] = device["put"] and 2 * device["put"]
                messages = 2 * bench("latency", size)
                for what, _ in TIMES:
                    table.add(what, size, "access", bench(what, size))
                    table.add(what, size, "messages", messages)
                    table.add(what, size, "device", device[what])
            for size in LONG:
                messages = bench("bw", size)
                for what, counterpart in RATES:
                    table.add(what, size, "access", bench(what, size))
                    table.add(what, size, "messages", messages)
                    table.add(what, size, "device", measure.device(hosts, counterpart, size))


def size_name(size: int) -> str:
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size % bytes_of == 0:
            return f"{size // bytes_of} {unit}"
    return f"{size} B"


def number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.{2 if value < 100 else 1 if value < 1000 else 0}f}"


def lines(table: Table) -> list[str]:
    """The figures as a table. The ratio is that of the device's figure or of ours, so that above 1 is slower than the device."""
    found = ["| access | size | unit | access | messages | device | × device | at most | met |", "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |"]
    for row in table.rows:
        what, size = row
        access, messages, device = (table.median(row, column) for column in ("access", "messages", "device"))
        unit = "MB/s" if what.endswith("-bw") else "µs"
        ratio = device and access and (device / access if unit == "MB/s" else access / device)
        verdict = "" if not ratio else "yes" if ratio <= LIMIT else "**no**"
        found.append(f"| `{what}` | {size_name(size)} | {unit} | {number(access)} | {number(messages)} | {number(device)} | {number(ratio)} | {LIMIT} | {verdict} |")
    return found


HEADINGS = {"modelled": f"## On the modelled machine `{MACHINE}`", "tcp": "## Over TCP between two network namespaces"}


def with_table(page: str, heading: str, table: str) -> str:
    """The page with another table in the section of this heading, whose words stay."""
    before, section = page.split(f"{heading}\n", 1)
    first = section.index("\n|") + 1
    end = re.search(r"^(?!\|)", section[first:], re.M).start() + first
    return f"{before}{heading}\n{section[:first]}{table}{section[end:]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="time of one figure over TCP")
    parser.add_argument("--only", default=",".join(HEADINGS), metavar="PART,PART", help=f"of {', '.join(HEADINGS)}")
    parser.add_argument("--page", type=Path, metavar="FILE", help="puts the tables into this page, in the place of those there")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    parts = options.only.split(",")
    if unknown := set(parts) - set(HEADINGS):
        parser.error(f"no part {', '.join(sorted(unknown))}")
    sections = {}
    for part in parts:
        table = Table()
        if part == "tcp":
            if reason := network.missing():
                sys.exit(reason)
            network.remove_leftovers()
            c_programs.prepare(prefix)
            over_tcp(prefix, table, options.rounds, options.seconds)
        else:
            modelled(prefix, table)
        sections[part] = "\n".join(lines(table)) + "\n"
        print(f"{HEADINGS[part]}\n\n{sections[part]}", flush=True)
    if options.page:
        text = options.page.read_text()
        for part, found in sections.items():
            text = with_table(text, HEADINGS[part], found)
        options.page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
