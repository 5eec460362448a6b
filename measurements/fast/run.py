#!/usr/bin/env python3
"""Compares replays by the fast way with those by the exact way: virtual times, and the processor time that computes them.

    measurements/fast/run.py [--prefix build] [--ranks 8,64] [--page FILE] [TRACE...]

Without traces it makes those of all patterns of `trace make`, for each number of ranks and three lengths of messages. Each is replayed by both
ways on two machines, with one rank on a host and with four. The last lines are the median and the greatest difference with one rank on a host
and with several. `--page` writes the tables as a page."""

import argparse
import json
import re
import resource
import subprocess
import tempfile
from pathlib import Path
from statistics import median

PATTERNS = ["halo3d", "halo2d", "allreduce", "alltoall", "ring", "sweep", "shift", "permutation", "nto1"]
MACHINES = ["edr", "2xqdr"]
# The length of messages in bytes, and the computing of a step in nanoseconds.
LENGTHS = [(8, 0), (1024, 5_000), (65536, 20_000)]
PER_HOST = [1, 4]
# Steps so that a replay has about as many messages as one of 8 ranks with 100 steps, and some steps at least.
STEPS, RANKS, LEAST = 100, 8, 10


def replay(fishplate: Path, trace: Path, machine: str, per_host: int, way: list) -> tuple:
    """Virtual time in seconds, messages, and processor time in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with tempfile.NamedTemporaryFile() as summary:
        command = [fishplate, "run", "--fabric", machine, "--ppn", str(per_host), *way, "--summary", f"json={summary.name}", "--", trace]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise SystemExit(f"{trace} on {machine}: {ran.stderr.strip()}")
        found = json.loads(Path(summary.name).read_text())
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return found["virtual_s"], found["messages"]["count"], used


def patterns(fishplate: Path, folder: Path, ranks: list):
    for count in ranks:
        for pattern in PATTERNS:
            for length, computing in LENGTHS:
                file = folder / f"{pattern}-{count}-{length}.trace"
                steps = max(LEAST, STEPS * RANKS // count)
                subprocess.run([fishplate, "trace", "make", pattern, "-n", str(count), "--steps", str(steps), "--size", str(length),
                                "--compute", str(computing), "-o", file], check=True, capture_output=True)
                yield f"{pattern} of {length} B", count, file


def given(fishplate: Path, files: list):
    for file in files:
        shown = subprocess.run([fishplate, "trace", "show", file], check=True, capture_output=True, text=True).stdout
        yield file.stem, int(re.search(r" on (\d+) ranks", shown)[1]), file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=Path("build"))
    parser.add_argument("--ranks", default="8,64")
    parser.add_argument("--page", type=Path, metavar="FILE")
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    options = parser.parse_args()
    fishplate = options.prefix / "bin/fishplate"
    rows, differences, used, all_messages = [], {False: [], True: []}, [0.0, 0.0], 0
    with tempfile.TemporaryDirectory() as folder:
        counts = [int(count) for count in options.ranks.split(",")]
        traces = given(fishplate, options.traces) if options.traces else patterns(fishplate, Path(folder), counts)
        for name, count, file in traces:
            for machine in MACHINES:
                for per_host in [one for one in PER_HOST if one < count]:
                    exact, messages, slow = replay(fishplate, file, machine, per_host, [])
                    fast, same, quick = replay(fishplate, file, machine, per_host, ["--fast"])
                    # Members agree on a new communicator by other messages than in the library.
                    other = f" ({same - messages:+} messages)" if messages != same else ""
                    change = fast / exact - 1
                    differences[per_host > 1].append(abs(change))
                    used, all_messages = [used[0] + slow, used[1] + quick], all_messages + messages
                    rows.append(f"| {name} | {count} | {machine} | {per_host} | {exact * 1e3:.3f} ms | "
                                f"{change * 100:+.1f} %{other} |")
                    print(rows[-1], flush=True)
    sums = [f"| {'several ranks' if several else 'one rank'} on a host | {len(all_of)} | {median(all_of) * 100:.1f} % | {max(all_of) * 100:.1f} % |"
            for several, all_of in differences.items() if all_of]
    costs = [f"{time / max(all_messages, 1) * 1e6:.1f} µs" for time in used]
    text = "\n".join(["| replays | number | median difference | greatest |", "| --- | --- | --- | --- |", *sums, "",
                      f"{all_messages} messages took {costs[0]} of processor time each by the exact way and {costs[1]} by the fast way, the start "
                      "included."])
    print(text)
    if options.page:
        head = ["# The fast way beside the exact way", "", "*By `python3 measurements/fast/run.py --page docs/figures/fast-way.md`. Virtual times; "
                "the difference is that of the fast way.*", ""]
        table = ["", "| trace | ranks | machine | ranks on a host | exact | difference |", "| --- | --- | --- | --- | --- | --- |", *rows]
        options.page.write_text("\n".join([*head, text, *table, ""]))


if __name__ == "__main__":
    main()
