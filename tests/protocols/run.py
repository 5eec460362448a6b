#!/usr/bin/env python3
"""Compares the protocols that messages take on modelled machines with the best ones that settings can force.

    tests/protocols/run.py [--prefix build] [--streams] [--programs [--derived]] [--page docs/figures/messages-choice.md] [--only TEXT]

`fishplate bench BENCHMARK --every-choice` forces each protocol in turn. Modelled machines compute their time, so a figure is exact
and the same in every run. A default of `latency` that takes more than 3 % longer than the best choice is a miss; those that are known
are listed in KNOWN, and any other fails the test. Streams (`--streams`) are reported, and never fail it: whether a send waits for its
receive is one fixed size for each path, so it cannot fit both. `--programs` runs whole programs under the default limit of eager messages and
under fixed ones (programs.py); `--derived` adds machines made from those of the catalogue.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import programs  # noqa: E402
from harness import Case, Problem  # noqa: E402

# `--quick`: one of each kind.
FEW = ["sdr", "2xqdr", "ndr"]
MACHINES = ["sdr", "ddr", "qdr", "2xqdr", "fdr", "edr", "hdr", "ndr"]
SIZES = "8:4M"
SECONDS = 600
# The default may take this many times as long as the best choice.
MOST = 1.03
# Points of `latency` whose choice is a miss, and why.
WAITS = "a ping-pong does not wait for the end of the read; loops in which the sender waits for it gain more than is lost here"
KNOWN = {"latency sdr 4096": WAITS, "latency fdr 8192": WAITS, "latency edr 8192": WAITS,
         "latency 2xqdr 2048": "an announced buffer needs no copy; its estimate includes the acknowledgement, for which a ping-pong does not wait"}


def points(fishplate: Path, benchmark: str, machine: str) -> list[dict]:
    words = [str(fishplate), "bench", benchmark, "--fabric", machine, "-m", SIZES, "--every-choice", "--json"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    if ran.returncode:
        raise Problem(f"`{' '.join(words)}` ended with {ran.returncode}{harness.output(ran.stderr)}")
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return [line for line in lines if "regret" in line]


def name(point: dict) -> str:
    return f"{point['benchmark']} {point['fabric']} {point['size']}"


def words_of(point: dict) -> str:
    best = next(choice for choice in point["choices"] if choice["choice"] == point["best"])
    return f"{name(point)}: {point['taken']} {point['default']['median']}, {point['best']} {best['median']}: {point['regret']:.2f}"


def test(fishplate: Path, benchmark: str, machine: str, results: list[dict]):
    def run(_):
        found = points(fishplate, benchmark, machine)
        results.extend(found)
        wrong = {name(point): point for point in found if point["regret"] > MOST}
        new = [words_of(point) for at, point in wrong.items() if at not in KNOWN]
        gone = [f"{known} is no miss any more: remove it from KNOWN" for known in KNOWN
                if known in map(name, found) and known not in wrong]
        worst = max(found, key=lambda point: point["regret"])
        note = f"{len(found)} points, {len(wrong)} misses, worst {words_of(worst)}"
        if benchmark == "latency" and (new or gone):
            raise Problem(f"{note}; not as known:\n" + "\n".join(new + gone))
        return note
    return run


def page(results: list[dict], of_programs: list[str]) -> str:
    text = ["# The choice among protocols of messages, measured", "",
            "Written by `tests/protocols/run.py --streams --page`: each protocol is forced in turn on modelled machines, and compared with "
            "the default. Two ranks on two hosts. A *miss* is a default that is more than 3 % worse than the best choice.", "",
            "| benchmark | points | misses | worst ratio | where |", "| --- | ---: | ---: | ---: | --- |"]
    for benchmark in dict.fromkeys(point["benchmark"] for point in results):
        own = [point for point in results if point["benchmark"] == benchmark]
        worst = max(own, key=lambda point: point["regret"])
        misses = sum(point["regret"] > MOST for point in own)
        text.append(f"| {benchmark} | {len(own)} | {misses} | {worst['regret']:.2f} | {worst['fabric']}, {worst['size']} B |")
    text += ["", "Most misses are sizes just below the limit up to which a send leaves at once. The limit is the length at which both ranks can go on as early "
             "after an announcement and a read by the receiver, whose end the sender waits for. Loops of programs take that time. A ping-pong does not "
             "wait for the end of the read, and a stream gains from reads because processors copy nothing: both would prefer reads earlier. One fixed size "
             "cannot serve all, and a sender that waits for a late receiver loses more than either gains: see Programs.", "",
             "## Misses", "", "Latencies in µs, rates in MB/s.", "", "| benchmark | machine | size | taken | default | best | its figure | ratio |",
             "| --- | --- | ---: | --- | ---: | --- | ---: | ---: |"]
    for point in sorted(results, key=lambda point: -point["regret"]):
        if point["regret"] > MOST:
            best = next(choice for choice in point["choices"] if choice["choice"] == point["best"])
            text.append(f"| {point['benchmark']} | {point['fabric']} | {point['size']} B | {point['taken']} | {point['default']['median']} | "
                        f"{point['best']} | {best['median']} | {point['regret']:.2f} |")
    return "\n".join([*text, *(["", *of_programs] if of_programs else [])]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(FEW)}")
    parser.add_argument("--streams", action="store_true", help="measure bw and bibw, too")
    parser.add_argument("--programs", action="store_true", help="measure whole programs, too")
    parser.add_argument("--derived", action="store_true", help="with --programs: on machines made from those of the catalogue, too")
    parser.add_argument("--page", type=Path, help="write a page about the results")
    options = parser.parse_args()
    fishplate = harness.checked_prefix(options.prefix) / "bin/fishplate"
    results: list[dict] = []
    benchmarks = ["latency", "bw", "bibw"] if options.streams else ["latency"]
    cases = [Case(f"choice of {benchmark} on {machine}", test(fishplate, benchmark, machine, results)) for benchmark in benchmarks
             for machine in (FEW if options.quick else MACHINES)]
    cases = [case for case in cases if case.wanted(options)]
    limits, rails = [], []
    if options.programs:
        cases += [case for case in programs.cases(options.derived, limits, rails) if case.wanted(options)]
    with tempfile.TemporaryDirectory() as scratch:
        world = programs.World(fishplate.parent.parent, Path(scratch)) if options.programs else None
        code = harness.run_suite("protocols", cases, world, jobs=2)
    if options.page:
        options.page.write_text(page(results, programs.page(limits, rails) if options.programs else []))
    return code


if __name__ == "__main__":
    sys.exit(main())
