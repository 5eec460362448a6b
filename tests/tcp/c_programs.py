"""Programs over TCP between hosts: rings, the C programs of tests/programs, and 64 ranks on four hosts."""

from pathlib import Path

import harness
from programs import run as c
from harness import Case, Problem
from network import Hosts

# Numbers of ranks, of those in the table of tests/programs: at least one for each of two hosts.
RANKS = range(2, 9)
# Factor of the table's time limits: every message goes through the kernel.
SLOWER = 2
# One of each kind of work, for every run.
SHORT = {("hello", 2), ("send_modes", 2), ("nonblocking", 3), ("cancel", 2), ("flood", 2), ("coll_data", 4), ("coll_reduce", 5),
         ("files", 4), ("file_errors", 3), ("abort wait", 2), ("fatal truncate", 3)}
# Programs that take the paths which differ between designs and rendezvous protocols.
EVERY_WAY = [("send_modes", 2), ("nonblocking", 3), ("coll_data", 4), ("full_rings", 4), ("threads", 2)]
WAYS = [
    *({"FISHPLATE_RDMA_DESIGN": design} for design in ("basic", "piggyback", "pipeline")),
    *({"FISHPLATE_RENDEZVOUS": kind} for kind in ("read", "write")),
    {"FISHPLATE_RDMA_RINGS": "0"},
]
# The networks between two hosts on which a few programs run: the cable's kind, and what differs from the usual.
NETWORKS = {
    "IPv6": ("veth", {"family": 6}),
    "link-local addresses": ("veth", {"family": 0}),
    "MTU 576": ("veth", {"mtu": 576}),
    "MTU 9000": ("veth", {"mtu": 9000}),
    "MTU 1280, IPv6": ("veth", {"mtu": 1280, "family": 6}),
    "two rails": ("veth", {"rails": 2}),
    "two rails, IPv6": ("veth", {"rails": 2, "family": 6}),
    "a switch": ("bridge", {}),
}
# Cables of wire.c: orders for each rail.
WIRES = {
    "1 ms of delay": ["delay 1"],
    "2% of the frames lost": ["delay 0.1", "loss 0.02"],
    "frames out of order": ["delay 0.2", "jitter 1"],
}
ON_NETWORKS = [("hello", 4), ("nonblocking", 3), ("coll_data", 4)]


def prepare(prefix: Path) -> None:
    sources = [next(c.HERE.glob(f"{name}.c*")) for name in sorted({name for name, _, _ in c.TABLE})]
    sources += [c.HERE.parent / "verbs" / f"{name}.c" for name in ("steady", "gap", "idle")]
    sources += [Path(__file__).with_name(f"{name}.c") for name in ("apart", "silent", "traffic")]
    for name, said in c.compile_all(prefix, sources).items():
        raise Problem(f"{name} does not compile: {said}")


def row_of(name: str) -> dict:
    return next(row for known, _, row in c.TABLE if known == name)


def run(hosts: Hosts, name: str, ranks: int, row: dict, way: dict, slower: float = SLOWER) -> None:
    allowed = slower * row.get("seconds", c.SECONDS)
    command = [c.programs(hosts.prefix) / name, *row.get("args", [])]
    ran = hosts.job(ranks, *command, seconds=allowed, env=row.get("env", {}) | way)
    if problem := c.judge(row | {"seconds": allowed}, ran.code, ran.out, ran.err):
        raise Problem(problem + harness.output(ran.out + ran.err))


def case(name: str, ranks: int, row: dict, way: dict, short: bool) -> Case:
    def test(world) -> None:
        with Hosts(world.prefix) as hosts:
            run(hosts, name, ranks, row, way)

    label = " ".join(["c:", *(f"{knob}={value}" for knob, value in way.items()), name, *row.get("args", []), "-n", str(ranks)])
    return Case(label, test, short)


def on_network(kind: str, differs: dict):
    def test(world) -> None:
        with Hosts(world.prefix, kind=kind, **differs) as hosts:
            for name, ranks in ON_NETWORKS:
                run(hosts, name, ranks, row_of(name), {})
    return test


def on_wire(orders: list):
    def test(world) -> None:
        with Hosts(world.prefix, kind="wire") as hosts:
            for order in orders:
                hosts.order(0, order)
            for name, ranks in ON_NETWORKS:
                run(hosts, name, ranks, row_of(name), {}, slower=5 * SLOWER)
    return test


def many(world) -> None:
    """64 ranks on four hosts, 16 on each."""
    with Hosts(world.prefix, count=4, kind="bridge") as hosts:
        for name in ("hello", "many_ranks"):
            run(hosts, name, 64, row_of(name), {}, slower=4)


def tests() -> list[Case]:
    real = [(name, many, row) for name, many, row in c.TABLE if not c.is_modelled(row)]
    rows = [(name, ranks, row) for name, many, row in real for ranks in many if ranks in RANKS]
    usual = [case(name, ranks, row, {}, (" ".join([name, *row.get("args", [])]), ranks) in SHORT) for name, ranks, row in rows]
    ways = [case(name, ranks, row, way, False) for way in WAYS for name, ranks, row in rows if (name, ranks) in EVERY_WAY]
    return [
        *usual, *ways,
        *(Case(f"programs: {name}", on_network(kind, differs)) for name, (kind, differs) in NETWORKS.items()),
        *(Case(f"programs: {name}", on_wire(orders)) for name, orders in WIRES.items()),
        Case("programs: 64 ranks on four hosts", many),
    ]
