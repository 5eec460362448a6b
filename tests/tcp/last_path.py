"""The only path between two hosts breaks, for a while or for ever; hosts that cannot reach each other from the beginning.

A network that comes back within the patience (FISHPLATE_OUTAGE) costs a job nothing but time: its results are right, and it goes on
within GOES_ON seconds. After a longer outage the job ends, with one true line, within the patience and ENDS seconds.
"""

import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from programs import run as c
from harness import Case, Problem
from network import Hosts, ip
from running import Job

HERE = Path(__file__).resolve().parent
# Seconds from the return of the network until messages arrive again, and from the end of the patience until a job has ended.
GOES_ON, ENDS = 2.0, 1.0
# Seconds that the launcher and the processes need to start and to end, on a busy machine.
AROUND = 5.0
# Seconds of traffic before the network breaks, and after it works again.
BEFORE, AFTER = 0.7, 1.0
# Forged resets for each direction.
RESETS = 10
# The patience of a job whose network breaks for ever.
SHORT = 3


@dataclass
class Break:
    """An outage: how it happens, for how many seconds (None: for ever), and under which traffic."""

    how: str
    seconds: float | None
    traffic: str
    window: int = 1
    rails: int = 1
    ranks: int = 2
    family: int = 4
    times: int = 1
    env: dict = field(default_factory=dict)
    # The launcher and the agent of host 1 speak over the same network.
    agents: bool = False
    # Belongs to `--short`.
    quick: bool = False

    def name(self) -> str:
        span = "for ever" if self.seconds is None else f"{self.seconds} s"
        words = [f"last path: {self.how}", *([f"{self.times} times"] if self.times > 1 else []), f"{span}, {self.traffic}"]
        more = [*([str(self.window)] if self.window > 1 else []), *([f"{self.ranks} ranks"] if self.ranks > 2 else []),
                *(["two rails"] if self.rails > 1 else []), *(["IPv6"] if self.family == 6 else []),
                *(["with the agents' stream"] if self.agents else []), *(f"{name}={value}" for name, value in self.env.items())]
        return ", ".join([" ".join(words), *more])

    def lasts(self) -> float:
        """Seconds of traffic that the job is told."""
        return BEFORE + AFTER + 3 + self.times * ((self.seconds or 60) + (10 if self.how == "forged resets" else 1))


# The ways in which a network breaks, for all rails at once, and works again.

def routes(hosts: Hosts, word: str) -> None:
    for host, kind in ((0, "unreachable"), (1, "prohibit")):
        for rail in range(hosts.rails):
            ip("-n", hosts.host(host), "route", word, kind, f"{hosts.address(1 - host, rail)}/32")


def forge(hosts: Hosts) -> None:
    """Resets of connections, in both directions, until each host has seen some."""
    for host in (0, 1):
        done = hosts.inside(hosts.host(host), sys.executable, HERE / "forge.py", "eth0", hosts.address(host), hosts.address(1 - host), RESETS)
        if done.code != 0:
            raise Problem(f"resets cannot be forged: {done.err}")


def break_all(hosts: Hosts, how: str) -> None:
    if how == "forged resets":
        return forge(hosts)
    if how == "routes withdrawn":
        return routes(hosts, "add")
    for rail in range(hosts.rails):
        if how == "cut":
            hosts.order(rail, "cut")
        elif how == "unplugged":
            hosts.unplug(rail, "down")
        else:
            hosts.link(int(how[-1]), rail, "down")
    return None


def mend_all(hosts: Hosts, how: str) -> None:
    if how == "routes withdrawn":
        return routes(hosts, "del")
    for rail in range(hosts.rails):
        if how == "cut":
            hosts.order(rail, "mend")
        elif how == "unplugged":
            hosts.unplug(rail, "up")
        elif how.startswith("down"):
            hosts.link(int(how[-1]), rail, "up")
    hosts.wait_for_links()
    if hosts.family == 6 and how != "cut":
        # The kernel has removed the addresses with the link. Whoever configured them does it again.
        for host in hosts.all:
            for rail in range(hosts.rails):
                address = f"{hosts.address(host, rail)}/64"
                subprocess.run(["ip", "-n", hosts.host(host), "addr", "replace", address, "dev", f"eth{rail}", "nodad"], check=False)
    return None


def lets_addresses_go(hosts: Hosts) -> None:
    for host in hosts.all:
        hosts.inside(hosts.host(host), "sh", "-c", "for f in all default eth0; do echo 0 > /proc/sys/net/ipv6/conf/$f/keep_addr_on_down; done")


# Jobs

def traffic(hosts: Hosts, one: Break) -> Job:
    words = [c.programs(hosts.prefix) / "traffic", one.traffic, one.lasts(), one.window]
    env = hosts.environment(one.env if one.seconds is not None else {"FISHPLATE_OUTAGE": str(SHORT)} | one.env)
    if not one.agents:
        return Job(hosts.launcher(one.ranks, *words), env)
    place = (hosts.address(1), 7077)
    server = [sys.executable, HERE / "relay.py", "serve", *place]
    subprocess.Popen(list(map(str, ["ip", "netns", "exec", hosts.host(1), *server])), start_new_session=True)
    there = f'host=$1; shift; [ "$host" = 0 ] && exec "$@"; exec {sys.executable} {HERE}/relay.py call {place[0]} {place[1]} "$@"'
    shell = f"sh -c '{there}' sh {{host}}"
    command = [hosts.prefix / "bin/fishplate", "run", "-n", one.ranks, "--hosts", "0,1", "--launch-with", shell, *words]
    return Job(["ip", "netns", "exec", hosts.host(0), *command], env)


def times_of(job: Job) -> list[float]:
    return [float(at) for at in re.findall(r"^at ([\d.]+)$", job.said(job.out), re.M)]


def goes_on(job: Job, since: float) -> float:
    """Seconds from a time until messages have arrived."""
    job.until(lambda: any(at > since for at in times_of(job)), "it does not go on")
    return min(at for at in times_of(job) if at > since) - since


def survives(hosts: Hosts, one: Break) -> str:
    late = []
    with traffic(hosts, one) as job:
        job.is_under_way()
        for _ in range(one.times):
            time.sleep(BEFORE)
            break_all(hosts, one.how)
            time.sleep(one.seconds)
            mend_all(hosts, one.how)
            mended = time.monotonic()
            if one.traffic not in ("compute", "end"):
                late.append(goes_on(job, mended))
        code, out, err = job.ends(AROUND + one.lasts())
    said = [line for line in err.splitlines() if line.strip()]
    told = [line for line in said if "no path to" in line]
    if code != 0 or " ok\n" not in out:
        raise Problem(f"exit status {code}: {out[-300:]}{err}")
    if late and max(late) > GOES_ON:
        raise Problem(f"it went on only {max(late):.1f} s after the network was back")
    if not told and one.seconds >= 3 and one.traffic not in ("compute", "end") and one.how != "forged resets":
        raise Problem(f"nothing is said of an outage of {one.seconds} s: {err}")
    if any("deadlock" in line for line in said):
        raise Problem(f"a false deadlock: {err}")
    return f"on after {max(late):.2f} s" if late else "right"


def ends(hosts: Hosts, one: Break) -> str:
    with traffic(hosts, one) as job:
        job.is_under_way()
        time.sleep(BEFORE)
        break_all(hosts, one.how)
        broken = time.monotonic()
        code, _, err = job.ends(SHORT + ENDS + AROUND)
        took = time.monotonic() - broken
    lines = [line for line in err.splitlines() if "is lost" in line]
    if code == 0 or not lines or "FISHPLATE_OUTAGE" not in err or "deadlock" in err:
        raise Problem(f"exit status {code}: {err}")
    return f"ended after {took:.1f} s"


def case(one: Break) -> Case:
    def test(world) -> str:
        kind = "wire" if one.how in ("cut", "unplugged") else "veth"
        with Hosts(world.prefix, rails=one.rails, kind=kind, family=one.family) as hosts:
            if one.family == 6:
                lets_addresses_go(hosts)
            return ends(hosts, one) if one.seconds is None else survives(hosts, one)
    return Case(one.name(), test, one.quick)


# Hosts that cannot reach each other

def unreachable(change, said: tuple):
    """Two hosts, changed before the job begins: one line that names both, and the end."""
    def test(world) -> str:
        with Hosts(world.prefix, kind="veth") as hosts:
            change(hosts)
            began = time.monotonic()
            ran = hosts.job(2, c.programs(world.prefix) / "traffic", "wait", 1, env={"FISHPLATE_OUTAGE": str(SHORT)}, seconds=60)
            took = time.monotonic() - began
        lines = [line for line in ran.err.splitlines() if all(word in line for word in said)]
        if ran.code in (0, None) or not lines:
            raise Problem(f"exit status {ran.code}, without {' and '.join(said)} in one line: {ran.err}")
        if took > SHORT + ENDS + AROUND:
            raise Problem(f"it took {took:.1f} s")
        return f"ended after {took:.1f} s"
    return test


def only_loopbacks(hosts: Hosts) -> None:
    for host in hosts.all:
        ip("-n", hosts.host(host), "link", "del", "eth0") if host == 0 else None


def other_subnets(hosts: Hosts) -> None:
    ip("-n", hosts.host(1), "addr", "flush", "dev", "eth0")
    ip("-n", hosts.host(1), "addr", "add", "10.78.0.2/24", "dev", "eth0")


def no_carrier(hosts: Hosts) -> None:
    hosts.link(0, 0, "down")


def one_end(hosts: Hosts) -> None:
    ip("-n", hosts.host(1), "addr", "flush", "dev", "eth0")


def late(change_back_after: float):
    """An interface without its address when the job begins is used when it has it."""
    def test(world) -> str:
        with Hosts(world.prefix, kind="veth") as hosts:
            one_end(hosts)
            hosts.link(1, 0, "down")
            with Job(hosts.launcher(2, c.programs(world.prefix) / "traffic", "wait", 1), hosts.environment()) as job:
                time.sleep(change_back_after)
                ip("-n", hosts.host(1), "addr", "add", f"{hosts.address(1)}/24", "dev", "eth0")
                hosts.link(1, 0, "up")
                job.ends_well()
        return "used"
    return test


def killed(world) -> str:
    """A rank that is killed is named at once, however long the patience is."""
    with Hosts(world.prefix, kind="veth") as hosts:
        with traffic(hosts, Break("killed", 5, "waitall", 4)) as job:
            job.is_under_way()
            pids = ip("netns", "pids", hosts.host(1)).split()
            ranks = [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().strip() == "traffic"]
            subprocess.run(["kill", "-9", *ranks], check=True)
            at = time.monotonic()
            code, _, err = job.ends(AROUND)
            took = time.monotonic() - at
    if code != 137 or "killed by signal 9" not in err and "SIGKILL" not in err:
        raise Problem(f"exit status {code}: {err}")
    return f"{took:.2f} s"


BREAKS = [
    # No link goes down: frames vanish.
    Break("cut", 0.1, "wait"),
    Break("cut", 0.5, "waitall", 2),
    Break("cut", 1, "waitall", 8, quick=True),
    Break("cut", 3, "waitall", 100),
    Break("cut", 10, "collectives"),
    Break("cut", 30, "long", 4),
    Break("cut", 3, "persistent", 8),
    Break("cut", 1, "any", 4),
    Break("cut", 0.8, "waitall", 4, times=5),
    # The link has no carrier.
    Break("unplugged", 0.1, "waitany", 4),
    Break("unplugged", 0.5, "waitsome", 8),
    Break("unplugged", 1, "testall", 4, quick=True),
    Break("unplugged", 3, "any", 8),
    Break("unplugged", 10, "persistent", 2),
    Break("unplugged", 30, "collectives"),
    Break("unplugged", 0.8, "long", 2, times=3),
    # An interface is set down.
    Break("down on host 1", 1, "long", 2),
    Break("down on host 1", 3, "waitall", 8),
    Break("down on host 0", 10, "testany", 4),
    Break("down on host 0", 3, "collectives"),
    Break("routes withdrawn", 1, "waitall", 4),
    Break("routes withdrawn", 3, "long", 2),
    Break("routes withdrawn", 10, "collectives"),
    Break("forged resets", 0.1, "waitall", 4, quick=True),
    Break("forged resets", 0.1, "long", 4, times=3),
    # Links that go down lose their addresses of IPv6.
    Break("cut", 3, "waitall", 4, family=6),
    Break("unplugged", 3, "long", 2, family=6),
    Break("down on host 1", 3, "collectives", family=6),
    # All rails at once.
    Break("cut", 3, "waitall", 8, rails=2),
    Break("unplugged", 3, "long", 4, rails=2),
    Break("cut", 1, "collectives", rails=2),
    Break("cut", 3, "collectives", ranks=4),
    Break("unplugged", 3, "waitall", 8, ranks=4),
    Break("cut", 3, "waitall", 4, ranks=8, env={"FISHPLATE_RDMA_RINGS": "1"}),
    # Nobody is in MPI, or one waits in MPI_Finalize.
    Break("cut", 3, "compute"),
    Break("unplugged", 3, "end"),
    # The launcher hears nothing of host 1 either.
    Break("cut", 10, "waitall", 4, agents=True),
    # For ever.
    Break("cut", None, "wait", quick=True),
    Break("cut", None, "waitall", 8),
    Break("unplugged", None, "waitall", 100),
    Break("down on host 0", None, "collectives"),
    Break("cut", None, "long", 4, rails=2),
]


def tests() -> list[Case]:
    return [
        *map(case, BREAKS),
        Case("last path: a killed rank is named at once", killed, short=False),
        Case("last path: hosts with loopbacks only", unreachable(only_loopbacks, ("host0", "host1", "FISHPLATE_OUTAGE")), short=False),
        Case("last path: hosts of two subnets", unreachable(other_subnets, ("10.77.0.1", "10.78.0.2", "FISHPLATE_OUTAGE"))),
        Case("last path: no carrier", unreachable(no_carrier, ("host0", "host1", "FISHPLATE_OUTAGE")), short=False),
        Case("last path: an interface at one end only", unreachable(one_end, ("host0", "host1", "10.77.0.1", "FISHPLATE_OUTAGE")), short=False),
        Case("last path: an interface that comes up late", late(3), short=False),
        Case("last path: an interface that comes up at once", late(0.3), short=False),
    ]
