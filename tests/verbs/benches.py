"""The benchmarks run between the hosts and say something sane. How fast they are is no matter here."""

import json
import shutil
import sys
from pathlib import Path

from harness import Case, Problem

LAUNCHER = "{fishplate} run -n {{ranks}} --hosts 0,1 --launch-with 'on-host {{host}}'"


def bench(name: str, sizes: str, expected: list[int], unit: str):
    def test(world) -> None:
        fishplate = world.prefix / "bin/fishplate"
        ran = world.run(fishplate, "bench", name, "--launcher", LAUNCHER.format(fishplate=fishplate), "-m", sizes, "-i", 20,
                        "--validation", "--rounds", 1, "--json", seconds=120)
        if ran.code != 0:
            raise Problem(str(ran))
        rows = [json.loads(line) for line in ran.out.splitlines()]
        if [row["size"] for row in rows] != expected or any(row["ranks"] != 2 or row["unit"] != unit or not row["median"] > 0 for row in rows):
            raise Problem(ran.out)
    return test


def perf_beside_perftest(world) -> None:
    if not shutil.which("ib_write_lat"):
        raise Problem("perftest is not installed: apt-get install perftest")
    words = ["--fishplate", world.prefix / "bin/fishplate", "--devices", "rxe0,rxe2", "--address", "10.77.0.2", "--here", "on-host 0",
             "--there", "on-host 1", "--local", "--perftest-options", "-x 1", "--rounds", 1, "--only", "write-lat"]
    ran = world.run(sys.executable, Path(__file__).with_name("perf_beside.py"), *words, seconds=200)
    if ran.code != 0 or not ran.out.endswith("2 measured, 0 not\n"):
        raise Problem(str(ran))


def tests() -> list[Case]:
    return [
        Case("benches: latency over both hosts", bench("latency", "8:32", [8, 16, 32], "us"), short=False),
        Case("benches: bw over both hosts", bench("bw", "64K:128K", [65536, 131072], "MB/s"), short=False),
        Case("benches: perf write-lat beside perftest", perf_beside_perftest, short=False),
    ]
