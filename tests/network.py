"""Hosts as network namespaces of this machine, with cables between them.

A host has the interfaces eth0, eth1 and so on, one for each rail. Their cables are of three kinds: `veth`, a pair of interfaces between
two hosts; `bridge`, a switch for each rail, in a namespace of its own; and `wire`, a program (wire.c) between two hosts that delays,
loses and reorders frames. Traffic stays inside the namespaces. They go at the end, and those that a killed run has left go before
the next begins.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import harness
from harness import Outcome, Problem

# Namespaces are called after the process that made them.
NAME = "fishplate-{pid}-{part}"
OURS = re.compile(r"fishplate-(\d+)-\S+")
# The burst of a limited interface, which holds the longest segments that the kernel hands down at once.
BURST = "256kb"
SETTINGS = {
    # The default of Linux. Others, such as bbr, pace what they send, and are not made for such networks.
    "net/ipv4/tcp_congestion_control": "cubic",
    # Duplicates are not looked for, so an address can be used at once.
    "net/ipv6/conf/all/accept_dad": "0", "net/ipv6/conf/default/accept_dad": "0",
    # Addresses of IPv6 stay where a link goes down, as those of IPv4 do.
    "net/ipv6/conf/all/keep_addr_on_down": "1", "net/ipv6/conf/default/keep_addr_on_down": "1",
}


def ip(*words) -> str:
    command = ["ip", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise Problem(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def missing() -> str:
    """The reason why there can be no namespaces here, or nothing."""
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    probe = NAME.format(pid=os.getpid(), part="probe")
    try:
        ip("netns", "add", probe)
        ip("-n", probe, "link", "add", "one", "type", "veth", "peer", "name", "other")
    except (Problem, OSError) as why:
        return f"network namespaces with veth: {why}"
    finally:
        subprocess.run(["ip", "netns", "del", probe], stderr=subprocess.DEVNULL, check=False)
    return ""


def namespaces() -> list[str]:
    return [line.split()[0] for line in ip("netns", "list").splitlines() if line]


def remove(namespace: str) -> None:
    """Removes a namespace of ours, and ends the processes in it."""
    for pid in ip("netns", "pids", namespace).split():
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            pass
    ip("netns", "del", namespace)


def remove_leftovers() -> None:
    """Removes the namespaces of runs that were killed."""
    for namespace in namespaces():
        if (found := OURS.fullmatch(namespace)) and not Path(f"/proc/{found[1]}").exists():
            remove(namespace)


class Hosts:
    """`count` hosts with `rails` interfaces each, and after them `strangers`, hosts that run no job. A context manager: they exist
    inside it. `family` is 4 or 6, or 0 for hosts with link-local addresses alone."""

    def __init__(self, prefix: Path, count: int = 2, rails: int = 1, kind: str = "veth", family: int = 4, mtu: int = 1500,
                 strangers: int = 0, seed: int = 1):
        assert kind == "bridge" or (count, strangers) == (2, 0)
        self.prefix, self.count, self.rails, self.kind, self.family, self.mtu, self.seed = prefix, count, rails, kind, family, mtu, seed
        self.all = range(count + strangers)
        self.switch = self.name("switch")
        self.wires = []

    def name(self, part) -> str:
        return NAME.format(pid=os.getpid(), part=part)

    def host(self, host: int) -> str:
        return self.name(host)

    def inode(self, host: int) -> int:
        """The number by which /proc shows the network of a host's processes."""
        return os.stat(f"/run/netns/{self.host(host)}").st_ino

    def address(self, host: int, rail: int = 0) -> str:
        return f"10.77.{rail}.{host + 1}" if self.family == 4 else f"fd77:{rail}::{host + 1}"

    def __enter__(self):
        try:
            self.make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for wire in self.wires:
            wire.kill()
            wire.wait()
        for part in [*self.all, "switch"]:
            if self.name(part) in namespaces():
                remove(self.name(part))

    def make(self) -> None:
        for part in [*self.all, *(["switch"] if self.kind == "bridge" else [])]:
            namespace = self.name(part)
            ip("netns", "add", namespace)
            for setting, value in SETTINGS.items():
                self.inside(namespace, "sh", "-c", f"echo {value} > /proc/sys/{setting}")
            ip("-n", namespace, "link", "set", "lo", "up")
        for rail in range(self.rails):
            getattr(self, f"make_{self.kind}")(rail)
            for host in self.all:
                self.configure(host, rail)
        self.wait_for_links()

    def make_veth(self, rail: int) -> None:
        ends = [("netns", self.host(host), "name", f"eth{rail}") for host in (0, 1)]
        name = f"fp{os.getpid() % 10**7}"
        ip("link", "add", name, *ends[0][:2], "type", "veth", "peer", *ends[1][2:], *ends[1][:2])
        ip("-n", self.host(0), "link", "set", name, "name", f"eth{rail}")

    def make_bridge(self, rail: int) -> None:
        ip("-n", self.switch, "link", "add", f"br{rail}", "type", "bridge")
        ip("-n", self.switch, "link", "set", f"br{rail}", "mtu", self.mtu, "up")
        for host in self.all:
            port = f"r{rail}h{host}"
            ip("-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", f"eth{rail}", "netns", self.host(host))
            ip("-n", self.switch, "link", "set", port, "mtu", self.mtu, "master", f"br{rail}", "up")

    def make_wire(self, rail: int) -> None:
        command = [wire_program(self.prefix), self.host(0), self.host(1), f"eth{rail}", self.seed]
        process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wires.append(process)
        if process.stdout.readline() != "ready\n":
            raise Problem("the cable between two namespaces does not work")

    def configure(self, host: int, rail: int) -> None:
        name, namespace = f"eth{rail}", self.host(host)
        if self.family == 4:
            # Below 1280 bytes there is no IPv6.
            ip("-n", namespace, "addr", "add", f"{self.address(host, rail)}/24", "dev", name)
        elif self.family == 6:
            ip("-n", namespace, "addr", "add", f"{self.address(host, rail)}/64", "dev", name, "nodad")
        ip("-n", namespace, "link", "set", name, "mtu", self.mtu, "up")

    def wait_for_links(self) -> None:
        """Waits until the kernel says that all links work, which it does a moment later."""
        end = time.monotonic() + 5
        waiting = [(host, rail) for host in self.all for rail in range(self.rails)]
        while waiting := [(host, rail) for host, rail in waiting
                          if not re.search("state (UP|UNKNOWN)", ip("-n", self.host(host), "link", "show", f"eth{rail}"))]:
            if time.monotonic() > end:
                raise Problem(f"links between namespaces do not come up: {waiting}")
            time.sleep(0.02)

    def inside(self, namespace: str, *command, seconds: float = 60, env: dict | None = None) -> Outcome:
        return harness.run(["ip", "netns", "exec", namespace, *map(str, command)], seconds=seconds, env=env)

    # Jobs

    def on_host(self) -> str:
        """The words before a command on the host `{host}` of a launcher, which has a host name of its own."""
        named = 'hostname "$0" && exec "$@"'
        return f"ip netns exec {self.name('{host}')} unshare --uts sh -c {shlex.quote(named)} host{{host}}"

    def launcher(self, ranks: int | str, *command, per_host: int | None = None) -> list:
        """The command of a job over all hosts: the same number of ranks on each."""
        hosts = ",".join(str(host) if per_host is None else f"{host}:{per_host}" for host in range(self.count))
        agent = self.on_host()
        return [self.prefix / "bin/fishplate", "run", "-n", ranks, "--hosts", hosts, "--launch-with", agent, *command]

    def environment(self, env: dict | None = None) -> dict:
        return {"FISHPLATE_DEVICE": "tcp"} | (env or {})

    def job(self, ranks: int, *command, seconds: float = 60, env: dict | None = None, **more) -> Outcome:
        words = list(map(str, self.launcher(ranks, *command, **more)))
        return harness.run(words, seconds=seconds, env=self.environment(env))

    # What happens to cables

    def link(self, host: int, rail: int, state: str) -> None:
        """Sets an interface up or down."""
        ip("-n", self.host(host), "link", "set", f"eth{rail}", state)

    def unplug(self, rail: int, state: str) -> None:
        """Takes the carrier from a rail, or gives it back: `down` or `up`. Both hosts see it."""
        if self.kind == "wire":
            self.order(rail, state)
        elif self.kind == "bridge":
            for host in range(self.count):
                ip("-n", self.switch, "link", "set", f"r{rail}h{host}", state)
        else:
            self.link(1, rail, state)

    def order(self, rail: int, *words) -> None:
        """An order to the program between two hosts: see wire.c."""
        wire = self.wires[rail]
        wire.stdin.write(" ".join(map(str, words)) + "\n")
        wire.stdin.flush()
        if wire.stdout.readline() != "ok\n":
            raise Problem(f"the cable between two namespaces does not obey: {words}")

    def limit(self, rail: int, mbit: float, host: int | None = None) -> None:
        """Limits what hosts send over a rail, in Mbit/s."""
        for one in range(self.count) if host is None else [host]:
            words = ["tc", "qdisc", "replace", "dev", f"eth{rail}", "root", "tbf", "rate", f"{mbit}mbit", "burst", BURST, "latency", "50ms"]
            done = self.inside(self.host(one), *words)
            if done.code != 0:
                raise Problem(f"{' '.join(words)}: {done.err}")

    def carried(self, rail: int, host: int | None = None) -> int:
        """Bytes that hosts have sent over a rail."""
        hosts = range(self.count) if host is None else [host]
        rows = [re.search(r"TX:.*\n\s+(\d+)", ip("-n", self.host(one), "-s", "link", "show", f"eth{rail}"))[1] for one in hosts]
        return sum(map(int, rows))

    def received(self, host: int = 1) -> list[int]:
        """Bytes that a host has received over TCP connections, by the port at which it was called: by rank and rail."""
        done = self.inside(self.host(host), "ss", "-Htin", "state", "established")
        by_port = {}
        for port, count in re.findall(r"^\d+\s+\d+\s+\S+:(\d+)\s[^\n]*\n[^\n]*bytes_received:(\d+)", done.out, re.M):
            by_port[port] = by_port.get(port, 0) + int(count)
        return list(by_port.values())

    def listeners(self, host: int) -> list[tuple[str, int]]:
        """The addresses and ports at which a host waits for connections."""
        done = self.inside(self.host(host), "ss", "-Hltn")
        places = [line.split()[3].rpartition(":") for line in done.out.splitlines()]
        return [(address.strip("[]").partition("%")[0], int(port)) for address, _, port in places]


def wire_program(prefix: Path) -> Path:
    """The program of wire.c, compiled."""
    return compiled(prefix, "wire")


def compiled(prefix: Path, name: str, *words) -> Path:
    """A program of tests/tcp that is not for MPI, compiled by the machine's compiler."""
    source = harness.ROOT / "tests" / "tcp" / f"{name}.c"
    target = prefix / "tests" / "tcp" / name
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", target, source, *words]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Problem(f"{name}.c does not compile: {done.stderr}")
    return target
