#!/usr/bin/env python3
"""Compares docs/figures/scores.md and the errors that `fabric` keeps with fresh runs, and calibrates machines by outputs of benchmarks.

    tests/scores/run.py [--prefix build] [--long] [--update] [--only TEXT] [--list]

Modelled machines compute their time, so every run gives the same page. The statements of the studies and the longer
calibrations take minutes: with `--long` only.
`--update` writes page and errors in place of the comparison: for a change that is meant to change predictions. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import difflib
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

PAGE = harness.ROOT / "docs/figures/scores.md"
ERRORS = harness.ROOT / "crates/machines/fabric/data/accuracy.csv"
MEASURED = harness.ROOT / "examples/measured"
SAMPLES = ("perftest.txt", "figures.csv")
# Calibrations that take a minute or more; the first is a command of docs/user/studies.md, and so runs with the documents.
SLOW = ("osu.txt", "imb.txt")
SECONDS = 600
LONG = 6000
# Largest median error of figures of a modelled machine after a calibration by them, and largest error of other sizes, in percent.
FOUND_AGAIN, OTHERS = 2.0, 6.0


def fishplate(prefix: Path, *words, seconds=SECONDS, code=0):
    ran = harness.run([str(prefix / "bin/fishplate"), *map(str, words)], seconds=seconds, cwd=harness.ROOT)
    if ran.code != code:
        raise Problem(f"`fishplate {' '.join(map(str, words))}` ended with {ran.code}, not {code}{harness.output(ran.out + ran.err)}")
    return ran


def same(name: str, wanted: str, found: str) -> None:
    if wanted != found:
        changes = difflib.unified_diff(wanted.splitlines(), found.splitlines(), "today", "now", lineterm="", n=0)
        raise Problem(f"{name} differs from a fresh run; tests/scores/run.py --long --update writes it again"
                      f"{harness.output(chr(10).join(changes))}")


def part(name: str):
    """A part of the page equals a fresh run of it."""
    def test(prefix: Path) -> None:
        found = fishplate(prefix, "study", "scores", "--part", name, seconds=LONG).out
        page = PAGE.read_text()
        first = found.splitlines()[0]
        if first not in page.splitlines():
            raise Problem(f"docs/figures/scores.md has no {first}")
        own = page[page.index(first):]
        same("docs/figures/scores.md", own[:len(found)].rstrip(), found.rstrip())
    return test


def errors(prefix: Path) -> None:
    same(str(ERRORS.relative_to(harness.ROOT)), ERRORS.read_text(), fishplate(prefix, "study", "scores", "--errors").out)


def bounds(prefix: Path) -> str:
    """Intervals and words of docs/figures/scores.md, which equals a fresh run, keep their bounds where enough systems are known."""
    page = PAGE.read_text()
    section = lambda name: page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section("Intervals of nine in ten").splitlines() if line.startswith("| library")]
    missed = [row[:2] for row in rows if row[-1] != "met |"]
    if len(rows) != 12 or missed:
        raise Problem(f"{len(rows)} intervals of machines, of which these miss their bounds: {missed}")
    orders = section("Orders of machines").strip().splitlines()[-1]
    if not orders.endswith(": met."):
        raise Problem(f"orders of machines: {orders}")
    return orders


def calibrated(prefix: Path, *words) -> tuple[list, dict]:
    """The figures of a calibration and its machine."""
    lines = [json.loads(line) for line in fishplate(prefix, "fabric", "calibrate", *words, "--json").out.splitlines()]
    return [line for line in lines if "figure" in line], lines[-1]


def sample(name: str):
    """A sample becomes a machine that is nearer to its figures, that can be used, and that comes out again."""
    def test(prefix: Path) -> str:
        figures, machine = calibrated(prefix, "--from", MEASURED / name)
        again = fishplate(prefix, "fabric", "calibrate", "--from", MEASURED / name).out
        same(f"a second calibration by {name}", machine["file"].rstrip(), again.rstrip())
        squares = {key: sum(line["error_percent"][key] ** 2 for line in figures) for key in ("before", "after")}
        if squares["after"] > squares["before"]:
            raise Problem(f"the errors grow: {machine['median_percent']}, {machine['worst_percent']}")
        before, after = (machine["worst_percent"][key] for key in ("before", "after"))
        moved = machine["file"].count("inferred: the figures above")
        if not figures or moved > 7:
            raise Problem(f"{len(figures)} figures move {moved} values")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "mine.toml"
            file.write_text(machine["file"])
            fishplate(prefix, "fabric", "check", file)
            fishplate(prefix, "bench", "latency", "--fabric", file, "-m", "8:8")
        return f"at most {before:.0f} % before, {after:.0f} % after"
    return test


def found_again(prefix: Path) -> str:
    """Figures of a machine with other times are predicted from few of them, others than these among them."""
    with tempfile.TemporaryDirectory() as folder:
        other = Path(folder) / "other.toml"
        other.write_text('[system.other]\nfrom = "r620-fdr"\nhost.dma_read = { value = "900 ns", source = "assumed: a test" }\n'
                         'host.dma_write = { value = "300 ns", source = "assumed: a test" }\n')
        rows = {}
        for name, column in (("latency", "latency_us"), ("bw", "bandwidth_MB/s")):
            out = fishplate(prefix, "bench", name, "--fabric", other, "-m", "8:1M", "--json").out
            for line in map(json.loads, out.splitlines()):
                if "size" in line:
                    rows[line["size"], column] = line.get("median", line.get("value"))
        def table(sizes):
            lines = [f"{size},{rows[size, 'latency_us']},{rows[size, 'bandwidth_MB/s']}" for size in sizes]
            return "size,latency_us,bandwidth_MB/s\n" + "\n".join(lines) + "\n"
        few = Path(folder) / "few.csv"
        few.write_text(table((8, 16384, 1048576)))
        _, machine = calibrated(prefix, "--from", few, "--like", "r620-fdr")
        mine = Path(folder) / "mine.toml"
        mine.write_text(machine["file"])
        worst = 0.0
        for line in map(json.loads, fishplate(prefix, "bench", "latency", "--fabric", mine, "-m", "64:4K", "--json").out.splitlines()):
            if "size" in line:
                wanted = rows[line["size"], "latency_us"]
                worst = max(worst, abs(line.get("median", line.get("value")) / wanted - 1) * 100)
    if worst > OTHERS or machine["median_percent"]["after"] > FOUND_AGAIN:
        raise Problem(f"latencies of 64 B to 4 KiB are {worst:.1f} % off, the figures {machine['median_percent']}")
    return f"at most {worst:.1f} % off"


def contradicted(prefix: Path) -> None:
    """Figures beyond the hardware are named with file and line."""
    ran = fishplate(prefix, "fabric", "calibrate", "--from", MEASURED / "osu.txt", "--like", "ddr")
    if "osu.txt:22: osu_bw" not in ran.err and "osu.txt:23: osu_bw" not in ran.err or "contradicts the hardware of ddr" not in ran.err:
        raise Problem(f"no warning names the bandwidth that DDR does not have{harness.output(ran.err)}")


def wrong_lines(prefix: Path) -> None:
    """A line that cannot be understood is named."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "wrong.txt"
        for text, said in (("# OSU MPI Latency Test v5\n8 1.0\n16 fast\n", "wrong.txt:3: \"fast\""), ("nothing\n", "wrong.txt: it holds no figure")):
            file.write_text(text)
            ran = fishplate(prefix, "fabric", "calibrate", "--from", file, code=2)
            if said not in ran.err:
                raise Problem(f"expected was {said}{harness.output(ran.err)}")


def update(prefix: Path, full: bool) -> None:
    ERRORS.write_text(fishplate(prefix, "study", "scores", "--errors", seconds=LONG).out)
    if full:
        PAGE.write_text(fishplate(prefix, "study", "scores", seconds=LONG).out)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--long", action="store_true", help="compare the statements of the studies, too")
    parser.add_argument("--update", action="store_true", help="write the errors, and with --long the page")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    if options.update:
        update(prefix, options.long)
        return 0
    cases = [Case("errors by kind", errors), Case("page: figures", part("figures")), Case("intervals and words keep their bounds", bounds),
             *[Case(f"calibrate: {name}", sample(name)) for name in SAMPLES],
             Case("calibrate: a modelled machine is found again", found_again),
             Case("calibrate: figures beyond the hardware", contradicted), Case("calibrate: wrong lines", wrong_lines)]
    if options.long:
        cases += [*[Case(f"calibrate: {name}", sample(name)) for name in SLOW], Case("page: unseen", part("unseen")), Case("page: anchors", part("anchors")), Case("page: statements", part("statements"), seconds=LONG + 10)]
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    return harness.run_suite("scores", cases, prefix)


if __name__ == "__main__":
    sys.exit(main())
