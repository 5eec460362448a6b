"""A test: its name, what it does, whether it is quick enough for `--short`, and what became of it."""

from dataclasses import dataclass
from typing import Callable


class Problem(Exception):
    """What a test found wrong."""


@dataclass
class Case:
    name: str
    run: Callable
    short: bool = True

    def wanted(self, options) -> bool:
        return options.only in self.name and (self.short or not options.short)

    def show(self, problem: str, seconds: float) -> None:
        line = f"{'FAIL' if problem else 'pass'} {self.name} ({seconds:.1f} s)"
        print(f"{line}: {problem}" if problem else line, flush=True)
