#!/usr/bin/env python3
"""mpiexec over the real ssh, with its default command: two hosts, each with an sshd that knows a key of this run alone.

    tests/launchers/ssh.py [--prefix build] [--only TEXT] [--list]

The hosts are network and UTS namespaces (tests/network.py). The user's configuration of ssh is not read and not changed. Each job ends in
time with the exit code and the words that it should have, and no process of it is left on either host. It needs root and OpenSSH, which it installs.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import network  # noqa: E402
from harness import Case, Outcome, Problem  # noqa: E402
from launchers import World  # noqa: E402

PROGRAMS = {"pi": "examples/pi.c", "hello": "tests/programs/hello.c", "abort": "tests/programs/abort.c", "exit_code": "tests/programs/exit_code.c",
            "waits": "tests/launchers/waits.c"}
# The longest silence in tests of lost hosts, in seconds, and the time for the end of a job after its cause.
PATIENCE, END_SECONDS = 2, 15
SERVER = """Port 22
HostKey {folder}/host-key
AuthorizedKeysFile {folder}/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
ClientAliveInterval 1
ClientAliveCountMax 3
"""
CLIENT = """Host *
IdentityFile {folder}/{key}
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
"""


def why_not() -> str:
    if reason := network.missing():
        return reason
    if not (shutil.which("ssh") and Path("/usr/sbin/sshd").exists()):
        subprocess.run([harness.ROOT / "scripts/needs.sh", "sshd"], stdout=subprocess.DEVNULL, check=False)
    return "" if Path("/usr/sbin/sshd").exists() else "OpenSSH cannot be installed"


class Site(World):
    """The hosts with their servers, and an `ssh` that reads the configuration of this run."""

    def __init__(self, prefix: Path, work: Path):
        super().__init__(prefix, work)
        self.servers = []
        for key in ("host-key", "user-key", "strange-key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", work / key], check=True)
        shutil.copy(work / "user-key.pub", work / "authorized")
        host_key = (work / "host-key.pub").read_text().rsplit(maxsplit=1)[0]
        (work / "known").write_text(f"{self.addresses()} {host_key}\n")
        (work / "server").write_text(SERVER.format(folder=work))
        for key in ("user-key", "strange-key"):
            (work / f"client-{key}").write_text(CLIENT.format(folder=work, key=key))
            program = work / key.removesuffix("-key") / "ssh"
            program.parent.mkdir()
            program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {work}/client-{key} "$@"\n')
            program.chmod(0o755)
        Path("/run/sshd").mkdir(exist_ok=True)
        for host in range(self.count):
            inside = ["ip", "netns", "exec", self.hosts().host(host), "unshare", "--uts", "sh", "-c"]
            self.servers.append(subprocess.Popen([*inside, f"hostname host{host}; exec /usr/sbin/sshd -D -f {work}/server"],
                                                 stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        self.wait_for_servers()

    def wait_for_servers(self) -> None:
        until = time.monotonic() + 20
        while self.run("true", ranks=2).code != 0:
            if time.monotonic() > until:
                raise Problem("the servers of ssh do not answer")
            time.sleep(0.1)

    def command(self, *program, ranks: int) -> list:
        words = [self.prefix / "bin/fishplate", "run", "-n", ranks, "--hosts", self.addresses(), *program]
        return list(map(str, self.on_first_host(words)))

    def environment(self, user: str = "user", more: dict | None = None) -> dict:
        return {"PATH": f"{self.work}/{user}:{os.environ['PATH']}", "FISHPLATE_HEARTBEAT": str(PATIENCE)} | (more or {})

    def run(self, *program, ranks: int = 4, seconds: float = 60, user: str = "user") -> Outcome:
        return harness.run(self.command(*program, ranks=ranks), seconds=seconds, env=self.environment(user))

    def program(self, name: str) -> Path:
        return self.work / name

    def processes(self) -> list[int]:
        """The processes inside both hosts but the servers."""
        pids = [int(pid) for host in range(self.count) for pid in network.ip("netns", "pids", self.hosts().host(host)).split()]
        own = {server.pid for server in self.servers}
        return [pid for pid in pids if pid not in own]

    def close(self) -> None:
        for server in self.servers:
            server.kill()
            server.wait()
            server.stderr.close()
        super().close()


def words(done: Outcome, code: int, *patterns: str, may: str = "$^") -> None:
    """The job ended with this code, and each line of ours matches one pattern, but for lines that match `may`."""
    said = [line for line in done.err.splitlines() if line.startswith("fishplate: ") and not re.search(may, line)]
    matches = len(said) == len(patterns) and all(re.search(pattern, line) for pattern, line in zip(patterns, said))
    if done.code != code or not matches:
        raise Problem(f"exit code {done.code}, expected {code} and {patterns}{harness.output(done.out + done.err)}")


def pi(site: Site) -> None:
    done = site.run(site.program("pi"))
    words(done, 0)
    if "pi is 3.14159265359" not in done.out:
        raise Problem(harness.output(done.out))


def placed(site: Site) -> None:
    done = site.run("hostname")
    words(done, 0)
    if sorted(done.out.split()) != ["host0", "host0", "host1", "host1"]:
        raise Problem(harness.output(done.out))


def many(site: Site) -> None:
    words(site.run(site.program("hello"), ranks=64, seconds=180), 0)


def killed(site: Site) -> None:
    words(site.run(site.program("exit_code"), "signal", seconds=END_SECONDS), 137, r"rank 1 .*SIGKILL")


def aborting(site: Site) -> None:
    words(site.run(site.program("abort"), seconds=END_SECONDS), 42, r"rank 3 \(.* on 10\.77\.0\.2\) called MPI_Abort with code 42")


def strange_key(site: Site) -> None:
    """ssh's own reason is shown."""
    words(site.run(site.program("pi"), user="strange"), 255, r"host 10\.77\.0\.\d: .*Permission denied \(publickey.* has to work from here")


def interrupted(site: Site) -> None:
    with Waiting(site) as job:
        job.process.send_signal(signal.SIGINT)
        job.end(130, "ended by SIGINT")


def unreachable(site: Site) -> None:
    """The cable of a host is cut. The launcher ends the job, and the host its own ranks."""
    with Waiting(site) as job:
        network.ip("-n", site.hosts().host(1), "link", "set", "eth0", "down")
        try:
            # A rank that has a frame on its way notices the dead path before the launcher does.
            job.end(1, r"host 10\.77\.0\.2: its agent has been silent for 2 s", may=r"no path to rank \d on host1 .* works")
            job.nothing_left()
        finally:
            network.ip("-n", site.hosts().host(1), "link", "set", "eth0", "up")


def stopped(site: Site) -> None:
    """The agent of a host is stopped. It ends once it goes on."""
    with Waiting(site) as job:
        agents = [pid for pid in site.processes() if is_agent(pid) and not is_agent(parent(pid)) and host_of(site, pid) == 1]
        if len(agents) != 1:
            raise Problem(f"{len(agents)} agents on host 1")
        os.kill(agents[0], signal.SIGSTOP)
        job.end(1, r"host 10\.77\.0\.2: its agent has been silent for 2 s")
        os.kill(agents[0], signal.SIGCONT)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_agent(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return command[0].endswith(b"/fishplate") and command[1:2] == [b"agent"]


def host_of(site: Site, pid: int) -> int:
    network_of = os.stat(f"/proc/{pid}/ns/net").st_ino
    return next(host for host in range(site.count) if site.hosts().inode(host) == network_of)


class Waiting:
    """A job whose ranks wait. A context manager: no process of it may be left."""

    def __init__(self, site: Site):
        self.site, self.err = site, tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(site.command(site.program("waits"), ranks=4), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.err, text=True, env=os.environ | site.environment(), start_new_session=True)

    def __enter__(self):
        if "waiting" not in self.process.stdout.readline():
            raise Problem(f"the job does not start: {self.said()}")
        return self

    def said(self) -> str:
        self.err.seek(0)
        return self.err.read()

    def end(self, code: int, *patterns: str, may: str = "$^") -> None:
        try:
            found = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise Problem(f"the job goes on: {self.said()}") from None
        words(Outcome(found, "", self.said(), 0), code, *patterns, may=may)

    def nothing_left(self) -> None:
        left_behind(self.site)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.err.close()


def left_behind(site: Site) -> None:
    until = time.monotonic() + END_SECONDS
    while left := site.processes():
        if time.monotonic() > until:
            names = [Path(f"/proc/{pid}/comm").read_text().strip() for pid in left if Path(f"/proc/{pid}").exists()]
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise Problem(f"left behind: {', '.join(names)}")
        time.sleep(0.05)


CASES = [
    Case("ranks run on both hosts", run=placed), Case("pi", run=pi), Case("64 ranks", run=many), Case("a rank is killed", run=killed),
    Case("MPI_Abort", run=aborting), Case("a key that the host does not know", run=strange_key), Case("Ctrl-C", run=interrupted),
    Case("an agent is stopped", run=stopped), Case("a host is unreachable", run=unreachable),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    chosen = [case for case in CASES if options.only in case.name]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    if reason := why_not():
        return harness.not_run("jobs over ssh", reason)
    network.remove_leftovers()
    with tempfile.TemporaryDirectory(prefix="fishplate-launchers-") as work:
        site = None
        try:
            site = Site(prefix, Path(work))
            site.compile(PROGRAMS)
            return harness.run_suite("ssh", chosen, site, after=left_behind)
        finally:
            if site is not None:
                site.close()


if __name__ == "__main__":
    sys.exit(main())
