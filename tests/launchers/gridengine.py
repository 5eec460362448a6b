#!/usr/bin/env python3
"""A cluster of Grid Engine on this machine: a master, and two execution hosts, each a network namespace with a host name of its own.

    tests/launchers/gridengine.py [--slots 8] COMMAND...

runs a command (a shell, without one) on host0, where `qsub`, `qrsh` and `qstat` reach this cluster. The packages of Debian and Ubuntu are
not installed: `needs()` unpacks them into build/gridengine, and the hosts of the cluster see them as if they were installed.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import cluster  # noqa: E402
import harness  # noqa: E402
import network  # noqa: E402
from harness import Problem, Skip  # noqa: E402

PACKAGES = ["gridengine-master", "gridengine-exec", "gridengine-client"]
UNPACKED = harness.ROOT / "build" / "gridengine"
# Folders of the packages, as the hosts of the cluster see them.
SHARE, PROGRAMS = Path("/usr/share/gridengine"), Path("/usr/lib/gridengine")

# The words `enter HOST COMMAND...` run a command on a host: its network, its name, the packages, and the names of all hosts.
ENTER = """\
#!/bin/sh
exec ip netns exec {namespace}"$1" unshare --uts --mount sh -ec '
mount -t overlay overlay -o lowerdir={unpacked}/usr:/usr /usr
mount --bind {folder}/hosts /etc/hosts
hostname host"$0"
exec "$@"' "$@"
"""
# Parallel environments: the number of places on each host, and whether the job's script counts as a task.
ENVIRONMENTS = {"pairs": ("2", "FALSE"), "fill": ("$fill_up", "TRUE"), "spread": ("$round_robin", "FALSE")}
ENVIRONMENT = """\
pe_name {name}
slots 999
user_lists NONE
xuser_lists NONE
start_proc_args NONE
stop_proc_args NONE
allocation_rule {rule}
control_slaves TRUE
job_is_first_task {is_first_task}
urgency_slots min
accounting_summary FALSE
qsort_args NONE
"""
LIMITS = "rt cpu fsize data stack core rss vmem"
QUEUE = {
    **dict.fromkeys("load_thresholds suspend_thresholds ckpt_list prolog epilog starter_method resume_method terminate_method owner_list user_lists "
                    "xuser_lists subordinate_list complex_values projects xprojects calendar".split(), "NONE"),
    **{f"{kind}_{limit}": "INFINITY" for limit in LIMITS.split() for kind in "sh"},
    "qname": "all.q", "hostlist": "host0 host1", "qtype": "BATCH INTERACTIVE", "pe_list": " ".join(ENVIRONMENTS), "slots": "{slots}",
    "tmpdir": "{folder}/tmp0,[host1={folder}/tmp1]", "shell": "/bin/sh", "shell_start_mode": "unix_behavior",
    "processors": "UNDEFINED", "initial_state": "default", "seq_no": "0", "nsuspend": "1", "priority": "0", "rerun": "FALSE",
    "suspend_interval": "00:05:00", "min_cpu_interval": "00:05:00",
    # Time from SIGUSR2 to the end of a job that asks for this warning.
    "notify": "00:00:05",
    # As docs/user/running.md advises.
    "suspend_method": "SIGTSTP",
}
# Settings of the packages' own files that differ here. A job starts at once, and users below 1,000, such as root, start jobs.
BOOTSTRAP = {"admin_user": "none", "spooling_params": "{folder}/spool", "qmaster_spool_dir": "{folder}/qmaster"}
CONFIGURATION = {"execd_spool_dir": "{folder}/execd", "mailer": "/bin/true", "min_uid": "0", "min_gid": "0", "load_report_time": "00:00:02"}
SCHEDULER = {"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1"}


def needs() -> None:
    """Unpacks the packages, with those on which they depend. Raises `Skip` where that cannot be."""
    if (UNPACKED / "usr").exists():
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Skip("no Grid Engine here, and only root fetches it on Debian and Ubuntu")
    UNPACKED.parent.mkdir(parents=True, exist_ok=True)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False, "env": os.environ | {"DEBIAN_FRONTEND": "noninteractive"}}
    with tempfile.TemporaryDirectory(dir=UNPACKED.parent) as work:
        (fetched := Path(work, "fetched")).mkdir()
        fetch = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "--download-only", "-o", f"Dir::Cache::archives={fetched}", *PACKAGES]
        if subprocess.run(fetch, **quiet).returncode != 0:
            subprocess.run(["apt-get", "update", "-qq"], **quiet)
            subprocess.run(fetch, **quiet)
        (root := Path(work, "root", "usr")).mkdir(parents=True)
        for package in fetched.glob("*.deb"):
            subprocess.run(["dpkg-deb", "--extract", package, root.parent], check=True)
        if not any(Path(where, "usr/lib/gridengine/sge_qmaster").exists() for where in (root.parent, "/")):
            raise Skip(f"apt-get does not fetch {', '.join(PACKAGES)}")
        root.parent.rename(UNPACKED)


def why_not() -> str:
    """The reason why there can be no cluster here, or nothing."""
    if why := network.missing():
        return why
    with tempfile.TemporaryDirectory() as folder:
        words = ["unshare", "--mount", "mount", "-t", "overlay", "overlay", "-o", f"lowerdir={folder}:/usr", "/usr"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"mounts of the packages over /usr: {done.stderr.strip()}" if done.returncode != 0 else ""


class Cluster(cluster.Cluster):
    """Two execution hosts, host0 and host1, with `slots` places each. The master is on host0."""

    name, folder_name = "Grid Engine", "fishplate-gridengine-"

    def __init__(self, slots: int = 8):
        self.slots = slots
        # The namespaces; nothing of a prefix is used.
        self.network = network.Hosts(Path(), count=2)

    def __enter__(self):
        network.remove_leftovers()
        self.network.__enter__()
        try:
            return super().__enter__()
        except BaseException:
            self.network.__exit__()
            raise

    def __exit__(self, *_):
        super().__exit__()
        self.network.__exit__()

    def configure(self) -> None:
        self.environment = {"SGE_ROOT": str(self.folder), "SGE_CELL": "default", "SGE_QMASTER_PORT": "6444", "SGE_EXECD_PORT": "6445"}
        for part in ("default/common", "qmaster/job_scripts", "execd", "spool", "tmp0", "tmp1", "bin", "lib", "utilbin"):
            (self.folder / part).mkdir(parents=True)
        (self.folder / "util").symlink_to(SHARE / "util")
        architecture = harness.run([str(self.own(SHARE / "util/arch"))], seconds=10).out.strip()
        for part in ("bin", "lib", "utilbin"):
            (self.folder / part / architecture).symlink_to(PROGRAMS)
        names = [f"{self.network.address(host)} host{host}" for host in self.network.all]
        (self.folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", *names, ""]))
        (self.folder / "default/common/act_qmaster").write_text("host0\n")
        self.write("default/common/bootstrap", self.own(SHARE / "default-bootstrap").read_text(), BOOTSTRAP)
        self.write("configuration", self.own(SHARE / "default-configuration").read_text(), CONFIGURATION)
        self.write("queue", "", QUEUE)
        for name, (rule, is_first_task) in ENVIRONMENTS.items():
            (self.folder / name).write_text(ENVIRONMENT.format(name=name, rule=rule, is_first_task=is_first_task))
        enter = self.folder / "enter"
        enter.write_text(ENTER.format(namespace=self.network.name(""), unpacked=UNPACKED, folder=self.folder))
        enter.chmod(0o755)

    def own(self, path: Path) -> Path:
        """A file of the packages, as this process sees it."""
        unpacked = UNPACKED / path.relative_to("/")
        return unpacked if unpacked.exists() else path

    def write(self, name: str, text: str, rows: dict) -> None:
        """A file of names and values: a text in which some are replaced."""
        kept = [line for line in text.splitlines() if line.split(maxsplit=1)[:1] not in [[row] for row in rows]]
        rows = {row: value.format(folder=self.folder, slots=self.slots) for row, value in rows.items()}
        (self.folder / name).write_text("\n".join([*kept, *(f"{row} {value}" for row, value in rows.items()), ""]))

    def start(self) -> None:
        spool = [[PROGRAMS / "spoolinit", "berkeleydb", "libspoolb", self.folder / "spool", "init"],
                 *([PROGRAMS / "spooldefaults", *words] for words in (
                     ["configuration", self.folder / "configuration"], ["complexes", SHARE / "util/resources/centry"],
                     ["usersets", SHARE / "util/resources/usersets"], ["managers", "root"]))]
        self.order(*spool)
        # In the foreground.
        own = {"SGE_ND": "1"}
        self.daemon(*self.on(0, "sge_qmaster"), env=own)
        self.wait_for("Grid Engine's master", lambda: self.run("qconf", "-sconf").code == 0)
        self.order(["qconf", "-ah", "host1"], ["qconf", "-as", "host0,host1"], *(["qconf", "-Ap", self.folder / name] for name in ENVIRONMENTS))
        self.write("scheduler", self.run("qconf", "-ssconf").out, SCHEDULER)
        for host in self.network.all:
            self.daemon(*self.on(host, "sge_execd"), env=own)
        self.wait_for("Grid Engine", lambda: self.run("qconf", "-sel").out.split() == ["host0", "host1"])
        self.order(["qconf", "-Msconf", self.folder / "scheduler"], ["qconf", "-Aq", self.folder / "queue"])
        # A queue has a state in the sixth column until its host has reported.
        self.wait_for("a queue", lambda: [len(line.split()) for line in self.run("qstat", "-f").out.splitlines() if "all.q@" in line] == [5, 5])

    def order(self, *commands: list) -> None:
        """Commands of the system, none of which may fail."""
        done = self.run("sh", "-ec", "\n".join(shlex.join(map(str, command)) for command in commands))
        if done.code != 0:
            raise Problem(f"Grid Engine cannot be set up{harness.output(done.out + done.err)}")

    def on(self, host: int, *command) -> list[str]:
        """The command, run on a host."""
        return [str(self.folder / "enter"), str(host), *map(str, command)]

    def words(self, *command) -> list[str]:
        return self.on(0, *command)

    def end_jobs(self) -> None:
        if self.processes:
            self.run("qdel", "-f", "*", seconds=5)

    def is_idle(self) -> bool:
        """No job, and no process of one."""
        daemons = {process.pid for process in self.processes}
        return not self.run("qstat", "-u", "*").out.strip() and all(
            set(map(int, network.ip("netns", "pids", self.network.host(host)).split())) <= daemons for host in self.network.all)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        if why := why_not():
            raise Skip(why)
        needs()
        with Cluster(options.slots) as own:
            command = options.command or [os.environ.get("SHELL", "/bin/sh")]
            return subprocess.run(own.words(*command), env=os.environ | own.environment, check=False).returncode
    except (Problem, Skip) as why:
        print(f"gridengine.py: {why}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
