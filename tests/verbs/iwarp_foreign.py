"""mpi4py's own suite over Soft-iWARP, both hosts."""

import foreign
from harness import Case

prepare = foreign.prepare


def tests() -> list[Case]:
    return [Case(f"iwarp: mpi4py: {name} -n 2", foreign.suite(modules, 2, 1200), short=False) for name, modules in foreign.GROUPS.items()]
