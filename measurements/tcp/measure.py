#!/usr/bin/env python3
"""Measures jobs over TCP between two network namespaces, beside bare sockets and other MPI libraries, in turn.

    measurements/tcp/measure.py [--prefix build] [--peers DIR] [--rounds 9] [--seconds 0.5] [--only ROW,ROW...] [--json FILE]

DIR has the libraries that scripts/peers.sh fetches. In each round everything of a row runs once, one after the other; the table has the
medians over the rounds. "bare" is the best of sockets that spin, that spin and send pieces, and that block (bare.c). It is a measurement and belongs
to no suite: run it on a quiet machine.
"""

import argparse
import contextlib
import json
import math
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "tests"), str(HERE.parents[1] / "tests/tcp"), str(HERE)]
import harness  # noqa: E402
import network  # noqa: E402
import c_programs  # noqa: E402
import rails  # noqa: E402
import running  # noqa: E402
import strangers  # noqa: E402
from programs import run as c  # noqa: E402
from harness import Problem  # noqa: E402
from network import Hosts  # noqa: E402

LENGTHS = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20]
# Lengths of the streams over several connections.
CONNECTED = [64 << 10, 1 << 20, 4 << 20]
WINDOW = 64
OURS, BARE = "fishplate", "bare"
# What limited rails carry, in Mbit/s: two equal ones, and 1:4.
SHAPES = {"equal": (1000, 1000), "1:4": (400, 1600)}


class Measured:
    """Figures of one row: for each label those of all rounds."""

    def __init__(self):
        self.values = {}

    def add(self, label: str, value: float) -> None:
        self.values.setdefault(label, []).append(value)

    def median(self, label: str) -> float | None:
        return statistics.median(self.values[label]) if label in self.values else None


def bare(hosts: Hosts, what: str, length: int, seconds: float, how: str, rail: int = 0) -> float:
    command = [network.compiled(hosts.prefix, "bare"), what, how, length, seconds, hosts.host(0), hosts.host(1), hosts.address(1, rail), 0,
               WINDOW]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60 + 20 * seconds, check=False)
    if done.returncode != 0:
        raise Problem(f"bare {what}: {done.stderr}")
    return float(done.stdout)


def best_bare(hosts: Hosts, what: str, length: int, seconds: float, rail: int = 0) -> float:
    found = [bare(hosts, what, length, seconds, how, rail) for how in ("spin", "pieces", "block")]
    return (min if what == "latency" else max)(found)


# Launchers of other libraries

def remote_shell(hosts: Hosts, work: Path, is_named: bool = False) -> Path:
    """A command that runs a command on a host of a job, as ssh does, for launchers that want one. `is_named`: each host has a name."""
    names = " ".join(f"{hosts.address(host)}) namespace={hosts.host(host)} name=host{host} ;;" for host in range(hosts.count))
    script = work / ("remote-shell-named" if is_named else "remote-shell")
    begin = 'unshare --uts sh -c "hostname $name; $*"' if is_named else 'sh -c "$*"'
    script.write_text(f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\nhost=$1\nshift\ncase $host in {names} esac\n'
                      f'exec ip netns exec "$namespace" {begin}\n')
    script.chmod(0o755)
    return script


# Other libraries: the name of a row, the library's folder, and its own settings. All ranks have one host name, so memory would be shared
# without them. MPICH's wheel has two ways over TCP.
PEERS = [
    ("mpich-ofi", "mpich", ["MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp", "FI_TCP_IFACE=eth0"]),
    ("mpich-ucx", "mpich", ["MPIR_CVAR_CH4_NETMOD=ucx", "MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=eth0"]),
    ("impi", "impi", ["I_MPI_FABRICS=ofi", "I_MPI_PIN=0", "FI_PROVIDER=tcp", "FI_TCP_IFACE=eth0"]),
]


def peer_launchers(hosts: Hosts, peers: Path, work: Path) -> dict:
    """For each other library that is there: a path to it that has its name, and the launcher that starts it in the namespaces."""
    shell, found = remote_shell(hosts, work), {}
    addresses = ",".join(hosts.address(host) for host in range(hosts.count))
    for name, folder, settings in PEERS:
        if not (peers / folder / "bin/mpiexec.hydra").exists():
            continue
        alias = work / name
        if not alias.is_symlink():
            alias.symlink_to(peers / folder)
        # Intel's wheel has no libfabric of its own.
        path = f"{peers / folder}/lib:{peers}/mpich/lib/mpich"
        words = ["ip", "netns", "exec", hosts.host(0), "env", f"LD_LIBRARY_PATH={path}", f"I_MPI_ROOT={peers / folder}", *settings,
                 peers / folder / "bin/mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", shell, "-iface", "eth0", "-hosts", addresses,
                 "-ppn", "1", "-n", "{ranks}"]
        found[alias / "lib/libmpi_abi.so.1"] = " ".join(map(str, words))
    return found


def bench(hosts: Hosts, name: str, sizes: str, seconds: float, launchers: dict, more: tuple = (), env: dict | None = None) -> dict:
    """One round of `fishplate bench` over all libraries: for each library and size the median."""
    fishplate = hosts.prefix / "bin/fishplate"
    own = f"{fishplate} run -n {{ranks}} --hosts 0,1 --launch-with {shlex.quote(hosts.on_host())}"
    command = [fishplate, "bench", name, "-m", sizes, "--seconds", seconds, "--rounds", 1, "--json", "--launcher", own, *more]
    if launchers:
        command += ["--against", ",".join(map(str, launchers))]
        for library, launcher in launchers.items():
            command += ["--launcher", f"{library}={launcher}"]
    ran = harness.run(list(map(str, command)), seconds=600, env=hosts.environment(env))
    if ran.code != 0:
        raise Problem(f"bench {name}: {ran.err}")
    found = {}
    for row in map(json.loads, ran.out.splitlines()):
        library = row["library"] if row["library"] == OURS else Path(row["library"]).parts[-3]
        found[library, row["size"]] = row["median"]
    return found


def device(hosts: Hosts, name: str, length: int) -> float | None:
    """The figure of `fishplate perf` on the device, or None if it does not run there."""
    fishplate, chosen = hosts.prefix / "bin/fishplate", ["--device", "tcp:eth0", "--size", length, "--json"]
    chosen += ["--secret-file", harness.token_file()]
    server = subprocess.Popen(["ip", "netns", "exec", hosts.host(1), *map(str, [fishplate, "perf", name, *chosen])],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        ran = hosts.inside(hosts.host(0), fishplate, "perf", name, *chosen, hosts.address(1), seconds=60)
        server.wait(5)
    except subprocess.TimeoutExpired:
        pass
    finally:
        server.kill()
        server.wait()
    rows = [json.loads(line) for line in ran.out.splitlines()] if ran.code == 0 else []
    return next((row[key] for row in rows for key in ("median", "typical", "mean", "average") if key in row), None)


# Rows

def latency(world) -> None:
    """8 bytes one way, µs."""
    with Hosts(world.prefix) as hosts:
        launchers = peer_launchers(hosts, world.peers, world.work)
        row = world.row("latency 8 B, µs")
        for _ in range(world.rounds):
            for how in ("spin", "block"):
                row.add(f"bare, {how}", bare(hosts, "latency", 8, world.seconds, how))
            if (value := device(hosts, "write-lat", 8)) is not None:
                row.add("frames", value)
            for (library, _), value in bench(hosts, "latency", "8:8", world.seconds, launchers).items():
                row.add(library, value)


def bandwidth(world) -> None:
    """Streams of 4 KiB to 4 MiB, MB/s."""
    with Hosts(world.prefix) as hosts:
        launchers = peer_launchers(hosts, world.peers, world.work)
        for _ in range(world.rounds):
            for length in LENGTHS:
                row = world.row(f"bandwidth {length >> 10} KiB, MB/s")
                for how in ("spin", "pieces", "block"):
                    row.add(f"bare, {how}", bare(hosts, "bw", length, world.seconds, how))
                if (value := device(hosts, "write-bw", length)) is not None:
                    row.add("frames", value)
                for (library, _), value in bench(hosts, "bw", f"{length}:{length}", world.seconds, launchers, ("-W", WINDOW)).items():
                    row.add(library, value)


def rate(world) -> None:
    """Messages of 8 bytes, a second."""
    with Hosts(world.prefix) as hosts:
        launchers = peer_launchers(hosts, world.peers, world.work)
        for _ in range(world.rounds):
            for (library, _), value in bench(hosts, "mbw-mr", "8:8", world.seconds, launchers).items():
                world.row("rate 8 B, messages/s").add(library, value)


def newer(world) -> None:
    """Bare sockets by newer ways of the kernel beside the usual one: 8 bytes one way, µs, and streams, MB/s."""
    with Hosts(world.prefix) as hosts:
        for _ in range(world.rounds):
            for how in ("spin", "uring"):
                world.row("bare sockets, latency 8 B, µs").add(how, bare(hosts, "latency", 8, world.seconds, how))
            for length in LENGTHS:
                for how in ("spin", "pieces", "zerocopy", "uring"):
                    world.row(f"bare sockets, bandwidth {length >> 10} KiB, MB/s").add(how, bare(hosts, "bw", length, world.seconds, how))


# Open MPI's two ways over TCP, by its settings.
OPENMPI = {"openmpi": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "{interfaces}"],
           "openmpi-ucx": ["--mca", "pml", "ucx", "-x", "UCX_TLS=tcp,self", "-x", "UCX_NET_DEVICES={interfaces}"]}


def streams(hosts: Hosts, world, rails: int = 1) -> dict:
    """Commands that run stream.c in the namespaces, by library: ours, and Open MPI, which has another binary interface."""
    own, openmpi, words = world.work / "stream", world.peers / "openmpi", hosts.launcher(2)
    if error := c.compile_program(hosts.prefix, harness.ROOT / "tests/tcp/stream.c", own):
        raise Problem(error)
    found = {OURS: [*words, own]}
    if not (openmpi / "lib/libmpi.so.40").exists():
        return found
    other = world.work / "stream-openmpi"
    command = ["cc", "-O2", "-I", openmpi / "include", harness.ROOT / "tests/tcp/stream.c", "-o", other, openmpi / "lib/libmpi.so.40",
               f"-Wl,-rpath,{openmpi}/lib:{openmpi}/lib/openmpi", "-Wl,--allow-shlib-undefined"]
    subprocess.run(list(map(str, command)), check=True)
    shell = remote_shell(hosts, world.work, is_named=True)
    library = f"LD_LIBRARY_PATH={openmpi}/lib:{openmpi}/lib/openmpi"
    interfaces = ",".join(f"eth{rail}" for rail in range(rails))
    begin = ["ip", "netns", "exec", hosts.host(0), "unshare", "--uts", "sh", "-c", 'hostname host0 && exec "$@"', "sh", "env", library,
             f"OPAL_PREFIX={openmpi}", f"PRTE_PREFIX={openmpi}", f"PMIX_PREFIX={openmpi}", openmpi / "bin/prterun", "--allow-run-as-root",
             "--prtemca", "plm_ssh_agent", shell, "--prtemca", "prte_if_include", "eth0",
             "--host", ",".join(hosts.address(host) for host in range(2)), "-n", "2", "--map-by", "node", "--bind-to", "none",
             "-x", library.partition("=")[0], "-x", "OPAL_PREFIX", "-x", "PMIX_PREFIX"]
    for name, settings in OPENMPI.items():
        found[name] = [*begin, *(word.format(interfaces=interfaces) for word in settings), other]
    return found


def streamed(hosts: Hosts, row: Measured, commands: dict, *words) -> None:
    for name, command in commands.items():
        ran = harness.run(list(map(str, [*command, *words])), seconds=60, env=hosts.environment())
        if ran.code == 0:
            row.add(name, float(ran.out.split()[-1]))
        else:
            print(f"{name} {' '.join(map(str, words))}: {ran.err.strip()[-300:]}", flush=True)


def openmpi(world) -> None:
    """stream.c with this library and with Open MPI, in turn: latency, rate, streams, and streams over two limited rails."""
    with Hosts(world.prefix) as hosts:
        commands = streams(hosts, world)
        for _ in range(world.rounds):
            streamed(hosts, world.row("stream.c, latency 8 B, µs"), commands, "latency", 8, world.seconds)
            streamed(hosts, world.row("stream.c, rate 8 B, messages/s"), commands, "rate", 8, world.seconds)
            for length in LENGTHS:
                row = world.row(f"stream.c, bandwidth {length >> 10} KiB, MB/s")
                streamed(hosts, row, commands, "bandwidth", length, world.seconds)
    for name, limits in SHAPES.items():
        with Hosts(world.prefix, rails=2) as hosts:
            for rail, limit in enumerate(limits):
                hosts.limit(rail, limit)
            commands = streams(hosts, world, 2)
            for _ in range(world.rounds):
                row = world.row(f"stream.c, two rails, {name}, 1 MiB, MB/s")
                streamed(hosts, row, commands, "bandwidth", 1 << 20, 4 * world.seconds)


def connections(world) -> None:
    """Streams over one and over two rails of one interface, MB/s: between neighbours, and over a long path that loses frames."""
    for path, orders in {"veth": [], "2 ms, 0.1% lost": ["delay 2", "loss 0.001"]}.items():
        with Hosts(world.prefix, kind="wire" if orders else "veth") as hosts:
            for order in orders:
                hosts.order(0, *order.split())
            for _ in range(world.rounds):
                for length in CONNECTED:
                    for many in (1, 2):
                        env = {"FISHPLATE_TCP_CONNECTIONS": str(many)}
                        found = bench(hosts, "bw", f"{length}:{length}", world.seconds, {}, ("-W", WINDOW), env)
                        world.row(f"rails of one interface, {path}, {length >> 10} KiB, MB/s").add(str(many), found[OURS, length])


def shaped(world) -> None:
    """Two limited rails: the bandwidth of 1 MiB over both, beside that of bare sockets over each."""
    for name, limits in SHAPES.items():
        with Hosts(world.prefix, rails=2) as hosts:
            for rail, limit in enumerate(limits):
                hosts.limit(rail, limit)
            row = world.row(f"two rails, {name}, 1 MiB, MB/s")
            for _ in range(world.rounds):
                for rail in (0, 1):
                    row.add(f"bare, rail {rail}", best_bare(hosts, "bw", 1 << 20, world.seconds, rail))
                for (library, _), value in bench(hosts, "bw", f"{1 << 20}:{1 << 20}", 2 * world.seconds, {}, ("-W", 16)).items():
                    row.add(library, value)


def dies(world) -> None:
    """The longest time without messages after one of two rails is cut, s; and until it carries messages again, s."""
    for _ in range(world.rounds):
        with Hosts(world.prefix, rails=2, kind="wire") as hosts:
            with rails.program(hosts, "gap", 4, ranks=2) as job:
                longest = running.longest_gap(job, lambda: hosts.order(0, "cut"))
                world.row("a rail is cut, s").add("without messages", longest)
            hosts.order(0, "mend")
            world.row("a rail is cut, s").add("until it carries messages again", rails.time_of_return(hosts, 0, "cut"))


@contextlib.contextmanager
def visited(hosts: Hosts, work: Path, places: list, is_on: bool):
    """Strangers connect all the time, 1,000 at once, while the body runs. Yields their tallies."""
    over, tallies = threading.Event(), []

    def keep_on() -> None:
        while not over.is_set():
            tallies.append(strangers.visit(hosts, strangers.FLOOD, strangers.UNANSWERED, work / "none.json", places))

    thread = threading.Thread(target=keep_on)
    (work / "none.json").write_text("{}")
    if is_on:
        thread.start()
    try:
        yield tallies
    finally:
        over.set()
        if is_on:
            thread.join()


def interval(values: list) -> tuple[float, float]:
    """The interval that has the median of what was drawn with 95 % (96.1 % of nine values), by the order of the values."""
    ordered, count = sorted(values), len(values)
    tails = [sum(math.comb(count, at) for at in range(rank)) / 2 ** count for rank in range(1, count // 2 + 2)]
    rank = max((rank for rank, tail in enumerate(tails, 1) if 2 * tail <= 0.05), default=1)
    return ordered[rank - 1], ordered[-rank]


def flooded(world) -> None:
    """Latency and bandwidth of ranks that listen, with strangers and without, in turn."""
    latency, bandwidth = world.row("strangers, latency 8 B, µs"), world.row("strangers, bandwidth 1 MiB, MB/s")
    with Hosts(world.prefix, kind="bridge", strangers=1) as hosts:
        for _ in range(world.rounds):
            for is_on in (False, True):
                label = "1,000 strangers" if is_on else "none"
                with rails.program(hosts, "apart", 2 * world.seconds, options=("--bind-to", "none")) as job:
                    job.is_under_way()
                    with visited(hosts, world.work, strangers.listeners(hosts), is_on) as tallies:
                        out = job.ends_well()
                        err = job.said(job.err)
                latency.add(label, float(re.search(r"latency ([\d.]+)", out)[1]))
                bandwidth.add(label, float(re.search(r"bandwidth ([\d.]+)", out)[1]))
                if is_on:
                    world.row("strangers, connections").add("made", sum(row["connected"] for tally in tallies for row in tally.values()))
                    world.row("strangers, connections").add("counted", sum(strangers.shown_counts(err)))
    for row in (latency, bandwidth):
        low, high = interval(row.values["none"])
        median = row.median("1,000 strangers")
        print(f"with strangers {median:.6g}, {'within' if low <= median <= high else 'OUTSIDE'} the interval without, {low:.6g}–{high:.6g}")


def with_silent(hosts: Hosts, here: int, peers: int, seconds: float) -> float:
    """What silent.c prints, with these numbers of ranks on the first host and on the second."""
    places = f"0:{here},1:{peers}" if peers else f"0:{here}"
    command = [hosts.prefix / "bin/fishplate", "run", "-n", here + peers, "--hosts", places, "--launch-with", hosts.on_host(),
               c.programs(hosts.prefix) / "silent", seconds, here]
    ran = harness.run(list(map(str, command)), seconds=120, env=hosts.environment())
    if ran.code != 0 or " ok\n" not in ran.out:
        raise Problem(f"silent: {ran.out}{ran.err}")
    return float(re.search(r"(?:poll|latency) ([\d.]+) ns", ran.out)[1])


def idle(world) -> None:
    """8 bytes in shared memory with silent peers over TCP and without; a poll that finds nothing, of one connection and of 63."""
    shm, poll = world.row("shared memory, latency 8 B, ns"), world.row("idle poll, ns")
    with Hosts(world.prefix) as hosts:
        for _ in range(world.rounds):
            for peers in (0, 16):
                shm.add(f"{peers} silent peers", with_silent(hosts, 2, peers, 2 * world.seconds))
            for peers in (1, 63):
                poll.add(f"{peers} connections", with_silent(hosts, 1, peers, 2 * world.seconds))
    print(f"shared memory: {shm.median('16 silent peers') / shm.median('0 silent peers'):.3f} × with silent peers; "
          f"idle poll: {poll.median('63 connections') / poll.median('1 connections'):.2f} × with 63 connections")


ROWS = {"latency": latency, "bandwidth": bandwidth, "rate": rate, "newer": newer, "openmpi": openmpi, "connections": connections,
        "shaped": shaped, "dies": dies, "strangers": flooded, "idle": idle}


class World:
    def __init__(self, options, work: Path):
        self.prefix, self.peers, self.rounds, self.seconds, self.work = options.prefix, options.peers, options.rounds, options.seconds, work
        self.rows = {}

    def row(self, name: str) -> Measured:
        return self.rows.setdefault(name, Measured())

    def table(self) -> str:
        lines = []
        for name, row in self.rows.items():
            cells = [f"{label} {row.median(label):.6g} ({min(values):.4g}–{max(values):.4g})" for label, values in row.values.items()]
            lines.append(f"{name}: {'; '.join(cells)}")
        return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--peers", type=Path, default=harness.ROOT / "build/peers", metavar="DIR")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.5, help="time of one figure")
    parser.add_argument("--only", default=",".join(ROWS), metavar="ROW,ROW...", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes the figures of all rounds")
    options = parser.parse_args()
    options.prefix = harness.checked_prefix(options.prefix)
    if unknown := set(options.only.split(",")) - set(ROWS):
        parser.error(f"no row {', '.join(sorted(unknown))}")
    if reason := network.missing():
        sys.exit(reason)
    network.remove_leftovers()
    c_programs.prepare(options.prefix)
    with tempfile.TemporaryDirectory(prefix="fishplate-tcp-") as work:
        os.chmod(work, 0o755)
        world = World(options, Path(work))
        for name in options.only.split(","):
            try:
                ROWS[name](world)
            except Problem as why:
                print(f"{name}: NOT MEASURED: {why}", flush=True)
    print(f"medians of {options.rounds} rounds (least–most)")
    print(world.table())
    if options.json:
        options.json.write_text(json.dumps({name: row.values for name, row in world.rows.items()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
