"""Soft-iWARP: the device alone, `fishplate perf` between the hosts, and MPI over both.

It needs a second machine, and a kernel module that is compiled for it, so `--short` leaves all of it out.
"""

import json
import re
import subprocess
from dataclasses import replace

import benches
import harness
import info
import c_programs
import suites
import waiting
from harness import Case, Problem

ADDRESS = "10.77.0.2"


def prepare(options) -> str:
    suites.prepare(options)
    c_programs.prepare(options)
    waiting.prepare(options)
    return ""


def is_used_by_jobs(world) -> None:
    done = info.info(world, 0, "--json")
    found = json.loads(done.out)["rdma"]
    seen = [(one["name"], one["used"], one["interface"], one["gid"]["kind"], one["gid"]["value"]) for one in found["devices"]]
    expected = [(f"siw{rail}", True, f"r{rail}h0", "iWARP", f"::ffff:10.77.{rail}.1") for rail in (0, 1)]
    if seen != expected or found["problem"]:
        raise Problem(done.out)


def measured(benchmark: str, size: int):
    def test(world) -> None:
        words = list(map(str, [world.prefix / "bin/fishplate", "perf", benchmark, "-s", size, "-n", 50, "--json",
                               "--secret-file", harness.token_file()]))
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
    for words, why in [(["atomic-lat"], "iWARP has no atomics"),
                       (["send-lat", "--transport", "ud"], "it has reliable connections only")]:
        command = [world.prefix / "bin/fishplate", "perf", *words, "-n", 10, "--secret-file", harness.token_file()]
        server = subprocess.Popen(list(map(str, ["on-host", "1", *command, "--device", "siw2"])), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        done = world.on_host(0, *command, "--device", "siw0", ADDRESS)
        harness.kill_session(server.pid)
        server.wait()
        if done.code == 0 or not re.search(why, done.err):
            raise Problem(str(done))


def named(cases: list[Case]) -> list[Case]:
    """Cases that run on other devices too."""
    return [replace(case, name=f"iwarp: {case.name}") for case in cases]


def of_c() -> list[Case]:
    """Those of few ranks, without those that take minutes here."""
    def wanted(name: str) -> bool:
        if name in ("c: hello -n 4", "c: coll_data -n 4"):
            return True
        return name.endswith("-n 2") and "DESIGN" not in name and "flood" not in name
    return [case for case in c_programs.tests() if wanted(case.name)]


def tests() -> list[Case]:
    benchmarks = [("write-lat", 8), ("send-lat", 8), ("read-lat", 8), ("send-lat", 65536), ("read-bw", 65536), ("write-bw", 65536)]
    cases = [
        Case("iwarp: jobs use it", is_used_by_jobs),
        *named(suites.cases(suites.OF_IWARP, ("on-host", 0), suites.IWARP_PEER)),
        *(Case(f"iwarp: perf {name} of {size} bytes", measured(name, size)) for name, size in benchmarks),
        Case("iwarp: what it lacks is refused", what_it_lacks_is_refused),
        Case("iwarp: latency over both hosts", benches.bench("latency", "8:32", [8, 16, 32], "us")),
        Case("iwarp: bw over both hosts", benches.bench("bw", "64K:128K", [65536, 131072], "MB/s")),
        *named(of_c()),
        Case("iwarp: a rank sleeps until a short message comes", waiting.sleeps(8)),
        Case("iwarp: a rank sleeps until a long message comes", waiting.sleeps(1 << 20)),
        Case("iwarp: a cable is cut under a long message", waiting.broken("cut", "siw")),
        Case("iwarp: a program is told that the cable is cut", waiting.told_to_the_program),
    ]
    return [replace(case, short=False) for case in cases]
