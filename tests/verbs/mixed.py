"""Jobs over rails of two kinds: rail 0 is the RDMA device of either host, rail 1 is TCP over a cable of its own.

A host is a network namespace with the end of that cable, so that no packet bypasses it. Soft-RoCE's packets leave by the machine's
network all the same. The machine's other RDMA rail is down.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from pathlib import Path

import c_programs
import rails
import running
from harness import Case, Problem
from job import Job

# Ranks of a job: two on each host.
RANKS = 4
# The longest time that a job sends messages, in seconds. The test ends them before.
LONG = 100
# A policy by which both rails carry messages, however fast either is.
BOTH = {"FISHPLATE_RAIL_POLICY": "round-robin"}
# The bytes by which a rail carries messages, and not only probes and datagrams.
CARRIES = 1 << 20
DEVICES = ("rxe", "tcp:eth0")
# The cable of rail 1: `ip` in each namespace.
CABLE = [
    *(f"netns add tcp{host}" for host in (0, 1)),
    "link add name eth0 mtu 4500 netns tcp0 type veth peer name eth0 mtu 4500 netns tcp1",
]
ENDS = ["link set lo up", "address add 10.78.0.{number}/24 dev eth0", "link set eth0 up"]
# Ways in which a rail breaks under a job: the packets of both hosts are lost, or a port is down.
BREAKS = ("cut", "down")


def prepare(options) -> None:
    rails.prepare(options)


def batch(*words: str, lines: list[str]) -> None:
    """One process for several commands: its start takes a tenth of a second on an emulated processor."""
    done = subprocess.run([*words, "-batch", "-"], input="".join(f"{line}\n" for line in lines), text=True, capture_output=True)
    if done.returncode != 0:
        raise Problem(f"{' '.join(words)}: {done.stderr}")


@contextlib.contextmanager
def cabled(world):
    """The hosts with rail 0 of RDMA and rail 1 of TCP."""
    world.run("rail", 1, "down")
    try:
        batch("ip", lines=CABLE)
        for host in (0, 1):
            batch("ip", "-n", f"tcp{host}", lines=[line.format(number=host + 1) for line in ENDS])
        yield
    finally:
        for host in (0, 1):
            subprocess.run(["ip", "netns", "del", f"tcp{host}"], stderr=subprocess.DEVNULL, check=False)


def on_host(host) -> list[str]:
    return ["nsenter", f"--net=/run/netns/tcp{host}", "--", "on-host", f"{host}"]


def environment(env: dict | None = None) -> dict:
    return {"FISHPLATE_DEVICE": "rdma,tcp:eth0"} | (env or {})


def program(world, name: str, *arguments, ranks: int = RANKS, env: dict | None = None, words: tuple = ()) -> Job:
    command = [world.prefix / "bin/fishplate", "run", "-n", ranks, "--hosts", "0,1", "--launch-with", " ".join(on_host("{host}")), *words,
               c_programs.folder(world.prefix) / name, *arguments]
    return Job(command, environment(env))


def carried(rail: int) -> int:
    """Bytes that both hosts have sent over a rail."""
    if rail == 0:
        return rails.carried(0)
    shown = [subprocess.run(["ip", "-n", f"tcp{host}", "-s", "-j", "link", "show", "eth0"], capture_output=True, text=True, check=True).stdout
             for host in (0, 1)]
    return sum(json.loads(one)[0]["stats64"]["tx"]["bytes"] for one in shown)


def change(world, rail: int, how: str) -> None:
    """Breaks a rail, or repairs it: `up`."""
    if rail == 0:
        rails.broken(world, 0, how)
        return
    for host in (0, 1):
        if how == "cut":
            batch("tc", "-n", f"tcp{host}", lines=["qdisc replace dev eth0 root netem loss 100%"])
        else:
            batch("ip", "-n", f"tcp{host}", lines=[f"link set eth0 {how}"])
            subprocess.run(["tc", "-n", f"tcp{host}", "qdisc", "del", "dev", "eth0", "root"], stderr=subprocess.DEVNULL, check=False)


def shows_them(world) -> None:
    """`info` numbers the rails as a job does; the two kinds do not pair."""
    with cabled(world):
        command = [*on_host(0), world.prefix / "bin/fishplate", "info", "--json"]
        job = json.loads(world.run(*command, env=environment()).out)["job"]
        seen = [(rail["port"], rail["link_layer"], rail["subnet"]) for rail in job["rails"]["rails"]]
        if seen != [("rxe0", "Ethernet", "10.77.0.0"), ("tcp:eth0", "TCP", "10.78.0.0")]:
            raise Problem(str(job))
        if (job["pairs"]["pairs"], job["pairs"]["cannot_reach"]) != ([[0, 0], [1, 1]], [[0, 1]]):
            raise Problem(str(job))
        both = json.loads(world.run(*command, env={"FISHPLATE_DEVICE": "rdma,tcp"}).out)["job"]
        if both["rails"] != job["rails"]:
            raise Problem(str(both))
        alone = json.loads(world.run(*command, env={"FISHPLATE_DEVICE": ""}).out)
        against = {one["name"]: one["why_not"] for one in alone["ip"]["interfaces"]}
        if [rail["port"] for rail in alone["job"]["rails"]["rails"]] != ["rxe0"] or "uses RDMA devices" not in against["eth0"]:
            raise Problem(str(alone))


def both_carry(policy: str):
    """Results are right, both rails carry bytes of messages, and the explanation names them."""
    def test(world) -> str:
        with cabled(world):
            before = [carried(rail) for rail in (0, 1)]
            with program(world, "steady", 1, env={"FISHPLATE_RAIL_POLICY": policy}, words=("--explain", "--json")) as job:
                job.ends_well()
                explained = json.loads(job.said(job.err))
            bytes_of = [carried(rail) - before[rail] for rail in (0, 1)]
        named = [(kind["transport"], kind["devices"]) for kind in explained["peers"] if kind["devices"]]
        if named != [("RDMA and TCP", ["rxe0", "tcp:eth0"])]:
            raise Problem(str(named))
        if min(bytes_of) < sum(bytes_of) / 20:
            raise Problem(f"the rails have carried {bytes_of[0]} and {bytes_of[1]} bytes")
        return f"{bytes_of[0] / sum(bytes_of):.0%} over RDMA"
    return test


def breaks(rail: int, how: str):
    """A rail breaks in mid-transfer, and works again: messages go on, over both in the end. The job says once which rail has failed."""
    def test(world) -> str:
        with cabled(world), tempfile.TemporaryDirectory() as folder, program(world, "steady", LONG, end := Path(folder) / "end", env=BOTH) as job:
            job.is_under_way()
            change(world, rail, how)
            job.until(lambda: "has failed" in job.said(job.err), f"it does not say that rail {rail} has failed")
            before = carried(1 - rail)
            job.until(lambda: carried(1 - rail) - before > CARRIES, f"rail {1 - rail} does not go on alone")
            before, mended = carried(rail), time.monotonic()
            change(world, rail, "up")
            job.until(lambda: carried(rail) - before > CARRIES, f"rail {rail} carries nothing after its return")
            back = time.monotonic() - mended
            end.touch()
            job.ends_well()
            said = [line for line in job.said(job.err).splitlines() if "has failed" in line]
        if len(said) != 1 or f"rail {rail} ({DEVICES[rail]}" not in said[0]:
            raise Problem(f"it says {said} of rail {rail}")
        return f"back after {back:.1f} s"
    return test


def outage(rail: int, how: str):
    """The time without messages after the break."""
    def test(world) -> str:
        with cabled(world), program(world, "gap", 10, ranks=2, env=BOTH) as job:
            return running.outage(job, lambda: change(world, rail, how), rails.OUTAGE)
    return test


def tests() -> list[Case]:
    return [
        Case("mixed: info shows rails of both kinds", shows_them),
        *(Case(f"mixed: both carry messages, {policy}", both_carry(policy), short=False) for policy in rails.POLICIES),
        *(Case(f"mixed: rail {rail}, {how}, under messages, and back", breaks(rail, how), short=(rail, how) == (0, "cut")) for rail in (0, 1) for how in BREAKS),
        *(Case(f"mixed: rail {rail}, cut: the time without messages", outage(rail, "cut"), short=False) for rail in (0, 1)),
    ]
