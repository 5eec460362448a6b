#!/usr/bin/env python3
"""Measures the simulator at scale: processor time, memory, and the same allreduces in SMPI, another simulator of MPI.

    measurements/simulator/run.py [--prefix build] [--only TEXT] [--list] [--rounds 3] [--huge] [--write docs/figures/simulator.md]
    measurements/simulator/run.py --scale [--rounds 3] [--huge] [--write docs/figures/simulator.md]

`--scale` measures coroutines by number of ranks alone, and writes that part of the page; it needs the example `simulated` and nothing else.

What is compared runs alternately, in rounds, and each figure is a median. Processor time is that of all processes of a command. SMPI
is that of the packages libsimgrid-dev and simgrid; without it its rows say that they were left out. `--huge` adds 11,664 ranks, which
take minutes and some GiB. The last line is `N met, N missed, N left out`; a missed target is a result, so the exit status is 0.
"""

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402

# The modelled machine of every row but the last.
MACHINE = "edr"
SECONDS = 600
HANDOVERS = 200_000
MESSAGES = 40_000
# An allreduce of 8 bytes by recursive doubling: this many messages of each of 1,024 ranks.
STEPS = 10
ALLREDUCES = 10
GIB = 1 << 30
# Programs of the example `simulated` by number of ranks, each with a number of repetitions.
SCALE = [(program, ranks, 10) for program in ("allreduce", "halo3d") for ranks in (64, 1024, 4096)]
HUGE_SCALE = [("allreduce", 16_384, 10), ("halo3d", 16_384, 10)]
COROUTINES = harness.ROOT / "target/release/examples/simulated"
# The beginning and the end of the page's part about numbers of ranks.
SCALE_PART = re.compile(r"## Coroutines by number of ranks\n.*?\n\n(?=Known of )", re.DOTALL)
FOUR = "qdr,2xqdr,fdr,edr"

PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="host-" suffix="" radical="0-{last}" speed="10Gf" bw="12.5GBps" lat="500ns"/>
</platform>
"""


class LeftOut(Exception):
    """The reason why a row is not measured."""


@dataclass
class Cost:
    """What a command took: processor time and wall-clock time in seconds, and the memory of its largest process in bytes."""

    cpu: float
    wall: float
    memory: int


@dataclass
class Row:
    what: str
    # Measures, and returns the figure, its reference ("" without one), the target's figure, and the unit.
    measure: Callable
    target: str


def cost(command: list, **options) -> Cost:
    """Runs a command in a child of its own, so that nobody else's processes count."""
    with tempfile.TemporaryFile() as output:
        began = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   start_new_session=True, **options)
        try:
            code, usage = waited(process, began)
        finally:
            harness.kill_session(process.pid)
        wall = time.monotonic() - began
        output.seek(0)
        text = output.read().decode(errors="replace")
    if code != 0:
        raise harness.Problem(f"`{' '.join(map(str, command))}` ended with {code}{harness.output(text)}")
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss << 10)


def waited(process: subprocess.Popen, began: float):
    """The exit status of a process, and its usage with that of the children for which it waited."""
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage
        if time.monotonic() - began > SECONDS:
            raise harness.Problem(f"no end after {SECONDS} s")
        time.sleep(harness.POLL_SECONDS)


class Bench:
    """The programs, built once, and the medians of what was measured."""

    def __init__(self, prefix: Path, rounds: int):
        self.prefix, self.rounds = prefix, rounds
        self.out = harness.ROOT / "build" / "simulator"
        self.out.mkdir(parents=True, exist_ok=True)
        self.coroutines = checked_coroutines()
        for name in ("ping_pong", "allreduce"):
            build([prefix / "bin/mpicc", "-O2", HERE / f"{name}.c", "-o", self.out / name])
        build([prefix / "bin/mpicc", "-O2", harness.ROOT / "examples/heat.c", "-o", self.out / "heat", "-lm"])
        build(["cc", "-O2", HERE / "handover.c", "-o", self.out / "handover"])
        self.smpi = shutil.which("smpicc") and shutil.which("smpirun")
        if self.smpi:
            build(["smpicc", "-O2", HERE / "allreduce.c", "-o", self.out / "allreduce-smpi"])

    def processes(self, ranks: int, name: str, times: int) -> list:
        return [self.prefix / "bin/mpiexec", "-n", ranks, "--fabric", MACHINE, self.out / name, times]

    def peer(self, ranks: int, times: int) -> list:
        if not self.smpi:
            raise LeftOut("no SMPI here: apt-get install libsimgrid-dev simgrid")
        file = self.out / f"cluster-{ranks}.xml"
        file.write_text(PLATFORM.format(last=ranks - 1))
        return ["smpirun", "-np", ranks, "-platform", file, "--cfg=smpi/simulate-computation:no", "--log=root.thres:error",
                self.out / "allreduce-smpi", times]

    def cpu(self, *commands: list) -> list[float]:
        """Medians of the processor time of commands, which run alternately."""
        rounds = [[cost(command).cpu for command in commands] for _ in range(self.rounds)]
        return [statistics.median(column) for column in zip(*rounds)]

    def handover(self):
        few, many, bare = self.cpu(self.processes(2, "ping_pong", 2), self.processes(2, "ping_pong", MESSAGES),
                                   [self.out / "handover", HANDOVERS])
        bare = bare / HANDOVERS * 1e6
        return (many - few) / (MESSAGES - 2) * 1e6, f"{bare:.2f} µs a bare handover", bare + 1.2, "µs"

    def two_coroutines(self):
        few, many = self.cpu([self.coroutines, "ping-pong", 2], [self.coroutines, "ping-pong", MESSAGES])
        return (many - few) / (MESSAGES - 2) * 1e6, "", 0.4, "µs"

    def many_coroutines(self):
        few, many = self.cpu(*([self.coroutines, "allreduce", 1024, times] for times in (ALLREDUCES, 3 * ALLREDUCES)))
        return (many - few) / (2 * ALLREDUCES * 1024 * STEPS) * 1e6, "", 0.8, "µs"

    def against(self, own: list, ranks: int, most: float):
        ours, theirs = self.cpu(own, self.peer(ranks, ALLREDUCES))
        return ours / theirs, f"{ours:.2f} s, SMPI {theirs:.2f} s", most, "×"

    def start(self):
        (ours,) = self.cpu(self.processes(1024, "allreduce", 0))
        return ours, "", 1.5, "s"

    def memory(self, huge: bool):
        if not huge:
            raise LeftOut("`--huge` measures it")
        found = cost([self.coroutines, "allreduce", 11_664, 1])
        return found.memory / GIB, f"{found.cpu:.0f} s of processor time", 8, "GiB"

    def compare(self):
        record = self.out / "heat.traces"
        fishplate = [self.prefix / "bin/fishplate", "compare", "--fabrics"]
        once = cost([*fishplate, "qdr", "-n", 64, "--json", "--record", record, self.out / "heat", 256, 100])
        again = cost([*fishplate, FOUR, "--json", record])
        return again.wall, f"{once.wall:.1f} s with the recording, on one machine", 60, "s"


def checked_coroutines() -> Path:
    if not COROUTINES.exists():
        raise SystemExit(f"{COROUTINES} is missing: run `cargo build --release -p mpi --example simulated`")
    return COROUTINES


def scale_row(program: str, ranks: int, times: int, rounds: int) -> str:
    """A row of the table by number of ranks: the round with the median of the whole time."""
    command = [checked_coroutines(), program, str(ranks), str(times)]
    found = []
    for _ in range(rounds):
        text = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS).stdout
        numbers = re.search(r"started ([0-9.]+) s, connected ([0-9.]+) s, ended ([0-9.]+) s, (\d+) packets a second, (\d+) KiB", text)
        if not numbers:
            raise harness.Problem(f"`{' '.join(map(str, command))}` printed no figures{harness.output(text)}")
        found.append(numbers.groups())
    found.sort(key=lambda figures: float(figures[2]))
    started, connected, ended, rate, memory = found[(len(found) - 1) // 2]
    return f"| {program} × {times} | {ranks:,} | {started} s | {connected} s | {ended} s | {int(rate):,} | {memory} KiB |"


def scale_part(rounds: int, huge: bool) -> str:
    """The page's part about numbers of ranks."""
    lines = []
    for case in SCALE + (HUGE_SCALE if huge else []):
        lines.append(scale_row(*case, rounds))
        print(lines[-1], flush=True)
    return f"""## Coroutines by number of ranks

`simulated PROGRAM RANKS TIMES`: processor time until the last rank had started, until the last rank had done its first repetition, which makes
connections, and until the end; packets with data a second of all this; resident memory a rank. `allreduce` has 8 bytes; a step of `halo3d` exchanges
faces of 1 KiB with six neighbours in a periodic grid and ends with an allreduce. One rank a host, from 11,665 ranks on two. Each row is the round of
median time of {rounds} (of two, the shorter one), on {processor()}, load average over five minutes {os.getloadavg()[1]:.1f}.

| program | ranks | started | connected | ended | packets a second | memory a rank |
| --- | ---: | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(lines)}

"""


def build(command: list) -> None:
    subprocess.run([str(word) for word in command], check=True)


def rows(bench: Bench, huge: bool) -> list[Row]:
    def coroutines(ranks):
        return [bench.coroutines, "allreduce", ranks, ALLREDUCES]
    ten = f"8-B allreduce × {ALLREDUCES}"
    return [
        Row("8-B ping-pong, 2 processes, processor time a message", bench.handover, "at most a bare futex handover + 1.2 µs"),
        Row("8-B ping-pong, 2 coroutines, processor time a message", bench.two_coroutines, "at most 0.4 µs"),
        Row("8-B allreduces, 1,024 coroutines, processor time a message", bench.many_coroutines, "at most 0.8 µs"),
        Row("Init and Finalize, 1,024 processes, processor time", bench.start, "at most 1.5 s"),
        Row(f"{ten}, 1,024 processes, processor time with the start",
            lambda: bench.against(bench.processes(1024, "allreduce", ALLREDUCES), 1024, 3), "at most 3 × SMPI's"),
        Row(f"{ten}, 1,024 coroutines, processor time with the start", lambda: bench.against(coroutines(1024), 1024, 0.4),
            "at most 0.4 × SMPI's"),
        Row(f"{ten}, 4,096 coroutines, processor time with the start", lambda: bench.against(coroutines(4096), 4096, 0.1),
            "at most 0.1 × SMPI's"),
        Row("8-B allreduce, 11,664 coroutines, memory", lambda: bench.memory(huge), "at most 8 GiB"),
        Row("`compare` of examples/heat.c, 64 ranks, four machines, from a record", bench.compare, "under 60 s"),
    ]


def measured(row: Row) -> tuple[str, str]:
    """The row of the table, and whether the target was met."""
    try:
        figure, beside, most, unit = row.measure()
    except LeftOut as why:
        return f"| {row.what} | {row.target} | – | left out | {why} |", "left out"
    met = figure <= most
    return f"| {row.what} | {row.target} | {figure:.2f} {unit} | {'yes' if met else '**no**'} | {beside} |", "met" if met else "missed"


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def page(lines: list[str], tally: str, rounds: int, scale: str) -> str:
    cpu = processor()
    load = os.getloadavg()[1]
    return f"""# The simulator at scale

What a modelled run costs the computer that runs it. `make bench-simulator` measures all of it here and now, and writes this page.

Ranks are processes where a program runs under `mpiexec --fabric`, and coroutines of one process where a study or a test runs its own
ranks (`crates/library/mpi/examples/simulated.rs`). The machine is `{MACHINE}`, one rank a host. A bare handover (`measurements/simulator/handover.c`) is
one process that wakes another by a futex and then waits. SMPI is the simulator of Debian's libsimgrid-dev; it runs the same program,
`measurements/simulator/allreduce.c`, on a cluster of as many hosts, with computing left out. What is compared runs alternately, {rounds} times;
figures are medians, and processor time is that of all processes of a command.

Measured on {cpu}, {os.cpu_count()} processors, Linux {platform.release()}, load average over five minutes {load:.1f}:

| what | wanted | measured | met | beside it |
| --- | --- | ---: | --- | --- |
{chr(10).join(lines)}

{tally}.

{scale}Known of the misses: a message of the coroutines costs more the more ranks there are, with the same code, 10,000 to 14,000 instructions. Each message is one
turn of a rank, and a turn finds nothing of its rank in the caches once some hundred ranks share them: with 512 ranks a message misses a second-level cache of 1
MiB 149 times for a read and 89 times for a write (callgrind), on lines of the stack, of the connection, of tables and of the modelled HCA, no structure with
more than a few. A profile has no function above an eighth: the whole path of a message runs, from MPI to the modelled HCA, where SMPI computes one flow. The
start of a job makes 10 connections for each rank of 1,024, each with two rings, of which the touched pages count: 40 of the 72 that a rank writes to. What
still grows with the square of the number of ranks is that each rank asks its transport once for the abilities of each peer, and computes the costs of trees
over all members.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of each command (default: 3)")
    parser.add_argument("--huge", action="store_true", help="measure 16,384 ranks too")
    parser.add_argument("--scale", action="store_true", help="measure coroutines by number of ranks alone")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page")
    options = parser.parse_args()
    if options.scale:
        part = scale_part(options.rounds, options.huge)
        if options.write:
            text, found = SCALE_PART.subn(lambda _: part, options.write.read_text())
            if not found:
                raise SystemExit(f"{options.write} has no part about numbers of ranks")
            options.write.write_text(text)
        return 0
    bench = Bench(harness.checked_prefix(options.prefix), options.rounds)
    wanted = [row for row in rows(bench, options.huge) if options.only in row.what]
    if options.list:
        print("\n".join(row.what for row in wanted))
        return 0
    lines, results = [], []
    for row in wanted:
        line, result = measured(row)
        print(line, flush=True)
        lines.append(line)
        results.append(result)
    tally = ", ".join(f"{results.count(result)} {result}" for result in ("met", "missed", "left out"))
    if options.write:
        options.write.write_text(page(lines, tally, options.rounds, scale_part(options.rounds, options.huge)))
    print(tally)
    return 0


if __name__ == "__main__":
    sys.exit(main())
