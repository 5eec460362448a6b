"""Shaped rails between two hosts, and the figures by which the model is compared with them.

A shape is a rate, by the kernel's token bucket (`tc tbf`) at either end, and a delay, by the cable (wire.c). A figure is one number of a
job on two hosts: the same command gives it on real rails and on a modelled machine.
"""

import json
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
from harness import Problem  # noqa: E402
from network import Hosts  # noqa: E402
from kernels import run as kernels  # noqa: E402

DATA = HERE / "shaped"
# The bucket of a shaper holds two frames, so frames follow each other as on a link of that rate.
BUCKET = "3100"
# Bytes that wait for the shaper. TCP itself keeps fewer there, so none is lost.
QUEUE = "4mb"
# Messages on their way in a figure of bandwidth, by their length: some MiB together.
WINDOWS = {64 << 10: 64, 1 << 20: 4, 4 << 20: 2}
# Windows that are timed, after one that is not; round trips that are timed, after some that are not.
REPEATED = {"latency": ("-i", 200, "-x", 20), "bandwidth": ("-i", 2, "-x", 1)}


@dataclass(frozen=True)
class Shape:
    """A rail's rate in Mbit/s, headers included, and its delay in ms, one way."""

    mbit: float
    ms: float

    def __str__(self) -> str:
        return f"{self.mbit:g} Mb/s, {self.ms:g} ms"

    def keys(self) -> dict:
        """The keys that tell `fabric calibrate` the shape of a measurement."""
        return {"rate": f"{self.mbit:g} Mb/s", "delay": f"{self.ms:g} ms"}

    def rail(self) -> str:
        """A rail of this shape in a file of a modelled machine."""
        return f'{{ socket = 0, hca.link.lane = "{self.mbit:g} Mb/s", cable = {{ length = "0 m", conversion = "{self.ms:g} ms" }} }}'


@dataclass(frozen=True)
class Figure:
    """One number: `what` is latency, bandwidth or a kernel; `size` is that of the messages, or 0."""

    what: str
    size: int
    rails: tuple

    @property
    def unit(self) -> str:
        return {"latency": "µs", "bandwidth": "MB/s"}.get(self.what, "s")

    def __str__(self) -> str:
        rails = " + ".join(map(str, self.rails))
        sizes = {0: "", 8: " of 8 B", 64: " of 64 B", 64 << 10: " of 64 KiB", 1 << 20: " of 1 MiB", 4 << 20: " of 4 MiB"}
        return f"{rails}: {self.what}{sizes[self.size]}"

    def value(self, prefix: Path, bench, run) -> float:
        """The number, by a job that `bench(words)` or `run(words)` starts. Both give its outcome."""
        if self.what in ("latency", "bandwidth"):
            name, more = ("latency", []) if self.what == "latency" else ("bw", ["-W", WINDOWS[self.size]])
            ran = bench([name, "-m", f"{self.size}:{self.size}", "--json", *more, *REPEATED[self.what]])
            rows = [json.loads(line) for line in ran.out.splitlines()] if ran.code == 0 else []
            found = next((row["median"] for row in rows if row.get("size") == self.size), None)
        else:
            kernel, kernel_class = self.what.split()
            ran = run([kernels.folder(prefix) / kernel, kernel_class])
            line = re.search(r"ranks: ([0-9.]+) s", ran.out) if "VERIFICATION SUCCESSFUL" in ran.out else None
            found = float(line[1]) if line else None
        if found is None:
            raise Problem(f"{self}: exit status {ran.code}" + harness.output(ran.out + ran.err))
        return found


    def over(self, hosts: Hosts) -> float:
        """The number over real rails, which have their shapes already."""
        launcher = shlex.join(map(str, hosts.launcher("{ranks}")))

        def bench(words) -> harness.Outcome:
            command = [hosts.prefix / "bin/fishplate", "bench", *words, "--launcher", launcher, "--rounds", 1]
            return harness.run(list(map(str, command)), seconds=600, env=hosts.environment())

        return self.value(hosts.prefix, bench, lambda words: hosts.job(2, *words, seconds=600))


# Shapes by which the model is calibrated, and the sizes measured on them.
CALIBRATED = (Shape(20, 1), Shape(200, 4))
SHORT, STREAMS = (8, 64), (64 << 10, 1 << 20)
# Shapes that are predicted: one rail, two equal ones, and 1:4.
ONE = (Shape(50, 2), Shape(100, 3))
EQUAL, UNEQUAL = (Shape(50, 2), Shape(50, 2)), (Shape(25, 2), Shape(100, 2))
LENGTHS = (64 << 10, 1 << 20, 4 << 20)
KERNELS = ("cg S", "ft S")

def figures() -> list[Figure]:
    found = []
    for shape in ONE:
        found += [Figure("latency", 8, (shape,)), *(Figure("bandwidth", size, (shape,)) for size in LENGTHS)]
        found += [Figure(kernel, 0, (shape,)) for kernel in KERNELS]
    both = [rails for pair in (EQUAL, UNEQUAL) for rails in (*((rail,) for rail in pair), pair)]
    found += [Figure("bandwidth", size, rails) for size in LENGTHS[1:] for rails in both]
    return list(dict.fromkeys(found))


def derived(values: dict) -> dict:
    """For two rails the gain over the faster one alone, and the share of the sum of both, from the values of figures."""
    found = {}
    for pair in (EQUAL, UNEQUAL):
        for size in LENGTHS[1:]:
            together = Figure("bandwidth", size, pair)
            alone = [values[str(Figure("bandwidth", size, (rail,)))] for rail in pair]
            name = str(together)
            found[name.replace("bandwidth", "gain over the faster rail")] = values[name] / max(alone)
            found[name.replace("bandwidth", "share of the sum")] = values[name] / sum(alone)
    return found


def shape(hosts: Hosts, rail: int, wanted: Shape) -> None:
    """Gives a rail of hosts on a wire its rate and delay, in both directions."""
    hosts.order(rail, "delay", wanted.ms)
    for host in range(hosts.count):
        words = ["tc", "qdisc", "replace", "dev", f"eth{rail}", "root", "tbf", "rate", f"{wanted.mbit:g}mbit", "burst", BUCKET, "limit", QUEUE]
        done = hosts.inside(hosts.host(host), *words)
        if done.code != 0:
            raise Problem(f"{' '.join(words)}: {done.err}")
