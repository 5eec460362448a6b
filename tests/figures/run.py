#!/usr/bin/env python3
"""Compares the figures of modelled machines, byte by byte, with those of this folder.

    tests/figures/run.py [--prefix build] [--short] [--only TEXT] [--list] [--update]

A modelled machine computes its time, so every run gives the same figures; a figure that changes is a change of behaviour. The JSON
of `bench`, `perf` and `study` holds no wall-clock time and no fact of this host, so nothing is left out of the comparison.
`--short` leaves out what takes longest and shows what others show too: the studies, more sizes on every machine, every choice of a protocol.
`--update` writes the figures of the prefix into this folder: for a change that is meant to change figures, and says so.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import difflib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

# Commands share no state, so two at a time are as good as one.
JOBS = 2
SECONDS = 600
# A host of each generation, for benchmarks that need not run on every system.
SOME = "qdr,2xqdr,mpich2-2003,ndr"
# Sizes that every machine of the catalogue is run with.
FEW = ("1K:1K", "256K:256K")
SHARED = ["--fabric", "qdr,mpich2-2003", "--ppn", 2]

# File, and the commands whose output it holds. `{all}` stands for every system of the catalogue. The longest come first.
TABLE = [
    ("study-dual-rail", [["study", "dual-rail", "--out", "build/dual-rail"]]),
    ("study-rdma-channel", [["study", "rdma-channel", "--out", "build/plots"]]),
    ("bench-every-choice", [["bench", "latency", "--fabric", "qdr,2xqdr", "-m", "1K:1M", "--every-choice"],
                            ["bench", "allreduce", "-n", 4, "--fabric", "qdr", "--ppn", 2, "-m", "8:64K", "--every-choice"]]),
    *[(f"bench-{name}-sizes", [*[["bench", name, "--fabric", "{all}", "-m", size] for size in ("8:8", "16K:16K")],
                               ["bench", name, "--fabric", SOME, "-m", "1:4M"]]) for name in ("bw", "latency")],
    ("bench-mbw-mr-4", [["bench", "mbw-mr", "-n", 4, "--fabric", SOME, "-m", "1:64K"]]),
    *[(f"bench-{name}", [["bench", name, "--fabric", "{all}", "-m", size] for size in FEW]) for name in ("bw", "latency")],
    ("bench-bibw", [["bench", "bibw", "--fabric", SOME, "-m", "1:1M"]]),
    ("bench-mbw-mr", [["bench", "mbw-mr", "-n", 2, "--fabric", SOME, "-m", "1:64K"]]),
    ("bench-sweep", [["bench", "sweep", "-n", 4, "--fabric", "qdr"]]),
    ("bench-sort", [["bench", "sort", "-n", 5, "--fabric", "qdr,mpich2-2003"]]),
    ("bench-shared-hosts", [["bench", "latency", *SHARED, "-m", "1:4M"], ["bench", "allreduce", "-n", 6, *SHARED, "-m", "4:256K"]]),
    *[(f"bench-{name}", [["bench", name, "-n", 5, "--fabric", SOME]]) for name in ("barrier", "bcast", "reduce", "allreduce", "gather",
                                                                                  "scatter", "allgather", "alltoall")],
    *[(f"perf-{name}", [["perf", name, "--fabric", SOME]])
      for name in ("write-lat", "write-bw", "read-lat", "read-bw", "send-lat", "send-bw", "atomic-lat", "msg-rate")],
    ("perf-transports", [["perf", name, "--fabric", "qdr", "--transport", transport]
                         for name, transport in [("write-bw", "uc"), ("send-lat", "uc"), ("send-lat", "ud"), ("send-bw", "ud"),
                                                 ("msg-rate", "ud")]]),
    ("perf-streams", [["perf", "write-bw", "--fabric", SOME, *words, "--size", "64K"]
                      for words in (["--qps", 4], ["--bidirectional"], ["--mtu", 256])]),
    ("perf-sockets", [["perf", name, "--fabric", SOME, "--ip", ip, "--size", size]
                      for name in ("tcp-lat", "tcp-bw", "udp-lat", "udp-bw") for ip in ("datagram", "connected") for size in (8, "32K")]),
    ("perf-faults", [["perf", name, "--fabric", "qdr", "--size", 4096, "--faults", HERE / "faults.toml", "--seed", seed]
                     for name in ("write-bw", "send-lat") for seed in (1, 2)]),
]

# The rows that `--short` leaves out. Each has a shorter one beside it, or is shown by a document whose commands a test runs.
LONG = {"study-dual-rail", "study-rdma-channel", "bench-every-choice", "bench-bw-sizes", "bench-latency-sizes", "bench-mbw-mr-4"}

# Pictures that documents show, and the commands' files that they are copies of.
PICTURES = {"study-dual-rail": (harness.ROOT / "build/dual-rail/bandwidth.svg", harness.ROOT / "docs/dual-rail.svg")}


def systems(fishplate: Path) -> str:
    lines = subprocess.run([fishplate, "fabric", "list", "--json"], capture_output=True, check=True).stdout
    listed = map(json.loads, lines.splitlines())
    return ",".join(part["name"] for part in listed if part["kind"] == "system")


def figures(fishplate: Path, commands: list) -> str:
    texts = []
    for command in commands:
        words = [word.format(all=systems(fishplate)) if isinstance(word, str) else str(word) for word in command]
        ran = harness.run([str(fishplate), *words, "--json"], seconds=SECONDS, cwd=harness.ROOT)
        if ran.code != 0:
            raise Problem(f"`fishplate {' '.join(words)} --json` ended with {ran.code}{harness.output(ran.err)}")
        lines = [line for line in ran.err.splitlines() if not line.startswith("fishplate: ")]
        if command[0] == "study" and lines:
            raise Problem(f"a study prints lines of its experiments on standard error{harness.output(ran.err)}")
        texts.append(ran.out)
    return "".join(texts)


def compare(name: str, commands: list, update: bool):
    def test(fishplate):
        file, found = HERE / f"{name}.jsonl", figures(fishplate, commands)
        if update:
            file.write_text(found)
        elif (wanted := file.read_text()) != found:
            changes = [line for line in difflib.unified_diff(wanted.splitlines(), found.splitlines(), "today", "now", lineterm="", n=0)]
            raise Problem(f"{sum(line.startswith('+{') for line in changes)} lines differ{harness.output(chr(10).join(changes))}")
        if name in PICTURES:
            drawn, shown = PICTURES[name]
            if update:
                shown.write_text(drawn.read_text())
            elif drawn.read_text() != shown.read_text():
                raise Problem(f"{shown.relative_to(harness.ROOT)} is not the picture that the command draws; `--update` replaces it")
    return test


def drawn(update: bool):
    """The pictures of README.md are what scripts/pictures.py draws."""
    def test(fishplate):
        with tempfile.TemporaryDirectory() as folder:
            into = harness.ROOT / "docs" if update else Path(folder)
            words = [sys.executable, harness.ROOT / "scripts/pictures.py", "--prefix", fishplate.parent.parent, "--into", into]
            ran = harness.run(list(map(str, words)), seconds=SECONDS)
            if ran.code != 0:
                raise Problem(f"scripts/pictures.py ended with {ran.code}{harness.output(ran.err)}")
            for name in ("explain.svg", "trace.svg"):
                if (into / name).read_text() != (harness.ROOT / "docs" / name).read_text():
                    raise Problem(f"docs/{name} is not what scripts/pictures.py draws; `--update` replaces it")
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="without the longest")
    parser.add_argument("--update", action="store_true", help="write the figures instead")
    options = parser.parse_args()
    table = [row for row in TABLE if not (options.short and row[0] in LONG)]
    cases = [Case(name, compare(name, commands, options.update)) for name, commands in table]
    cases.append(Case("pictures", drawn(options.update)))
    cases = [case for case in cases if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    return harness.run_suite("figures", cases, harness.checked_prefix(options.prefix) / "bin/fishplate", jobs=JOBS)


if __name__ == "__main__":
    sys.exit(main())
