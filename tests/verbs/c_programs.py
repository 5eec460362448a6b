"""The C programs of tests/programs over both hosts, without the rows of modelled machines; and some of them with every design and rendezvous of the RDMA
transport.

They are compiled on the host, since a compiler takes long on an emulated processor.
"""

from pathlib import Path

import harness
from programs import run as c
from harness import Case, Problem

# Numbers of ranks, of those in the table: at least one for each host, and few enough for two emulated processors.
RANKS = range(2, 5)
# Factor of the table's time limits on an emulated processor.
SLOWER = 4
# One of each kind of work, for every run.
SHORT = {("nonblocking", 3), ("coll_data", 4)}
# Programs that take the paths which differ between designs and rendezvous protocols.
EVERY_WAY = [("send_modes", 2), ("nonblocking", 3), ("cancel", 2), ("coll_data", 4), ("full_rings", 4), ("flood", 2), ("threads", 2)]
WAYS = [
    *({"FISHPLATE_RDMA_DESIGN": design} for design in ("basic", "piggyback", "pipeline")),
    *({"FISHPLATE_RENDEZVOUS": kind} for kind in ("read", "write")),
    # No rings: packets of every peer arrive as messages in shared buffers.
    {"FISHPLATE_RDMA_RINGS": "0"},
]


def folder(prefix: Path) -> Path:
    return c.programs(prefix)


def prepare(options) -> None:
    build(options, [next(c.HERE.glob(f"{name}.c*")) for name, _, _ in c.TABLE])


def build(options, sources: list[Path]) -> None:
    for name, said in c.compile_all(options.prefix, sources).items():
        raise Problem(f"{name} does not compile: {said}")


def case(name: str, ranks: int, row: dict, way: dict, short: bool) -> Case:
    words = [name, *row.get("args", [])]

    def test(world) -> None:
        allowed = SLOWER * row.get("seconds", c.SECONDS)
        command = [*row.get("options", []), folder(world.prefix) / name, *words[1:]]
        ran = world.job(ranks, *command, seconds=allowed, env=row.get("env", {}) | way)
        if problem := c.judge(row | {"seconds": allowed}, ran.code, ran.out, ran.err):
            raise Problem(problem + harness.output(ran.out + ran.err))

    label = " ".join(["c:", *(f"{knob}={value}" for knob, value in way.items()), *words, "-n", str(ranks)])
    return Case(label, test, short)


def tests() -> list[Case]:
    real = [(name, many, row) for name, many, row in c.TABLE if not c.is_modelled(row)]
    rows = [(name, ranks, row) for name, many, row in real for ranks in many if ranks in RANKS]
    usual = [case(name, ranks, row, {}, (" ".join([name, *row.get("args", [])]), ranks) in SHORT) for name, ranks, row in rows]
    return usual + [case(name, ranks, row, way, False) for way in WAYS for name, ranks, row in rows if (name, ranks) in EVERY_WAY]
