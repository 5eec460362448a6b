#!/usr/bin/env python3
"""Predicts the times of programs on two shaped hosts from a ping-pong between them alone, and measures them.

    tests/tcp/applications.py pingpong [--prefix build] [--rounds 5]   measures the ping-pong: applications/pingpong.jsonl
    tests/tcp/applications.py predict [--prefix build]                 from it alone: applications/machine.toml, predictions.json
    tests/tcp/applications.py measure [--prefix build] [--rounds 7]    measures the programs: applications/measured.json
    tests/tcp/applications.py table                                    writes docs/figures/applications.md from these files

A prediction is made as `fishplate compare` makes it: with this machine's computing, recorded five times, on the modelled one; the median.
The null model beside it is computing + messages × latency + bytes / rate of the slowest rank. Each program prints the time of its main part.
Predictions are committed before anything but the ping-pong is measured. `measure` needs a quiet machine, the tests none.
"""

import argparse
import json
import re
import shlex
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import network  # noqa: E402
from harness import Case, Problem  # noqa: E402
from network import Hosts  # noqa: E402
from shapes import Shape  # noqa: E402

DATA = HERE / "applications"
PINGPONG, MACHINE = DATA / "pingpong.jsonl", DATA / "machine.toml"
PREDICTIONS, MEASURED = DATA / "predictions.json", DATA / "measured.json"
DOCUMENT = harness.ROOT / "docs/figures/applications.md"
EXAMPLES = harness.ROOT / "examples"
BASE = "tcp"
SLOW, FAST = Shape(200, 0.5), Shape(400, 0.25)
SHAPES = {"slow": SLOW, "fast": FAST}
# Round trips by the length of the message. The two long ones tell the rate, the short ones the time of a message.
SIZES = {8: 200, 64: 200, 256 << 10: 20, 1 << 20: 10}
SHORT, LONG = (8, 64), (256 << 10, 1 << 20)
RECORDINGS = 5
SECONDS = 300
# Limits of the absolute errors in percent: the median, and the worst.
MEDIAN, WORST = 5, 12
# Shares of the time in communication for which a program says something.
SHARES = (20, 80)


@dataclass(frozen=True)
class Program:
    """A program with its arguments and the shape of its network. `communicates` is for the reader."""

    words: str
    shape: str
    source: Path
    communicates: str

    @property
    def name(self) -> str:
        return f"{self.words}, {self.shape}"

    def command(self, prefix: Path) -> list:
        first, *rest = self.words.split()
        return [folder(prefix) / first, *rest]


def program(words: str, shape: str, communicates: str, sources: Path = DATA) -> Program:
    return Program(words, shape, sources / f"{words.split()[0]}.c", communicates)


def kernel(*words: str) -> Program:
    return program(*words, sources=EXAMPLES / "kernels")


PROGRAMS = [
    program("heat 1536 200", "slow", "edges of 12 KiB, a sum of 8 B in each step", EXAMPLES),
    program("heat 2048 100", "slow", "edges of 16 KiB, a sum of 8 B in each step", EXAMPLES),
    program("nbody 1600 40", "slow", "positions around a ring, 19 KiB"),
    program("bfs 600000 8 4", "slow", "irregular: MPI_Alltoallv of 0 to some 100 KiB, sums of 4 B"),
    program("sort 1000000 2", "slow", "one MPI_Alltoallv of some MiB"),
    program("kmeans 10000 64 100", "slow", "MPI_Allreduce of 8.5 KiB"),
    kernel("hpl 2500 64 1 2", "slow", "panels of up to 1.2 MiB, hidden behind computing"),
    kernel("lu W", "slow", "a wave of messages of 1.3 KiB, layers of points"),
    program("heat 1024 200", "fast", "edges of 8 KiB, a sum of 8 B in each step", EXAMPLES),
    program("nbody 2400 30", "fast", "positions around a ring, 28 KiB"),
    program("bfs 400000 8 4", "fast", "irregular, as above"),
    program("kmeans 5000 64 100", "fast", "MPI_Allreduce of 8.5 KiB"),
    kernel("mg A", "fast", "layers of 512 KiB down to some bytes"),
    kernel("cg A", "fast", "vectors of 56 KiB, sums of 8 B"),
    kernel("ft W", "fast", "MPI_Alltoall of 2 MiB"),
]
TIMES = (r"time ([0-9.]+) s", r"ranks: ([0-9.]+) s", r"in all, ([0-9.]+) s")


def folder(prefix: Path) -> Path:
    made = prefix / "tests" / "applications"
    made.mkdir(parents=True, exist_ok=True)
    return made


def compile_all(prefix: Path) -> None:
    for source in {program.source for program in PROGRAMS}:
        command = [prefix / "bin/mpicc", "-std=c11", "-O3", "-Wall", "-Wextra", "-o", folder(prefix) / source.stem, source, "-lm"]
        done = harness.run(list(map(str, command)), seconds=120)
        if done.code:
            sys.exit(f"{source} does not compile: {done.err}")


def printed(program: Program, ran: harness.Outcome) -> float:
    """The time that a program has printed, in seconds."""
    for pattern in TIMES:
        if ran.code == 0 and (found := re.search(pattern, ran.out)):
            return float(found[1])
    raise Problem(f"{program.name}: exit status {ran.code}" + harness.output(ran.out + ran.err))


def shape_cable(hosts: Hosts, shape: Shape) -> None:
    """Gives the cable its rate and delay. The cable's program keeps to them frame by frame; the kernel's token bucket would let the first
    frames after a pause pass at once."""
    hosts.order(0, "rate", shape.mbit)
    hosts.order(0, "delay", shape.ms)


# The ping-pong, and the machine that it makes.

def pingpong(prefix: Path, rounds: int) -> list[dict]:
    rows = []
    for shape in SHAPES.values():
        found = {size: [] for size in SIZES}
        with Hosts(prefix, kind="wire") as hosts:
            shape_cable(hosts, shape)
            for _ in range(rounds):
                for size, times in SIZES.items():
                    command = [prefix / "bin/fishplate", "bench", "latency", "-m", f"{size}:{size}", "-i", times, "-x", 10, "--rounds", 1, "--json",
                               "--launcher", shlex.join(map(str, hosts.launcher("{ranks}")))]
                    ran = harness.run(list(map(str, command)), seconds=SECONDS, env=hosts.environment())
                    if ran.code != 0:
                        raise Problem(f"ping-pong of {size} B: {ran.err}")
                    found[size].append(next(json.loads(line)["median"] for line in ran.out.splitlines() if '"size"' in line))
        rows += [shape.keys() | {"benchmark": "latency", "size": size, "median": statistics.median(all), "min": min(all), "max": max(all)}
                 for size, all in found.items()]
    return rows


def kept_pingpong() -> list[dict]:
    return [json.loads(line) for line in PINGPONG.read_text().splitlines()]


def rows_of(shape: Shape) -> dict[int, dict]:
    return {row["size"]: row for row in kept_pingpong() if row["rate"] == shape.keys()["rate"]}


def rate(shape: Shape) -> float:
    """Payload in MB/s: the slope of the ping-pong between its two long messages."""
    one, other = (rows_of(shape)[size]["median"] for size in LONG)
    return (LONG[1] - LONG[0]) / (other - one)


def machine(prefix: Path) -> str:
    """The file of the machines: each shape is calibrated by its own ping-pong."""
    return "\n".join(calibrated(prefix, name, shape) for name, shape in SHAPES.items())


def calibrated(prefix: Path, name: str, shape: Shape) -> str:
    stream = {"benchmark": "write-bw", "size": LONG[1], "median": rate(shape), "min": rate(shape), "max": rate(shape)}
    rows = [rows_of(shape)[size] for size in SHORT] + [shape.keys() | stream]
    given = folder(prefix) / f"pingpong-{name}.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [prefix / "bin/fishplate", "fabric", "calibrate", "--from", given, "--like", BASE, "--name", f"{name}-card"]
    ran = harness.run(list(map(str, command)), seconds=SECONDS)
    if ran.code != 0:
        raise Problem(ran.err)
    text = ran.out.replace(str(given), f"the ping-pong, {name}")
    return text + f'\n[system.{name}]\nfrom = "{name}-card"\nrails = [\n  {shape.rail()},\n]\n'


# Predictions

def recorded(prefix: Path, program: Program) -> tuple[float, dict]:
    """The time that a program prints on the modelled machine with computing recorded now, and the summary of its run."""
    with tempfile.TemporaryDirectory(dir=folder(prefix)) as scratch:
        summary = Path(scratch) / "summary.json"
        command = [prefix / "bin/fishplate", "run", "-n", 2, "--fabric", f"{MACHINE}:{program.shape}", "--compute", "measured", "--summary",
                   f"json={summary}", *program.command(prefix)]
        time = printed(program, harness.run(list(map(str, command)), seconds=SECONDS))
        return time, json.loads(summary.read_text())


def predictions(prefix: Path) -> dict:
    """Recordings in rounds over all programs, as the speed of this computer changes from minute to minute."""
    found = {program.name: [] for program in PROGRAMS}
    for _ in range(RECORDINGS):
        for program in PROGRAMS:
            found[program.name].append(recorded(prefix, program))
    return {program.name: predicted(program, found[program.name]) for program in PROGRAMS}


def predicted(program: Program, recordings: list) -> dict:
    times, summaries = zip(*recordings)
    middle = summaries[sorted(range(RECORDINGS), key=times.__getitem__)[RECORDINGS // 2]]
    shape = SHAPES[program.shape]
    latency, payload = rows_of(shape)[8]["median"] * 1e-6, rate(shape) * 1e6
    # The slowest rank of the whole run; what lies outside of the main part is computing, and goes off again.
    sent = {rank: [0, 0] for rank in range(2)}
    for sender, _, messages, size in middle["matrix"]:
        sent[sender][0] += messages
        sent[sender][1] += size
    computing = max(rank["compute_s"] for rank in middle["per_rank"])
    outside = middle["virtual_s"] - statistics.median(times)
    inside = max(computing - outside, 0.0)
    bare = max(messages * latency + size / payload for messages, size in sent.values())
    time = statistics.median(times)
    return {"time": time, "least": min(times), "most": max(times), "computing": inside, "null": inside + bare,
            "communicating": 100 * (1 - min(inside / time, 1))}


# Measurements

def measured(prefix: Path, rounds: int) -> dict:
    found = {program.name: [] for program in PROGRAMS}
    for number in range(rounds):
        for program in PROGRAMS:
            with Hosts(prefix, kind="wire") as hosts:
                shape_cable(hosts, SHAPES[program.shape])
                found[program.name].append(printed(program, hosts.job(2, *program.command(prefix), seconds=SECONDS)))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


def errors(which: str) -> dict[str, float]:
    """The error of each program in percent: of `time`, the prediction, or of `null`, the null model."""
    kept, found = files()
    return {name: 100 * (values[which] / statistics.median(found[name]) - 1) for name, values in kept.items()}


def files() -> tuple[dict, dict]:
    return json.loads(PREDICTIONS.read_text()), json.loads(MEASURED.read_text())


HEAD = """# Applications: prediction against reality

*By `tests/tcp/applications.py`.* Two hosts with one rank each: network namespaces of one machine with two cores, between them a cable, a program (`wire.c`) that
gives it rate and delay. {shapes}. A ping-pong of 8 B to 1 MiB between the hosts is all that the modelled machine knows of
them (`tests/tcp/applications/machine.toml`); the computing of each program was recorded on the same machine, as `fishplate compare` does it. The
predictions were committed before the programs ran on the hosts.

The null model is what one would compute by hand: computing + messages × latency + bytes / rate of the slower rank, with the same computing.
"Spread" is (most − least) / median of the measured times, {rounds} rounds on a machine that did nothing else.

"""


def table() -> str:
    kept, found = files()
    rounds = len(next(iter(found.values())))
    names = {"slow": "*slow*", "fast": "*fast*"}
    words = "; ".join(f"{names[name]} is {shape.mbit:g} Mb/s with {shape.ms:g} ms one way" for name, shape in SHAPES.items())
    lines = ["| program, network | communicates | in MPI | predicted | measured | spread | error | null model |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    ours, null = errors("time"), errors("null")
    for program in PROGRAMS:
        values, times = kept[program.name], found[program.name]
        middle = statistics.median(times)
        spread = 100 * (max(times) - min(times)) / middle
        lines.append(f"| {program.name} | {program.communicates} | {values['communicating']:.0f} % | {values['time']:.3g} s | {middle:.3g} s | "
                     f"{spread:.0f} % | {ours[program.name]:+.1f} % | {null[program.name]:+.1f} % |")
    low, high = SHARES
    inside = [name for name, values in kept.items() if low <= values["communicating"] <= high]

    def summed(errors: dict, names) -> tuple[float, float]:
        sizes = sorted(abs(errors[name]) for name in names)
        return statistics.median(sizes), sizes[-1]

    def verdict(value: float, limit: float) -> str:
        return f"limit {limit} %: met" if value <= limit else f"limit {limit} %: **missed**"

    (median, worst), (null_median, null_worst) = summed(ours, inside), summed(null, inside)
    text = HEAD.format(shapes=words, rounds=rounds) + "\n".join(lines) + "\n\n"
    text += (f"Absolute errors of the {len(inside)} rows with {low} to {high} % of the time in MPI: median {median:.1f} % ({verdict(median, MEDIAN)}), "
             f"worst {worst:.1f} % ({verdict(worst, WORST)}). The null model: median {null_median:.1f} %, worst {null_worst:.1f} %.")
    median, worst = summed(ours, kept)
    null_median, null_worst = summed(null, kept)
    return text + f" Of all {len(kept)} rows: median {median:.1f} %, worst {worst:.1f} %; the null model {null_median:.1f} % and {null_worst:.1f} %.\n"


# Tests: the files agree with each other, and with the library as it is.

def machine_is_the_fit(world) -> None:
    if machine(world.prefix) != MACHINE.read_text():
        raise Problem(f"{MACHINE} is not what `fabric calibrate` makes of {PINGPONG}")


def every_program_is_there(_) -> str:
    kept, found = files()
    wanted = [program.name for program in PROGRAMS]
    if list(kept) != wanted or list(found) != wanted:
        raise Problem(f"predictions of {list(kept)}, measurements of {list(found)}")
    return f"{len(wanted)} programs"


def document_is_made(_) -> None:
    if not DOCUMENT.read_text().startswith(table()):
        raise Problem(f"{DOCUMENT} is not what `tests/tcp/applications.py table` writes")


def tests() -> list[Case]:
    return [
        Case("applications: the machine is the fit", machine_is_the_fit),
        Case("applications: every program has its figures", every_program_is_there),
        Case("applications: the document is made of the files", document_is_made),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["pingpong", "predict", "measure", "table"])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int)
    options = parser.parse_args()
    if options.action == "table":
        rest = DOCUMENT.read_text().partition("\n## ")[1:] if DOCUMENT.exists() else ("", "")
        DOCUMENT.write_text(table() + "".join(rest))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    compile_all(prefix)
    if options.action == "predict":
        MACHINE.write_text(machine(prefix))
        found = predictions(prefix)
        for name, values in found.items():
            print(name, json.dumps({key: round(value, 4) for key, value in values.items()}))
        PREDICTIONS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
        return 0
    if reason := network.missing():
        sys.exit(reason)
    network.remove_leftovers()
    if options.action == "pingpong":
        PINGPONG.write_text("".join(json.dumps(row) + "\n" for row in pingpong(prefix, options.rounds or 5)))
    else:
        MEASURED.write_text(json.dumps(measured(prefix, options.rounds or 7), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
