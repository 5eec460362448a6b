"""A job that runs while a test breaks rails under it."""

import c_programs
from running import SECONDS, Job  # noqa: F401


def program(world, name: str, *arguments, ranks: int, env: dict | None = None) -> Job:
    """A C program over both hosts."""
    return Job(world.launcher(ranks, c_programs.folder(world.prefix) / name, *arguments), env)
