#!/usr/bin/env python3
"""Calibrates a modelled machine by shaped rails, and predicts the figures of rails of other shapes.

    tests/tcp/predict.py calibrate [--prefix build] [--rounds 5]    measures the shapes of calibration: shaped/calibration.jsonl
    tests/tcp/predict.py predict [--prefix build]                   from these alone: shaped/machine.toml, shaped/predictions.json

The machine's file differs from the catalogue in what `fabric calibrate` has found. For other shapes only rate and delay change.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import network  # noqa: E402
import shapes  # noqa: E402
from harness import Problem  # noqa: E402
from network import Hosts  # noqa: E402
from kernels import run as kernels  # noqa: E402
from shapes import DATA, Figure, Shape  # noqa: E402

BASE, NAME = "tcp", "shaped"
CALIBRATION, MACHINE, PREDICTIONS = DATA / "calibration.jsonl", DATA / "machine.toml", DATA / "predictions.json"
# Seconds of a stream.
SECONDS = 1.5


def stream(hosts: Hosts, shape: Shape, size: int) -> float:
    """MB/s of a stream of writes over the first rail, by `fishplate perf` on the device."""
    times = max(8, int(SECONDS * shape.mbit * 1e6 / 8 / size))
    words = [hosts.prefix / "bin/fishplate", "perf", "write-bw", "--device", "tcp:eth0", "--size", size, "-n", times, "--json",
             "--secret-file", harness.token_file()]
    words = list(map(str, words))
    server = subprocess.Popen(["ip", "netns", "exec", hosts.host(1), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        ran = hosts.inside(hosts.host(0), *words, hosts.address(1), seconds=120)
    finally:
        server.kill()
        server.wait()
    if ran.code != 0:
        raise Problem(f"perf write-bw of {size} B: {ran.err}")
    return json.loads(ran.out)["median"]


def measured(prefix: Path, shape: Shape, rounds: int) -> list[dict]:
    """For each benchmark and size the median of all rounds, and their range. The latency is that of MPI messages, whose ranks sleep while
    they wait: ranks of `perf` spin, and with a cable that is a program there are more of them than cores."""
    found = {}
    with Hosts(prefix, kind="wire") as hosts:
        shapes.shape(hosts, 0, shape)
        for _ in range(rounds):
            for size in shapes.SHORT:
                value = Figure("latency", size, (shape,)).over(hosts)
                found.setdefault(("latency", size), []).append(value)
            for size in shapes.STREAMS:
                found.setdefault(("write-bw", size), []).append(stream(hosts, shape, size))
    return [shape.keys() | {"benchmark": name, "size": size, "median": statistics.median(all), "min": min(all), "max": max(all)}
            for (name, size), all in found.items()]


def fishplate(prefix: Path, *words, seconds: float = 600) -> harness.Outcome:
    return harness.run([str(prefix / "bin/fishplate"), *map(str, words)], seconds=seconds, cwd=harness.ROOT)


def machine(prefix: Path) -> str:
    """The file of the calibrated machine, with a system for each list of rails that is predicted."""
    ran = fishplate(prefix, "fabric", "calibrate", "--from", CALIBRATION.relative_to(harness.ROOT), "--like", BASE, "--name", NAME)
    if ran.code != 0:
        raise Problem(ran.err)
    systems = [f'\n[system.{name}]\nfrom = "{NAME}"\nrails = [\n' + "".join(f"  {rail.rail()},\n" for rail in rails) + "]\n"
               for rails, name in names().items()]
    return ran.out + "".join(systems)


def names() -> dict:
    """The name of the system for each list of rails."""
    def name(rails) -> str:
        return "and".join(f"{rail.mbit:g}m{rail.ms * 1000:g}us" for rail in rails)
    return {figure.rails: name(figure.rails) for figure in shapes.figures()}


def predicted(prefix: Path, figure: Figure) -> float:
    fabric = ["--fabric", f"{MACHINE}:{names()[figure.rails]}"]
    return figure.value(prefix, lambda words: fishplate(prefix, "bench", *words, *fabric),
                        lambda words: fishplate(prefix, "run", "-n", 2, *fabric, "--compute", "measured", *words))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["calibrate", "predict"])
    harness.add_prefix_option(parser)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    if options.action == "calibrate":
        if reason := network.missing():
            sys.exit(reason)
        network.remove_leftovers()
        rows = [row for shape in shapes.CALIBRATED for row in measured(prefix, shape, options.rounds)]
        CALIBRATION.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return 0
    MACHINE.write_text(machine(prefix))
    for kernel in shapes.KERNELS:
        kernels.compile_kernel(prefix, kernel.split()[0], kernel.split()[0])
    values = {}
    for figure in shapes.figures():
        values[str(figure)] = predicted(prefix, figure)
        print(f"{figure}: {values[str(figure)]:.6g} {figure.unit}", flush=True)
    PREDICTIONS.write_text(json.dumps(values | shapes.derived(values), indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
