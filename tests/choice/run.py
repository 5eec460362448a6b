#!/usr/bin/env python3
"""Compares the algorithms that collectives choose on modelled machines with the best ones of the table.

    tests/choice/run.py [--prefix build] [--whole] [--page docs/figures/collectives-choice.md] [--only TEXT] [--keep FILE]

Every algorithm of every collective is forced in turn (FISHPLATE_COLLECTIVES) for each machine, number of hosts, ranks per host
and size of the grid, and compared with the default choice. Modelled machines compute their time, so a figure is exact and the
same in every run. A default that takes more than 5 % longer than the best algorithm is a miss; the misses that are known are
listed in KNOWN, and any other fails the test. `--whole` measures the whole grid, which takes hours, `--page` writes the table of
what was measured, `--keep` keeps figures in a file, which a later run with the same library takes them from.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

JOBS = 2
SECONDS = 600
# A choice may take this many times as long as the best algorithm.
MOST = 1.05
# Iterations that are timed and those before them: connections are made and receives announced in the first ones.
ITERATIONS = ["-i", "4", "-x", "4"]

COLLECTIVES = ["barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall"]
# Hosts and ranks of each.
SMALL = {"machines": ["qdr", "ndr"], "shapes": [(4, 1), (2, 4)], "sizes": [8, 4 << 10, 64 << 10]}
WHOLE = {"machines": ["qdr", "fdr", "edr", "hdr", "ndr"],
         "shapes": [(2, 1), (2, 2), (2, 8), (2, 20), (3, 5), (4, 1), (4, 4), (4, 16), (8, 1), (8, 4), (16, 1), (16, 4), (32, 1),
                    (32, 2), (64, 1)],
         "sizes": [8, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20]}
# Points of the small grid whose choice is a miss, and why.
COPIES = "not examined: perhaps copies of the ranks' own blocks, which take time on modelled machines and have no cost"
KNOWN = {
    "reduce ndr 4x1 65536": "9 %: the cost of a binomial tree and of a k-ary one differ by less",
    "allreduce qdr 2x4 65536": COPIES,
    "allreduce ndr 4x1 65536": COPIES,
    "allreduce ndr 2x4 65536": COPIES,
    "gather qdr 2x4 65536": COPIES,
    "gather ndr 2x4 65536": COPIES,
    "allgather qdr 2x4 4096": COPIES,
    "allgather ndr 2x4 4096": COPIES,
    "bcast qdr 2x4 4096": "parts of 1 KiB: their copies are predicted to stay in caches, and do not quite",
}


class Bench:
    """Runs benchmarks, each once."""

    def __init__(self, fishplate: Path, keep: Path | None):
        self.fishplate, self.keep, self.lock = fishplate, keep, threading.Lock()
        self.known = json.loads(keep.read_text()) if keep and keep.exists() else {}

    def algorithms(self, collective: str) -> list[str]:
        """The names in the table, which the error for a wrong one lists."""
        env = os.environ | {"FISHPLATE_COLLECTIVES": f"{collective}=none-of-them"}
        words = [self.fishplate, "bench", collective, "--fabric", "qdr", "-n", "2", "--json"]
        ran = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
        found = re.search(r"it has ([a-z, -]+) \(MPI_ERR_ARG\)", ran.stderr)
        if not found:
            raise Problem(f"the algorithms of {collective} are not listed{harness.output(ran.stderr)}")
        return [name for name in found[1].strip().split(", ") if name != "shared"]

    def time(self, point: "Point", algorithm: str) -> float:
        """Microseconds; `algorithm` is empty for the default choice."""
        key = f"{point.name} {algorithm}"
        with self.lock:
            if key in self.known:
                return self.known[key]
        env = dict(os.environ)
        env.pop("FISHPLATE_COLLECTIVES", None)
        if algorithm:
            env["FISHPLATE_COLLECTIVES"] = f"{point.collective}={algorithm}"
        words = [str(self.fishplate), "bench", point.collective, "--fabric", point.machine, "-n", str(point.hosts * point.each), "--ppn",
                 str(point.each), *ITERATIONS, "--json"]
        if point.size:
            words += ["-m", f"{point.size}:{point.size}"]
        ran = subprocess.run(words, capture_output=True, text=True, env=env, timeout=SECONDS, check=False)
        if ran.returncode:
            raise Problem(f"`{' '.join(words)}` with FISHPLATE_COLLECTIVES={env.get('FISHPLATE_COLLECTIVES', '')} ended with "
                          f"{ran.returncode}{harness.output(ran.stderr)}")
        time = json.loads(ran.stdout.splitlines()[0])["median"]
        with self.lock:
            self.known[key] = time
        return time

    def taken(self, point: "Point") -> str:
        """The algorithm of the default choice, which the library names."""
        words = [str(self.fishplate), "bench", point.collective, "--fabric", point.machine, "-n", str(point.hosts * point.each), "--ppn",
                 str(point.each), "-i", "1", "-x", "0", "--json", "--explain"]
        if point.size:
            words += ["-m", f"{point.size}:{point.size}"]
        env = {name: value for name, value in os.environ.items() if name != "FISHPLATE_COLLECTIVES"}
        ran = subprocess.run(words, capture_output=True, text=True, env=env, timeout=SECONDS, check=False)
        explained = [line["explained"] for line in map(json.loads, ran.stdout.splitlines()) if "explained" in line]
        if not explained:
            raise Problem(f"`{' '.join(words)}` explains nothing{harness.output(ran.stderr)}")
        procedure = f"MPI_{point.collective.capitalize()}"
        choices = next(group["taken"] for group in explained[0]["alternatives"] if procedure in group["procedures"])
        # An allgather is chosen by the bytes of all blocks.
        size = point.size * (point.hosts * point.each if point.collective == "allgather" else 1)
        return [name for least, name in choices if least <= size][-1]

    def save(self) -> None:
        if self.keep:
            self.keep.write_text(json.dumps(self.known, indent=0))


class Point:
    """A collective with a size, on a machine with ranks on its hosts."""

    def __init__(self, collective, machine, hosts, each, size):
        self.collective, self.machine, self.hosts, self.each, self.size = collective, machine, hosts, each, size
        self.name = f"{collective} {machine} {hosts}x{each} {size}"


class Result:
    def __init__(self, point: Point, default: float, times: dict):
        self.point, self.default, self.times = point, default, times
        self.best = min(times, key=times.get)
        self.ratio = default / min(times[self.best], default)
        # An algorithm that does not work for the point leaves the default choice.
        taken = [name for name, time in times.items() if abs(time / default - 1) < 0.002 and name not in ("cached-ring", "direct")]
        self.taken = self.best if self.best in taken else (taken or [""])[-1]


def points(grid: dict, collectives: list[str]) -> list[Point]:
    shapes = [(machine, hosts, each) for machine in grid["machines"] for hosts, each in grid["shapes"]]
    return [Point(collective, *shape, size) for collective in collectives for shape in shapes
            for size in ([0] if collective == "barrier" else grid["sizes"])]


def measure(bench: Bench, point: Point, algorithms: list[str]) -> Result:
    times = {algorithm: bench.time(point, algorithm) for algorithm in algorithms}
    result = Result(point, bench.time(point, ""), times)
    result.taken = result.taken or bench.taken(point)
    return result


def is_wrong(result: Result) -> bool:
    return result.ratio > MOST


def test(bench: Bench, collective: str, grid: dict, results: list):
    def run(_):
        algorithms = bench.algorithms(collective)
        with ThreadPoolExecutor(JOBS) as pool:
            found = list(pool.map(lambda point: measure(bench, point, algorithms), points(grid, [collective])))
        bench.save()
        results.extend(found)
        wrong = {result.point.name: result for result in found if is_wrong(result)}
        new = [line(wrong[name]) for name in wrong if name not in KNOWN]
        names = {result.point.name for result in found}
        gone = [f"{name} is no miss any more: remove it from KNOWN" for name in KNOWN if name in names and name not in wrong]
        worst = max(found, key=lambda result: result.ratio)
        note = f"{len(found)} points, {len(wrong)} misses, worst {worst.ratio:.2f} ({worst.point.name})"
        if (new or gone) and grid is SMALL:
            raise Problem(f"{note}; not as known:\n" + "\n".join(new + gone))
        return note
    return run


def line(result: Result) -> str:
    return (f"{result.point.name}: {result.taken} takes {result.default:.1f} us, {result.best} {result.times[result.best]:.1f} us: "
            f"{result.ratio:.2f}")


def label(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB" if size >= 1 << 10 else f"{size} B" if size else ""


def page(results: list, grid: dict) -> str:
    """The page about a grid: a summary for each collective, then the misses, the worst first."""
    shapes = ", ".join(f"{hosts} × {each}" for hosts, each in grid["shapes"])
    sizes = ", ".join(map(label, grid["sizes"]))
    text = ["# The choice among algorithms of collectives, measured", "",
            "Written by `tests/choice/run.py --page` (`make choices` measures the whole grid): every algorithm of the table is forced in "
            "turn on modelled machines, and compared with the default choice. A *miss* is a default that takes more than 5 % longer than the best "
            "algorithm.", "",
            f"Machines: {', '.join(grid['machines'])}. Hosts × ranks of each: {shapes}. Sizes: {sizes}, counted as `fishplate bench` does: of the "
            "vector, or of one rank's block.", "", "| collective | points | misses | worst ratio | where | mean ratio |", "| --- | ---: | ---: | ---: | --- | ---: |"]
    for collective in COLLECTIVES:
        own = [result for result in results if result.point.collective == collective]
        if own:
            worst = max(own, key=lambda result: result.ratio)
            mean = sum(result.ratio for result in own) / len(own)
            misses = sum(map(is_wrong, own))
            text.append(f"| {collective} | {len(own)} | {misses} | {worst.ratio:.2f} | {worst.point.name} | {mean:.3f} |")
    text += ["", "## Misses", "", "| collective | machine | hosts × ranks | size | taken | µs | best | µs | ratio |",
             "| --- | --- | --- | ---: | --- | ---: | --- | ---: | ---: |"]
    for result in sorted(filter(is_wrong, results), key=lambda result: -result.ratio):
        point = result.point
        text.append(f"| {point.collective} | {point.machine} | {point.hosts} × {point.each} | {label(point.size)} | {result.taken} | "
                    f"{result.default:.1f} | {result.best} | {result.times[result.best]:.1f} | {result.ratio:.2f} |")
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--whole", action="store_true", help="measure the whole grid")
    parser.add_argument("--page", type=Path, help="write a page about the results")
    parser.add_argument("--keep", type=Path, help="keep figures in this file")
    parser.add_argument("--grid", type=json.loads, help="another grid, as JSON: machines, shapes, sizes")
    options = parser.parse_args()
    grid = options.grid or (WHOLE if options.whole else SMALL)
    bench = Bench(harness.checked_prefix(options.prefix) / "bin/fishplate", options.keep)
    results: list[Result] = []
    cases = [Case(f"choice of {name}", test(bench, name, grid, results)) for name in COLLECTIVES]
    cases = [case for case in cases if case.wanted(options)]
    code = harness.run_suite("choice", cases, None, jobs=1)
    if options.page:
        options.page.write_text(page(results, grid))
    return code


if __name__ == "__main__":
    sys.exit(main())
