#!/usr/bin/env python3
"""mpiexec inside allocations of a real Slurm: hosts and places from it, agents by srun, nothing left.

    tests/launchers/allocation.py [--prefix build] [--only TEXT] [--list]

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import slurm  # noqa: E402
from harness import Case, Problem  # noqa: E402

# Two tasks on each of two nodes. (Slurm fills the first node with `-n4`, and leaves one task for the second.)
EACH_TWO = ["-N2", "--ntasks-per-node=2"]
SHOW = ["sh", "-c", "echo $FISHPLATE_RANK $FISHPLATE_SIZE $SLURMD_NODENAME"]


@dataclass
class World:
    cluster: slurm.Cluster
    mpiexec: Path
    programs: Path


def allocated(world: World, allocation: list, words: list, env: dict | None = None, seconds: float = 60) -> harness.Outcome:
    """mpiexec with these words in an allocation by salloc."""
    return world.cluster.run("salloc", "--quiet", *allocation, world.mpiexec, *words, seconds=seconds, env=env)


def expect(done: harness.Outcome, out: list) -> None:
    if done.code != 0 or sorted(done.out.splitlines()) != sorted(out):
        raise Problem(f"exit status {done.code}, output {done.out!r}, errors {done.err!r}")


def places(allocation: list, words: list, where: list):
    def test(world):
        done = allocated(world, allocation, [*words, *SHOW])
        expect(done, [f"{rank} {len(where)} node{node}" for rank, node in enumerate(where)])
        world.cluster.settle()
    return f"{' '.join(allocation)} mpiexec {' '.join(words)}", test


def batch_script(world):
    """As sbatch starts it, with options that srun would read from the environment."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        script = Path(folder, "script")
        script.write_text("#!/bin/sh\n#SBATCH --nodes=2 --ntasks=4 --ntasks-per-node=2 --mem-per-cpu=10 --cpus-per-task=2\n"
                          "export SLURM_LABELIO=1 SLURM_CPU_BIND=verbose\n"
                          f"{world.mpiexec} {' '.join(SHOW[:2])} '{SHOW[2]}'\n")
        done = world.cluster.run("sbatch", "--wait", f"--output={out}", script)
        # The test's cluster has no plugin that binds, as srun remarks.
        text = out.read_text().replace("srun: cluster configuration lacks support for cpu binding\n", "")
        if done.code != 0 or sorted(text.splitlines()) != ["0 4 node0", "1 4 node0", "2 4 node1", "3 4 node1"]:
            raise Problem(f"{done.code}: {text!r} {done.err!r}")
    world.cluster.settle()


def mpi_program(world):
    done = allocated(world, EACH_TWO, [world.programs / "hello"], env={"FISHPLATE_DEVICE": "tcp:lo"})
    if done.code != 0:
        raise Problem(f"exit status {done.code}: {done.out!r} {done.err!r}")
    world.cluster.settle()


def output_is_whole(world):
    """Bytes without ends of lines, in both directions."""
    data = os.urandom(2_000_000)
    words = [world.mpiexec, "-n", "3", "sh", "-c", "cat; head -c 500000 /dev/zero"]
    command = ["salloc", "--quiet", "-N2", "-n4", *map(str, words)]
    done = subprocess.run(command, input=data, capture_output=True, timeout=60, env=os.environ | world.cluster.environment)
    lengths = (len(done.stdout), done.stdout.count(0) >= 1_500_000)
    if done.returncode != 0 or lengths != (len(data) + 1_500_000, True):
        raise Problem(f"exit status {done.returncode}, {lengths}, {done.stderr!r}")
    world.cluster.settle()


def failed_rank(world):
    done = allocated(world, EACH_TWO, ["sh", "-c", "[ $FISHPLATE_RANK != 3 ] || exit 7; sleep 100"])
    lines = [line for line in done.err.splitlines() if line.startswith("fishplate")]
    if done.code != 7 or len(lines) != 1 or not re.search(r"rank 3 \(pid \d+, sh on node1\) exited with code 7", lines[0]):
        raise Problem(f"exit status {done.code}: {done.err!r}")
    world.cluster.settle()


def too_many_ranks(world):
    done = allocated(world, EACH_TWO, ["-n", "5", *SHOW])
    if done.code == 0 or not re.search(r"Slurm job \d+: 5 ranks, and places for 4 \(node0:2,node1:2\)", done.err):
        raise Problem(f"exit status {done.code}: {done.err!r}")
    world.cluster.settle()


def interrupted(world):
    """The launcher is killed: no step and no rank stays."""
    mark = f"sleep {1000 + os.getpid()}"
    command = ["salloc", "--quiet", "-N2", "-n4", str(world.mpiexec), "sh", "-c", f"echo ready; exec {mark}"]
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | world.cluster.environment, start_new_session=True) as process:
        try:
            for _ in range(4):
                process.stdout.readline()
            launchers = [pid for pid in harness.session_members(process.pid)
                         if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(str(world.mpiexec).encode())]
            os.kill(min(launchers), signal.SIGKILL)
            process.wait(30)
        finally:
            harness.kill_session(process.pid)
    until = time.monotonic() + 10
    while left := subprocess.run(["pgrep", "-f", f"^{mark}$"], capture_output=True, text=True, check=False).stdout.split():
        if time.monotonic() > until:
            raise Problem(f"ranks are left: {left}")
        time.sleep(0.1)
    world.cluster.settle()


def tests() -> list:
    return [
        places(EACH_TWO, [], [0, 0, 1, 1]),
        places(["-N2", "-n3"], [], [0, 0, 1]),
        places(["-N2", "-n4"], [], [0, 0, 0, 1]),
        places(EACH_TWO, ["-n", "3"], [0, 0, 1]),
        places(EACH_TWO, ["--ppn", "1"], [0, 1]),
        places(EACH_TWO, ["--hosts", "node1"], [1, 1]),
        ("a batch script", batch_script),
        ("an MPI program over TCP", mpi_program),
        ("input and output are whole", output_is_whole),
        ("a rank fails", failed_rank),
        ("too many ranks", too_many_ranks),
        ("the launcher is killed", interrupted),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    cases = [Case(name, run, seconds=180) for name, run in tests() if options.only in name]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    if why := slurm.why_not():
        return harness.not_run("mpiexec inside Slurm", why)
    with tempfile.TemporaryDirectory() as folder, slurm.Cluster(nodes=2, cpus=8) as cluster:
        subprocess.run([prefix / "bin/mpicc", "-O1", "-o", Path(folder, "hello"), HERE.parent / "c" / "hello.c"], check=True)
        return harness.run_suite("allocation", cases, World(cluster, prefix / "bin/mpiexec", Path(folder)))


if __name__ == "__main__":
    sys.exit(main())
