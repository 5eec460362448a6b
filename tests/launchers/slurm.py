#!/usr/bin/env python3
"""A Slurm cluster on this machine: munged, slurmctld, and several slurmd, each a node.

    tests/launchers/slurm.py [--nodes 2] [--cpus 32] COMMAND...

runs a command (a shell, without one) with SLURM_CONF set, so that `srun`, `salloc` and `sbatch` reach this cluster. Ports are free ones.
`needs()` installs the packages of Debian and Ubuntu.
"""

import argparse
import os
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cluster  # noqa: E402
from harness import Problem, Skip  # noqa: E402

# `libpmix-dev` for the name libpmix.so, by which Slurm's plugin for PMIx opens it.
PACKAGES = ["slurm-wlm", "munge", "libpmix-dev"]
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sinfo", "scontrol"]

CONFIGURATION = """\
ClusterName=fishplate
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
"""


def needs() -> None:
    """Installs what is missing, as scripts/needs.sh does. Raises `Skip` where that cannot be."""
    if not missing():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Skip(f"no {', '.join(missing())} here, and only root installs them on Debian and Ubuntu")
    install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *PACKAGES]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False,
             # No service of the system starts: a policy refuses it.
             "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}}
    if subprocess.run(install, **quiet).returncode != 0:
        subprocess.run(["apt-get", "update", "-qq"], **quiet)
        subprocess.run(install, **quiet)
    if missing():
        raise Skip(f"apt-get does not install {', '.join(missing())}")


def missing() -> list[str]:
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return [program for program in PROGRAMS if shutil.which(program, path=path) is None]


def why_not() -> str:
    """The reason why there can be no cluster here, or nothing."""
    if os.geteuid() != 0:
        return "only root starts the daemons of Slurm"
    return f"no {', '.join(missing())}" if missing() else ""


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


class Cluster(cluster.Cluster):
    """`nodes` nodes with `cpus` processors each, whatever this machine has."""

    name, folder_name = "Slurm", "fishplate-slurm-"

    def __init__(self, nodes: int = 2, cpus: int = 32):
        self.nodes, self.cpus = [f"node{number}" for number in range(nodes)], cpus

    def configure(self) -> None:
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin"}
        port, *ports = free_ports(1 + len(self.nodes))
        host = socket.gethostname()
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
        rows = [f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={at} CPUs={self.cpus} RealMemory={memory} State=UNKNOWN"
                for node, at in zip(self.nodes, ports)]
        text = CONFIGURATION.format(host=host, port=port, folder=self.folder, nodes="\n".join(rows))
        (self.folder / "slurm.conf").write_text(text)
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        (self.folder / "state").mkdir()
        for node in self.nodes:
            # A folder of configuration for each: the names of PMIx's own folders do not contain the node.
            own = self.folder / node
            (own / "tmp").mkdir(parents=True)
            (own / "mpi.conf").write_text(f"PMIxCliTmpDirBase={own}/tmp\n")
            for name in ("slurm.conf", "cgroup.conf"):
                (own / name).symlink_to(self.folder / name)
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)

    def start(self) -> None:
        files = ["key", "socket", "log", "pid", "seed"]
        flags = {"key": "key-file", "socket": "socket", "log": "log-file", "pid": "pid-file", "seed": "seed-file"}
        self.daemon("munged", "--foreground", "--force", *[f"--{flags[file]}={self.folder}/munge.{file}" for file in files])
        self.wait_for("munge", lambda: (self.folder / "munge.socket").exists())
        self.daemon("slurmctld", "-D")
        for node in self.nodes:
            self.daemon("slurmd", "-D", "-N", node, "-f", self.folder / node / "slurm.conf")
        self.wait_for("Slurm", lambda: self.run("sinfo", "-h", "-o", "%D %t").out.split() == [str(len(self.nodes)), "idle"])

    def end_jobs(self) -> None:
        self.run("scancel", "--full", "--signal=KILL", "--state=RUNNING", "--user=root", seconds=5)

    def is_idle(self) -> bool:
        return not self.run("squeue", "-h").out.strip() and self.run("sinfo", "-h", "-o", "%t").out.split() == ["idle"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=32)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        needs()
        with Cluster(options.nodes, options.cpus) as own:
            command = options.command or [os.environ.get("SHELL", "/bin/sh")]
            return subprocess.run(command, env=os.environ | own.environment, check=False).returncode
    except (Problem, Skip) as why:
        print(f"slurm.py: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
