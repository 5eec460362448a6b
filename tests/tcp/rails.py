"""Two rails of TCP between two hosts: shares, and rails that break, slow down and return while a job runs."""

import json
import time

import running
from programs import run as c
from harness import Case, Problem
from network import Hosts
from running import Job

# Ranks of a job: two on each host.
RANKS = 4
# The time that a job sends messages, in seconds.
SENDS = 6
# The longest time without messages after a rail of the two has died, and until a rail that works again carries messages, in seconds.
OUTAGE, RETURN = 1.0, 2.0
# The bytes by which a rail carries messages, and not only probes.
CARRIES = 1 << 20
# Ways in which a rail breaks. Neither host is told of `cut`.
BREAKS = ("cut", "unplugged", "down on host 0", "down on host 1")


def program(hosts: Hosts, name: str, *arguments, ranks: int = RANKS, env: dict | None = None, options: tuple = ()) -> Job:
    command = hosts.launcher(ranks, *options, c.programs(hosts.prefix) / name, *arguments)
    return Job(command, hosts.environment(env))


def break_rail(hosts: Hosts, rail: int, how: str) -> None:
    if how == "cut":
        hosts.order(rail, "cut")
    elif how == "unplugged":
        hosts.unplug(rail, "down")
    else:
        hosts.link(int(how[-1]), rail, "down")


def mend_rail(hosts: Hosts, rail: int, how: str) -> None:
    if how == "cut":
        hosts.order(rail, "mend")
    elif how == "unplugged":
        hosts.unplug(rail, "up")
    else:
        hosts.link(int(how[-1]), rail, "up")


def both_carry(policy: str):
    def test(world) -> str:
        with Hosts(world.prefix, rails=2) as hosts:
            before = [hosts.carried(rail) for rail in (0, 1)]
            with program(hosts, "steady", 2, env={"FISHPLATE_RAIL_POLICY": policy}) as job:
                job.ends_well()
            bytes_of = [hosts.carried(rail) - before[rail] for rail in (0, 1)]
        if min(bytes_of) < sum(bytes_of) / 20:
            raise Problem(f"the rails have carried {bytes_of[0]} and {bytes_of[1]} bytes")
        return f"{bytes_of[0] / sum(bytes_of):.0%} over rail 0"
    return test


def return_of(hosts: Hosts, job: Job, rail: int, how: str) -> float:
    """Breaks a rail under a job, mends it, and waits until it carries messages again: the seconds that this takes."""
    break_rail(hosts, rail, how)
    time.sleep(SENDS / 3)
    before, mended = hosts.carried(rail), time.monotonic()
    mend_rail(hosts, rail, how)
    job.until(lambda: hosts.carried(rail) - before > CARRIES, f"rail {rail} carries nothing after its return")
    return time.monotonic() - mended


def time_of_return(hosts: Hosts, rail: int, how: str) -> float:
    with program(hosts, "steady", SENDS) as job:
        job.is_under_way()
        seconds = return_of(hosts, job, rail, how)
        job.ends_well()
    return seconds


def breaks(rail: int, how: str):
    """A rail breaks in mid-transfer, and works again: messages go on, over both in the end."""
    def test(world) -> str:
        with Hosts(world.prefix, rails=2, kind="wire") as hosts, program(hosts, "steady", SENDS) as job:
            job.is_under_way()
            back = return_of(hosts, job, rail, how)
            job.ends_well()
            said = [line for line in job.said(job.err).splitlines() if "has failed" in line]
        if len(said) != 1 or f"rail {rail} (" not in said[0]:
            raise Problem(f"it says {said} of rail {rail}")
        if back > RETURN:
            raise Problem(f"rail {rail} carried nothing for {back:.1f} s after its return, more than {RETURN} s")
        return f"back after {back:.1f} s"
    return test


def outage(rail: int, how: str):
    """The time without messages after a rail has broken."""
    def test(world) -> str:
        with Hosts(world.prefix, rails=2, kind="wire") as hosts, program(hosts, "gap", 6, ranks=2) as job:
            return running.outage(job, lambda: break_rail(hosts, rail, how), OUTAGE)
    return test


def several_connections(world) -> str:
    """An interface with two rails: both carry messages, and `info` shows them."""
    env = {"FISHPLATE_TCP_CONNECTIONS": "2"}
    with Hosts(world.prefix) as hosts:
        command = [hosts.prefix / "bin/fishplate", "info", "--json"]
        shown = hosts.inside(hosts.host(0), *command, env=hosts.environment(env))
        ports = [rail["port"] for rail in json.loads(shown.out)["job"]["rails"]["rails"]]
        if ports != ["tcp:eth0"] * 2:
            raise Problem(f"info shows {ports}")
        with program(hosts, "steady", SENDS, ranks=2, env=env) as job:
            job.is_under_way()
            job.until(lambda: len(received := hosts.received()) == 2 and min(received) > CARRIES, "one of the two rails carries nothing")
            received = hosts.received()
            job.ends_well()
    return f"{received[0] / sum(received):.0%} over one of them"


def slows_down(world) -> str:
    """One of two equal rails becomes slow in mid-transfer, and fast again."""
    with Hosts(world.prefix, rails=2) as hosts:
        for rail in (0, 1):
            hosts.limit(rail, 2000)
        with program(hosts, "steady", SENDS) as job:
            job.is_under_way()
            hosts.limit(1, 100)
            time.sleep(SENDS / 3)
            before = [hosts.carried(rail) for rail in (0, 1)]
            time.sleep(1)
            slow = [hosts.carried(rail) - before[rail] for rail in (0, 1)]
            hosts.limit(1, 2000)
            job.ends_well()
    return f"{slow[1] / max(1, sum(slow)):.0%} over the slow rail"


def loses(world) -> None:
    """A rail loses frames in mid-transfer."""
    with Hosts(world.prefix, rails=2, kind="wire") as hosts, program(hosts, "steady", SENDS) as job:
        job.is_under_way()
        hosts.order(1, "loss", 0.05)
        job.ends_well()


def sleeps(world) -> str:
    """Ranks that wait for each other over TCP use no processor time."""
    with Hosts(world.prefix) as hosts, program(hosts, "idle", ranks=2) as job:
        job.ends_well()
        return job.said(job.err).strip()


def tests() -> list[Case]:
    return [
        *(Case(f"rails: both carry messages, {policy}", both_carry(policy), short=policy == "adaptive")
          for policy in ("adaptive", "stripe", "round-robin")),
        *(Case(f"rails: rail {rail}, {how}, and back", breaks(rail, how), short=(rail, how) in {(0, "cut"), (1, "unplugged")})
          for rail in (0, 1) for how in BREAKS),
        *(Case(f"rails: rail {rail}, {how}: the time without messages", outage(rail, how), short=rail == 0)
          for rail in (0, 1) for how in BREAKS),
        Case("rails: two connections of one interface", several_connections),
        Case("rails: one slows down", slows_down),
        Case("rails: one loses frames", loses),
        Case("rails: idle ranks sleep", sleeps),
    ]
