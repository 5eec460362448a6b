"""The C programs of tests/c over both hosts, and some of them with every design and rendezvous of `channel::rdma`.

They are compiled before the machine starts, as a compiler takes long where the processor is computed.
"""

from pathlib import Path

from c import run as c
from harness import Case, Problem

# Of the ranks that the table names: at least one for each host, and no more than the machine can turn round among.
RANKS = range(2, 5)
# Where the processor is computed, all takes longer than the table has thought.
SLOWER = 4
# One of each kind of work, for every run.
SHORT = {("cancel", 2), ("nonblocking", 3), ("coll_data", 4), ("abort wait", 2), ("fatal truncate", 3)}
# What takes the paths that a design or a rendezvous has of its own.
EVERY_WAY = [("send_modes", 2), ("nonblocking", 3), ("cancel", 2), ("coll_data", 4), ("full_rings", 4), ("flood", 2), ("threads", 2)]
WAYS = [
    *({"FISHPLATE_RDMA_DESIGN": design} for design in ("basic", "piggyback", "pipeline")),
    *({"FISHPLATE_RENDEZVOUS": kind} for kind in ("read", "write")),
    # Everybody's packets come as messages into shared buffers.
    {"FISHPLATE_RDMA_RINGS": "0"},
]


def folder(prefix: Path) -> Path:
    return prefix / "tests" / "verbs" / "programs"


def prepare(options) -> None:
    build(options, [next(c.HERE.glob(f"{name}.c*")) for name, _, _ in c.TABLE])


def build(options, sources: list[Path]) -> None:
    folder(options.prefix).mkdir(parents=True, exist_ok=True)
    for source in sources:
        if said := c.compile_program(options.prefix, source, folder(options.prefix) / source.stem):
            raise Problem(f"{source} does not compile: {said}")


def case(name: str, ranks: int, row: dict, way: dict, short: bool) -> Case:
    words = [name, *row.get("args", [])]

    def test(world) -> None:
        allowed = SLOWER * row.get("seconds", 60)
        command = [folder(world.prefix) / name, *words[1:]]
        ran = world.job(ranks, *command, seconds=allowed, env=row.get("env", {}) | way)
        if problem := c.judge(row | {"seconds": allowed}, ran.code, ran.out, ran.err):
            raise Problem("\n    | ".join([problem, *(ran.out + ran.err).splitlines()[:40]]))

    label = " ".join(["c:", *(f"{knob}={value}" for knob, value in way.items()), *words, "-n", str(ranks)])
    return Case(label, test, short)


def tests() -> list[Case]:
    rows = [(name, ranks, row) for name, many, row in c.TABLE for ranks in many if ranks in RANKS]
    usual = [case(name, ranks, row, {}, (" ".join([name, *row.get("args", [])]), ranks) in SHORT) for name, ranks, row in rows]
    return usual + [case(name, ranks, row, way, False) for way in WAYS for name, ranks, row in rows if (name, ranks) in EVERY_WAY]
