#!/usr/bin/env python3
"""Measures `adaptive` on modelled machines with several rails, and writes docs/figures/rails.md.

    measurements/rails/run.py [--prefix build] [--out FILE]

Time is virtual: every run gives the same figures. A target that is missed fails the command, and stays in the table.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402

PAIRS = ["blog-2xqdr", "2xqdr"]
BENCHES = {"latency": "µs", "bw": "MB/s", "bibw": "MB/s"}
# Powers of two, and the points between them: sizes, messages of a window, windows. Long messages have a shorter window: it lasts long
# enough. A few windows of short ones would depend on the moments at which the first of them coalesce.
RANGES = [("1:128K", 64, 40), ("3:192K", 64, 40), ("256K:4M", 16, 8), ("384K:3M", 16, 8)]
# With one rank on a host, `fixed` is `single`.
STATIC = {"single": ("single", "16K"), "stripe 8K": ("stripe", "8K"), "stripe 16K": ("stripe", "16K"),
          "round-robin 8K": ("round-robin", "8K"), "round-robin 16K": ("round-robin", "16K")}
LEAST = 0.99
# The time after which a modelled device gives up a request without an answer: seven retries.
TIMEOUT_MS = 7 * 67


def size(number: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if number >= unit:
            return f"{number / unit:g} {name}"
    return f"{number} B"


def bench(prefix: Path, name: str, fabric: str, span: str, window: int = 64, windows: int = 8, **settings) -> dict:
    words = [prefix / "bin/fishplate", "bench", name, "--fabric", fabric, "--own", "-m", span, "-i", windows, "-x", 4, "--json"]
    words += [] if name == "latency" else ["-W", window]
    ran = harness.run(list(map(str, words)), seconds=500, env={f"FISHPLATE_{key}": value for key, value in settings.items()})
    if ran.code != 0:
        raise harness.Problem(f"{' '.join(map(str, words))}: {ran.err}")
    rows = map(json.loads, ran.out.splitlines())
    return {row["size"]: row["median"] for row in rows}


def sweep(prefix, name, fabric, **settings) -> dict:
    found = {}
    for span, window, windows in RANGES:
        found |= bench(prefix, name, fabric, span, window, windows, **settings)
    return found


def gain(name: str, ours: float, theirs: float) -> float:
    return theirs / ours if name == "latency" else ours / theirs


class Figures:
    """All figures, and the lines of the page."""

    def __init__(self, prefix: Path):
        self.prefix, self.targets, self.tables = prefix, [], []

    def target(self, what: str, wanted: str, least: float, found: float, where: str = "") -> None:
        met = "yes" if found >= least else "**no**"
        self.targets.append((what, wanted, f"{found:.3f}", met, where))

    def pair(self, fabric: str, pool) -> None:
        def measure(job):
            name, policy, threshold, rtr = job
            return sweep(self.prefix, name, fabric, RAIL_POLICY=policy, STRIPE_THRESHOLD=threshold, RTR=rtr)
        jobs = [(name, *static, rtr) for name in BENCHES for static in STATIC.values() for rtr in ("off", "auto")]
        jobs += [(name, "adaptive", "16K", "auto") for name in BENCHES]
        found = dict(zip(jobs, pool.map(measure, jobs)))
        for name, unit in BENCHES.items():
            best = min if name == "latency" else max
            ours, rows, worst, at_4k = found[name, "adaptive", "16K", "auto"], [], (9.0, 0), 0.0
            for length in sorted(ours):
                def of(rtr):
                    return [(found[name, *static, kind][length], label + (", no RTR" if kind == "off" else ""))
                            for label, static in STATIC.items() for kind in rtr]
                top, label = best(of(("off", "auto")))
                plain, _ = best(of(("off",)))
                ratio = gain(name, ours[length], top)
                worst = min(worst, (ratio, length))
                if length == 4096:
                    at_4k = gain(name, ours[length], plain)
                mark = "" if ratio >= LEAST else " **missed**"
                rows.append(f"| {size(length)} | {ours[length]:.4g} | {top:.4g} | {label} | {ratio:.3f}{mark} "
                            f"| {gain(name, ours[length], plain):.3f} |")
            what = f"{fabric}, {name}: `adaptive` / the best static policy, at its worst size"
            self.target(what, f"≥ {LEAST}", LEAST, worst[0], size(worst[1]))
            least = {"bw": 1.1, "bibw": 1.3}.get(name)
            if least:
                self.target(f"{fabric}, {name} of 4 KiB / the best without RTR", f"≥ {least}", least, at_4k)
            if name == "bibw":
                long = [ours[length] for length in sorted(ours) if length >= 4096]
                dip = min(after / max(long[:at + 1]) for at, after in enumerate(long[1:]))
                self.target(f"{fabric}, bibw from 4 KiB on / that of any shorter message", "≥ 0.95", 0.95, dip)
            self.tables.append(f"## {fabric}, {name}, {unit}\n\n| size | adaptive | best static | which | ratio | / best without RTR |\n"
                               "| ---: | ---: | ---: | --- | ---: | ---: |\n" + "\n".join(rows))

    def unequal(self) -> None:
        worst = (9.0, "")
        for name in BENCHES:
            alone = sweep(self.prefix, name, "2x-unequal", RAILS="1")
            both = sweep(self.prefix, name, "2x-unequal")
            worst = min([worst, *((gain(name, both[length], alone[length]), f"{name}, {size(length)}") for length in alone)])
            if name == "bw":
                slow = bench(self.prefix, name, "2x-unequal-slow-first", "4M:4M", 16, RAILS="1")
                total = alone[4 << 20] + slow[4 << 20]
                self.target("2x-unequal (4:1), bw of 4 MiB / the sum of the rails", "≥ 0.95", 0.95, both[4 << 20] / total)
        self.target("2x-unequal, slow rail added to the fast one / the fast one alone, at its worst size", "≥ 0.99", 0.99, *worst)

    def eight(self) -> None:
        one = bench(self.prefix, "bw", "8xqdr", "4M:4M", 16, RAILS="1")[4 << 20]
        eight = bench(self.prefix, "bw", "8xqdr", "4M:4M", 16)[4 << 20]
        self.target("8xqdr, bw of 4 MiB / eight times one rail", "≥ 0.95", 0.95, eight / one / 8)

    def stream(self, program: Path, fabric: str, *words, span=(21, 31), window=64, length=1 << 18) -> float:
        """The rate from one millisecond to another."""
        command = [self.prefix / "bin/fishplate", "run", "-n", 2, "--fabric", fabric, *words, program, *span, window, length]
        return float(subprocess.run(list(map(str, command)), capture_output=True, check=True, text=True).stdout)

    def dead(self, program: Path) -> None:
        begin = 20 + TIMEOUT_MS + 200
        span = (begin, begin + 10)
        one = self.stream(program, "blog-qdr", span=span, window=8, length=1 << 20)
        for kind in ("down", "silent", "no-acks"):
            for rail in (0, 1):
                fault = f"host=0,rail={rail},{kind}=20ms.."
                found = self.stream(program, "blog-2xqdr", "--fault", fault, span=span, window=8, length=1 << 20)
                what = f"blog-2xqdr, rail {rail} dies ({kind}): 10 ms after the device's time-out ({TIMEOUT_MS} ms) and 0.2 s / one rail"
                self.target(what, "≥ 0.9", 0.9, found / one)

    def slowed(self, program: Path) -> None:
        def stream(fabric, *words, **more):
            return self.stream(program, fabric, *words, **more)
        for window, length in ((64, 1 << 18), (8, 1 << 20), (8, 1 << 18)):
            one = stream("blog-qdr", window=window, length=length)
            for rail in (0, 1):
                found = stream("blog-2xqdr", "--fault", f"host=0,rail={rail},rate=0.1@20ms..", window=window, length=length)
                what = f"blog-2xqdr, rail {rail} falls to a tenth: {window} messages of {size(length)} at a time, 1 to 11 ms after / 1.1 rails"
                self.target(what, "≥ 0.9", 0.9, found / one / 1.1)

    def page(self) -> str:
        rows = "\n".join(f"| {' | '.join(row)} |" for row in self.targets)
        return ("# Figures of several rails\n\n*By `make rails-figures`. Modelled machines, virtual time: every run gives the same figures. "
                "`adaptive` has its defaults.\nThe static policies have the same queue pairs, each with and without ready-to-receive "
                "announcements (RTR).*\n\n## Targets\n\n| what | wanted | found | met | at |\n| --- | --- | ---: | --- | --- |\n"
                f"{rows}\n\n" + "\n\n".join(self.tables) + "\n")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(options)
    options.add_argument("--out", type=Path, default=harness.ROOT / "docs/figures/rails.md")
    given = options.parse_args()
    prefix = given.prefix.resolve()
    figures = Figures(prefix)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        program = Path(folder) / "stream"
        subprocess.run([prefix / "bin/mpicc", "-O1", HERE / "stream.c", "-o", program], check=True)
        figures.dead(program)
        figures.slowed(program)
        figures.eight()
        figures.unequal()
        given.out.write_text(figures.page())
        for fabric in PAIRS:
            figures.pair(fabric, pool)
            given.out.write_text(figures.page())
    missed = [row for row in figures.targets if row[3] != "yes"]
    for row in figures.targets:
        print(" | ".join(row))
    print(f"{len(figures.targets) - len(missed)} passed, {len(missed)} failed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
