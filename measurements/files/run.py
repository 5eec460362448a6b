#!/usr/bin/env python3
"""Measures files beside other MPI libraries, which take turns: IOR's patterns, interleaved records, nonblocking writes, opens.

    measurements/files/run.py [--prefix DIR] [--peers DIR] [--rounds N] [--only WORD] [--folders DIR,...] [--markdown FILE]

Each library runs `speed.c` in each round, in an order that changes; a figure is the median of the rounds, and a ratio the median of the
rounds' own ratios. The peers are those that `scripts/peers.sh DIR openmpi` has fetched. Hints of the peers are tuned where a row has
several: the best of them counts, and is found in the first rounds.
"""

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Hints that a user would try for short interleaved records: of ROMIO, and of Open MPI's own.
TUNED = [[], ["romio_cb_write=enable", "romio_cb_read=enable"], ["romio_cb_write=disable", "romio_ds_write=enable"],
         ["romio_cb_write=enable", "romio_cb_read=enable", "cb_nodes={ranks}"],
         ["romio_cb_write=enable", "romio_cb_read=disable", "cb_nodes=1", "romio_ds_read=enable"],
         ["romio_cb_write=enable", "romio_cb_read=enable", "cb_nodes={ranks}", "cb_buffer_size=1048576"]]


@dataclass
class Row:
    pattern: str
    ranks: int
    # The values that count, and whether more is better.
    values: list
    target: str
    more: bool = True
    repetitions: int = 9
    hints: list = field(default_factory=lambda: [[]])


ROWS = [
    *[Row(pattern, ranks, ["write", "read"], "0.95") for pattern in
      ("easy", "hard", "hard-all", "segmented", "tile:4096", "tile-all:4096", "tile:65536", "tile-all:65536") for ranks in (2, 4)],
    *[Row(f"records:{bytes}", ranks, ["write", "read"], "1.5", hints=TUNED, repetitions=7)
      for bytes in (64, 256, 1024, 4096) for ranks in (2, 4)],
    *[Row("overlap", ranks, ["shown"], "best", more=False) for ranks in (1, 2)],
    Row("open", 64, ["open_close"], "best", more=False, repetitions=20),
]


@dataclass
class Library:
    name: str
    program: Path
    launch: list
    env: dict


def compiled(compiler: list, folder: Path, name: str) -> Path:
    target = folder / name
    subprocess.run([*compiler, "-O2", "-o", target, HERE / "speed.c"], check=True)
    return target


def libraries(prefix: Path, peers: Path, work: Path) -> list:
    ours = compiled([prefix / "bin/mpicc"], work, "speed-abi")
    found = [Library("fishplate", ours, [prefix / "bin/mpiexec"], {"LD_LIBRARY_PATH": str(prefix / "lib")})]
    for name in ("mpich", "impi"):
        folder = peers / name
        if (folder / "lib/libmpi_abi.so.1").exists():
            env = {"LD_LIBRARY_PATH": str(folder / "lib"), "I_MPI_ROOT": str(folder), "I_MPI_FABRICS": "shm",
                   "FI_PROVIDER_PATH": str(folder / "lib/libfabric/prov"), "I_MPI_WAIT_MODE": "0"}
            found.append(Library(name, ours, [folder / "bin/mpiexec"], env))
    folder = peers / "openmpi"
    if (folder / "bin/mpicc").exists():
        env = {"OPAL_PREFIX": str(folder), "LD_LIBRARY_PATH": str(folder / "lib"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
               "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        os.environ.update(OPAL_PREFIX=str(folder))
        program = compiled([folder / "bin/mpicc"], work, "speed-openmpi")
        del os.environ["OPAL_PREFIX"]
        found.append(Library("openmpi", program, [folder / "bin/mpiexec", "--bind-to", "none"], env))
    return found


def run(library: Library, row: Row, file: Path, hints: list) -> dict:
    words = [hint.format(ranks=row.ranks) for hint in hints]
    command = [*library.launch, "-n", str(row.ranks), library.program, row.pattern, file, str(row.repetitions), *words]
    yields = {"MPICH_CH4_YIELD": "1", "I_MPI_THREAD_YIELD": "2"} if row.ranks > os.cpu_count() else {}
    done = subprocess.run([str(word) for word in command], env=os.environ | library.env | yields, capture_output=True, text=True, timeout=600)
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink(missing_ok=True)
    if done.returncode:
        print(f"  {library.name} failed: {(done.stderr or done.stdout).strip()[-300:]}", file=sys.stderr)
        return {}
    pairs = (line.split() for line in done.stdout.splitlines())
    return {pair[0]: float(pair[1]) for pair in pairs if len(pair) == 2}


def best_hints(library: Library, row: Row, file: Path) -> dict:
    """For each value of a row the hints that are best for the library."""
    tried = [(hints, run(library, row, file, hints)) for hints in row.hints] if len(row.hints) > 1 else [([], {})]
    choose = max if row.more else min
    worst = 0 if row.more else float("inf")
    return {value: choose(tried, key=lambda one: one[1].get(value, worst))[0] for value in row.values}


def measured(row: Row, found: list, folder: Path, rounds: int) -> list:
    """Lines of results: one for each value."""
    with tempfile.TemporaryDirectory(prefix="file-speed-", dir=folder) as work:
        return measured_in(row, found, folder, Path(work) / "file", rounds)


def measured_in(row: Row, found: list, folder: Path, file: Path, rounds: int) -> list:
    hints = {library.name: best_hints(library, row, file) if library.name != "fishplate" else {value: [] for value in row.values}
             for library in found}
    all_rounds = []
    for number in range(rounds):
        order = found[number % len(found):] + found[:number % len(found)]
        got = {}
        for library in order:
            by_hints = {}
            for value in row.values:
                chosen = tuple(hints[library.name][value])
                if chosen not in by_hints:
                    by_hints[chosen] = run(library, row, file, list(chosen))
                got[library.name, value] = by_hints[chosen].get(value)
        all_rounds.append(got)
    lines = []
    for value in row.values:
        figures = {}
        for library in found:
            own = [got[library.name, value] for got in all_rounds if got[library.name, value] is not None]
            figures[library.name] = statistics.median(own) if own else None
        ratios = []
        for got in all_rounds:
            peers = [got[library.name, value] for library in found[1:] if got[library.name, value] is not None]
            mine = got["fishplate", value]
            if peers and mine is not None:
                best = max(peers) if row.more else min(peers)
                ratios.append(mine / best if best else float("inf") if mine else 1.0)
        ratio = statistics.median(ratios) if ratios else None
        lines.append({"pattern": row.pattern, "ranks": row.ranks, "value": value, "folder": str(folder), "figures": figures,
                      "ratio": ratio, "target": row.target, "more": row.more, "hints": {name: own[value] for name, own in hints.items()}})
    return lines


def is_met(line: dict) -> bool | None:
    if line["ratio"] is None:
        return None
    if line["target"] == "best":
        return line["ratio"] >= 1 if line["more"] else line["ratio"] <= 1
    return line["ratio"] >= float(line["target"])


def shown(line: dict) -> str:
    def figure(value):
        return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    cells = [line["pattern"], str(line["ranks"]), line["value"], line["folder"], *(figure(value) for value in line["figures"].values()),
             "-" if line["ratio"] is None else f"{line['ratio']:.2f}", line["target"], {True: "yes", False: "**no**", None: "-"}[is_met(line)]]
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=Path, default=ROOT / "build")
    parser.add_argument("--peers", type=Path, default=ROOT / "build/peers")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="only rows whose pattern and ranks, as in tile:4096/2, contain this word")
    parser.add_argument("--folders", default="/dev/shm,/tmp", help="a folder in memory, and one on a disk")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--json", type=Path, help="append the figures to this file, a line each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = libraries(options.prefix.resolve(), options.peers.resolve(), Path(work))
        head = ["pattern", "ranks", "value", "folder", *(library.name for library in found), "ratio", "limit", "met"]
        lines = ["| " + " | ".join(head) + " |", "| --- | ---: | --- | --- |" + " ---: |" * (len(found) + 1) + " ---: | --- |"]
        print("\n".join(lines))
        missed = 0
        for folder, row in itertools.product(map(Path, options.folders.split(",")), ROWS):
            if options.only not in f"{row.pattern}/{row.ranks}":
                continue
            for line in measured(row, found, folder, options.rounds):
                lines.append(shown(line))
                print(lines[-1], flush=True)
                missed += is_met(line) is False
                if options.json:
                    with options.json.open("a") as file:
                        file.write(json.dumps(line) + "\n")
        if options.markdown:
            options.markdown.write_text("\n".join(lines) + "\n")
        print(f"{missed} limits are missed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
