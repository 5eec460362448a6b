#!/usr/bin/env python3
"""mpiexec inside allocations of a real Slurm and a real Grid Engine: hosts and places from it, agents by the system's command, nothing left.

    tests/launchers/allocation.py [--prefix build] [--only TEXT] [--list]

The last line is `N passed, N failed, N skipped`.
"""

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import cluster  # noqa: E402
import gridengine  # noqa: E402
import harness  # noqa: E402
import slurm  # noqa: E402
from harness import Case, Problem, Skip, Tally  # noqa: E402

# Time in which no rank is left of a job that has ended.
END_SECONDS = 10
OURS = re.compile(r"^fishplate: .*$", re.M)


class System:
    """A batch system. `host` is the part of its hosts' names before their number."""

    name = host = ""
    # The network between its hosts.
    device = "tcp"
    # Two tasks on each of two hosts; and further allocations, each with the hosts of the ranks.
    each_two: list = []
    others: list = []

    def why_not(self) -> str:
        """The reason why it cannot run here, or nothing."""
        raise NotImplementedError

    def cluster(self) -> cluster.Cluster:
        raise NotImplementedError

    def allocated(self, allocation: list, command: list) -> list:
        """The words that run a command in an allocation, and wait for it."""
        raise NotImplementedError

    def batch(self, world, commands: str, folder: Path) -> str:
        """The output of a batch script of `each_two` with these commands, which succeeds."""
        raise NotImplementedError

    def cancel(self, world) -> None:
        """Ends all jobs, as a user does."""
        raise NotImplementedError


class Slurm(System):
    name, host, device = "Slurm", "node", "tcp:lo"
    each_two = ["-N2", "--ntasks-per-node=2"]
    # Slurm fills the first node, and leaves one task for the second.
    others = [(["-N2", "-n3"], [0, 0, 1]), (["-N2", "-n4"], [0, 0, 0, 1])]

    def why_not(self):
        return slurm.why_not()

    def cluster(self):
        return slurm.Cluster(nodes=2, cpus=8)

    def allocated(self, allocation, command):
        return ["salloc", "--quiet", *allocation, *command]

    def batch(self, world, commands, folder):
        """With options that srun would read from the environment."""
        script = folder / "script"
        script.write_text("#!/bin/sh\n#SBATCH --nodes=2 --ntasks=4 --ntasks-per-node=2 --mem-per-cpu=10 --cpus-per-task=2\n"
                          f"export SLURM_LABELIO=1 SLURM_CPU_BIND=verbose\n{commands}\n")
        done = world.cluster.run("sbatch", "--wait", f"--output={folder}/out", script)
        if done.code != 0:
            raise Problem(f"{done.code}: {done.err!r}")
        # The test's cluster has no plugin that binds, as srun remarks.
        return (folder / "out").read_text().replace("srun: cluster configuration lacks support for cpu binding\n", "")

    def cancel(self, world):
        world.cluster.run("scancel", "--user=root")


class GridEngine(System):
    name, host = "Grid Engine", "host"
    each_two = ["-pe", "pairs", "4"]
    others = [(["-pe", "spread", "3"], [0, 0, 1]), (["-pe", "fill", "9"], [0] * 8 + [1]), (["-pe", "fill", "3"], [0] * 3)]
    # The script runs on the first host, so the order of hosts is known.
    first = ["-masterq", "all.q@host0"]

    def why_not(self):
        if why := gridengine.why_not():
            return why
        try:
            gridengine.needs()
        except Skip as why:
            return str(why)
        return ""

    def cluster(self):
        return gridengine.Cluster(slots=8)

    def allocated(self, allocation, command):
        # A shell on the host reads the words.
        return ["qrsh", "-now", "no", "-cwd", "-V", *self.first, *allocation, shlex.join(map(str, command))]

    def batch(self, world, commands, folder):
        script = folder / "script"
        script.write_text(f"#!/bin/sh\n#$ -S /bin/sh -cwd -j y -o {folder}/out\n#$ {shlex.join([*self.first, *self.each_two])}\n{commands}\n")
        done = world.cluster.run("qsub", "-sync", "y", script)
        if done.code != 0:
            raise Problem(f"{done.code}: {done.out!r} {done.err!r}")
        return (folder / "out").read_text()

    def cancel(self, world):
        world.cluster.run("qdel", "*")


@dataclass
class World:
    system: System
    cluster: cluster.Cluster
    mpiexec: Path
    programs: Path

    def on(self, host: int) -> str:
        return f"{self.system.host}{host}"

    def allocated(self, *words, allocation: list | None = None, env: dict | None = None) -> harness.Outcome:
        """mpiexec with these words in an allocation."""
        return self.cluster.run(*self.system.allocated(allocation or self.system.each_two, [self.mpiexec, *words]), env=env)


class Running:
    """A job of four ranks on two hosts, in the background. They sleep, after the shell's commands `first`. The end of the context ends it."""

    def __init__(self, world: World, first: str = "", options: list | None = None, env: dict | None = None):
        self.world, self.first, self.options, self.env = world, first, options or [], env or {}
        self.mark = f"sleep {1000 + os.getpid()}"

    def __enter__(self):
        world = self.world
        program = ["sh", "-c", f"{self.first} echo $FISHPLATE_RANK $$ $PPID; exec {self.mark}"]
        command = world.system.allocated([*self.options, *world.system.each_two], [world.mpiexec, *program])
        self.process = subprocess.Popen(world.cluster.words(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=os.environ | world.cluster.environment | self.env, start_new_session=True)
        lines = [self.process.stdout.readline() for _ in range(4)]
        if "" in lines:
            said = self.process.stderr.read()
            self.__exit__()
            raise Problem(f"the job does not start: {lines} {said!r}")
        found = [list(map(int, line.split())) for line in lines]
        # By rank: its process, and the one that started it, which is its host's agent.
        self.ranks, self.agents = {row[0]: row[1] for row in found}, {row[0]: row[2] for row in found}
        return self

    def __exit__(self, *_):
        harness.kill_session(self.process.pid)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def launcher(self) -> int:
        """The first process of mpiexec's command line."""
        return int(pgrep("-o", "-f", f"^{self.world.mpiexec} .*{self.mark}")[0])

    def states(self) -> list[str]:
        """The states of the ranks' processes, as /proc shows them."""
        return [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in self.ranks.values()]

    def end(self) -> harness.Outcome:
        """Its result. No rank is left, and the cluster is idle."""
        began = time.monotonic()
        out, said = self.process.communicate(timeout=60)
        until = time.monotonic() + END_SECONDS
        while left := pgrep("-f", f"^{self.mark}$"):
            if time.monotonic() > until:
                raise Problem(f"ranks are left: {left}")
            time.sleep(0.1)
        self.world.cluster.settle()
        return harness.Outcome(self.process.returncode, out, said, time.monotonic() - began)


def pgrep(*words) -> list[str]:
    return subprocess.run(["pgrep", *words], capture_output=True, text=True, check=False).stdout.split()


# A program that prints its rank, the number of ranks, and the host.
SHOW = ["sh", "-c", "echo $FISHPLATE_RANK $FISHPLATE_SIZE ${SLURMD_NODENAME:-$(hostname)}"]


def rows(world: World, where: list) -> list[str]:
    return [f"{rank} {len(where)} {world.on(host)}" for rank, host in enumerate(where)]


def expect(done: harness.Outcome, out: list) -> None:
    if done.code != 0 or sorted(done.out.splitlines()) != sorted(out):
        raise Problem(f"exit status {done.code}, output {done.out!r}, errors {done.err!r}")


def places(words: list, where: list, allocation: list | None = None):
    def test(world):
        expect(world.allocated(*words, *SHOW, allocation=allocation), rows(world, where))
        world.cluster.settle()
    return f"{' '.join(allocation or ['two each'])} mpiexec {' '.join(words)}".rstrip(), test


def batch_script(world):
    with tempfile.TemporaryDirectory(dir=world.programs) as folder:
        text = world.system.batch(world, shlex.join(map(str, [world.mpiexec, *SHOW])), Path(folder))
    if sorted(text.splitlines()) != rows(world, [0, 0, 1, 1]):
        raise Problem(f"output {text!r}")
    world.cluster.settle()


def mpi_program(world):
    done = world.allocated(world.programs / "hello", env={"FISHPLATE_DEVICE": world.system.device})
    if done.code != 0:
        raise Problem(f"exit status {done.code}: {done.out!r} {done.err!r}")
    world.cluster.settle()


def output_is_whole(world):
    """Bytes without ends of lines, in both directions. Rank 0 is not on the launcher's host, so its input goes through the system."""
    data = os.urandom(2_000_000)
    with tempfile.TemporaryDirectory(dir=world.programs) as folder:
        Path(folder, "in").write_bytes(data)
        words = [world.mpiexec, "-n", "3", "--hosts", f"{world.on(1)},{world.on(0)}", "sh", "-c", "cat; head -c 500000 /dev/zero"]
        command = f"{shlex.join(map(str, words))} < {folder}/in > {folder}/out"
        done = world.cluster.run(*world.system.allocated(world.system.each_two, ["sh", "-c", command]))
        out = Path(folder, "out").read_bytes()
    lengths = (len(out), out.count(0) >= 1_500_000)
    if done.code != 0 or lengths != (len(data) + 1_500_000, True):
        raise Problem(f"exit status {done.code}, {lengths}, {done.err!r}")
    world.cluster.settle()


def one_line(done: harness.Outcome, code: int, pattern: str) -> None:
    lines = OURS.findall(done.err)
    if done.code != code or len(lines) != 1 or not re.search(pattern, lines[0]):
        raise Problem(f"exit status {done.code}: {done.err!r}")


def failed_rank(world):
    done = world.allocated("sh", "-c", "[ $FISHPLATE_RANK != 3 ] || exit 7; sleep 100")
    one_line(done, 7, rf"rank 3 \(pid \d+, sh on {world.on(1)}\) exited with code 7")
    world.cluster.settle()


def too_many_ranks(world):
    done = world.allocated("-n", "5", *SHOW)
    one_line(done, 2, rf"{world.system.name} job \d+: 5 ranks, and places for 4 \({world.on(0)}:2,{world.on(1)}:2\)")


def shown(world):
    """`fishplate info` shows the allocation."""
    done = world.cluster.run(*world.system.allocated(world.system.each_two, [world.mpiexec.parent / "fishplate", "info"]))
    if not re.search(rf"allocation +{world.system.name} job \d+: {world.on(0)}(:2)?,{world.on(1)}(:2)?", done.out):
        raise Problem(f"exit status {done.code}: {done.out!r} {done.err!r}")
    world.cluster.settle()


def in_turn(world):
    """Each job begins when the one before has ended, and its places are free."""
    words = shlex.join(map(str, [world.mpiexec, *SHOW]))
    done = world.cluster.run(*world.system.allocated(world.system.each_two, ["sh", "-c", "; ".join([words] * 6)]))
    expect(done, rows(world, [0, 0, 1, 1]) * 6)
    world.cluster.settle()


def interrupted(world):
    """The launcher is killed: no process of the job stays."""
    with Running(world) as job:
        os.kill(job.launcher(), signal.SIGKILL)
        job.end()


def killed_rank(world):
    with Running(world) as job:
        os.kill(job.ranks[3], signal.SIGKILL)
        one_line(job.end(), 137, rf"rank 3 \(pid \d+, sh on {world.on(1)}\) was killed by SIGKILL")


def killed_agent(world):
    """It ends the job, in one line that names its host."""
    with Running(world) as job:
        os.kill(job.agents[3], signal.SIGKILL)
        one_line(job.end(), 137, rf"host {world.on(1)}: its agent is gone")


def cancelled(world):
    """A job that the user cancels leaves nothing."""
    with Running(world) as job:
        world.system.cancel(world)
        job.end()


def suspended(world):
    """A queue with SIGTSTP as its method stops all ranks, for longer than launcher and agents wait for each other."""
    with Running(world, env={"FISHPLATE_HEARTBEAT": "1"}) as job:
        number = world.cluster.run("qstat").out.splitlines()[-1].split()[0]
        world.cluster.run("qmod", "-sj", number)
        wait_for("stopped ranks", lambda: job.states() == ["T"] * 4)
        time.sleep(3)
        world.cluster.run("qmod", "-usj", number)
        wait_for("ranks that go on", lambda: job.states() == ["S"] * 4)
        os.kill(job.ranks[0], signal.SIGTERM)
        one_line(job.end(), 143, "rank 0 .* was killed by SIGTERM")


def notified(world):
    """A warning of the system's end reaches all ranks."""
    warned = "trap 'echo warned $FISHPLATE_RANK; exit 0' USR2; echo $FISHPLATE_RANK $$ $PPID; while :; do sleep 0.1; done;"
    with Running(world, first=warned, options=["-notify"]) as job:
        world.system.cancel(world)
        expect(job.end(), [f"warned {rank}" for rank in range(4)])


def wait_for(what: str, ready: Callable) -> None:
    until = time.monotonic() + END_SECONDS
    while not ready():
        if time.monotonic() > until:
            raise Problem(f"no {what} after {END_SECONDS} s")
        time.sleep(0.05)


def tests(system: System) -> list:
    return [
        places([], [0, 0, 1, 1]),
        *(places([], where, allocation) for allocation, where in system.others),
        places(["-n", "3"], [0, 0, 1]),
        places(["--ppn", "1"], [0, 1]),
        places(["--hosts", f"{system.host}1"], [1, 1]),
        ("a batch script", batch_script),
        ("jobs in turn", in_turn),
        ("fishplate info", shown),
        ("an MPI program over TCP", mpi_program),
        ("input and output are whole", output_is_whole),
        ("a rank fails", failed_rank),
        ("too many ranks", too_many_ranks),
        ("a rank is killed", killed_rank),
        ("an agent is killed", killed_agent),
        ("the launcher is killed", interrupted),
        ("the job is cancelled", cancelled),
        *([("the job is suspended", suspended), ("the end is announced", notified)] if isinstance(system, GridEngine) else []),
    ]


SYSTEMS = [Slurm(), GridEngine()]


def run(system: System, cases: list[Case], prefix: Path, programs: Path) -> Tally | None:
    """None where the system cannot run here."""
    if why := system.why_not():
        harness.not_run(f"mpiexec inside {system.name}", why)
        return None
    with system.cluster() as own:
        return harness.run_cases(cases, World(system, own, prefix / "bin/mpiexec", programs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    names = [(system, f"{system.name}: {name}", test) for system in SYSTEMS for name, test in tests(system)]
    chosen = [(system, Case(name, test, seconds=180)) for system, name, test in names if options.only in name]
    if options.list:
        print("\n".join(case.name for _, case in chosen))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    began, tally = time.monotonic(), Tally()
    with tempfile.TemporaryDirectory(prefix="fishplate-launchers-") as programs:
        subprocess.run([prefix / "bin/mpicc", "-O1", "-o", Path(programs, "hello"), HERE.parent / "programs" / "hello.c"], check=True)
        for system in SYSTEMS:
            cases = [case for owner, case in chosen if owner is system]
            if cases and (result := run(system, cases, prefix, Path(programs))):
                tally.merge(result)
    return harness.close("allocation", tally, began) if tally.cases else harness.NOT_RUN


if __name__ == "__main__":
    sys.exit(main())
