"""Soft-iWARP, as far as it goes: the device by itself, and `fishplate perf` between the hosts. In a machine of its own."""

import json
import re
import subprocess
from pathlib import Path

import harness
import info
import programs
import suites
from case import Case, Problem

ADDRESS = "10.77.0.2"


def prepare(options) -> str:
    suites.build(options, suites.OF_IWARP)
    programs.build(options, [Path(__file__).with_name("idle.c")])
    return ""


def is_for_perf_only(world) -> None:
    done = info.info(world, 0, "--json")
    found = json.loads(done.out)["rdma"]
    seen = [(one["name"], one["used"], one["interface"], one["gid"]["kind"], one["gid"]["value"]) for one in found["devices"]]
    expected = [(f"siw{rail}", False, f"r{rail}h0", "iWARP", f"::ffff:10.77.{rail}.1") for rail in (0, 1)]
    if seen != expected or "iWARP, which has no datagrams" not in found["problem"]:
        raise Problem(done.out)
    job = world.job(2, programs.folder(world.prefix) / "idle", 8)
    if job.code == 0 or "iWARP, which has no datagrams" not in job.err:
        raise Problem(str(job))


def measured(benchmark: str, size: int):
    def test(world) -> None:
        words = list(map(str, [world.prefix / "bin/fishplate", "perf", benchmark, "-s", size, "-n", 50, "--json"]))
        server = subprocess.Popen(["on-host", "1", *words, "--device", "siw2"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            done = world.on_host(0, *words, "--device", "siw0", ADDRESS)
            if done.code != 0 or server.wait(20) != 0:
                raise Problem(str(done))
        finally:
            harness.kill_session(server.pid)
            server.wait()
        row = json.loads(done.out.splitlines()[0])
        if row["size"] != size or not row["median"] > 0:
            raise Problem(done.out)
    return test


def what_it_lacks_is_refused(world) -> None:
    for words, why in [(["atomic-lat"], "iWARP has no immediates and no atomics"),
                       (["send-lat", "--transport", "ud"], "iWARP has reliable connections only")]:
        command = [world.prefix / "bin/fishplate", "perf", *words, "-n", 10]
        server = subprocess.Popen(list(map(str, ["on-host", "1", *command, "--device", "siw2"])), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        done = world.on_host(0, *command, "--device", "siw0", ADDRESS)
        harness.kill_session(server.pid)
        server.wait()
        if done.code == 0 or not re.search(why, done.err):
            raise Problem(str(done))


def tests() -> list[Case]:
    benchmarks = [("write-lat", 8), ("send-lat", 8), ("read-lat", 8), ("send-lat", 65536), ("read-bw", 65536), ("write-bw", 65536)]
    return [
        Case("iwarp: only benchmarks of the device use it", is_for_perf_only, short=False),
        *suites.cases(suites.OF_IWARP, ("on-host", 0)),
        *(Case(f"iwarp: perf {name} of {size} bytes", measured(name, size), short=False) for name, size in benchmarks),
        Case("iwarp: what it lacks is refused", what_it_lacks_is_refused, short=False),
    ]
