"""Strangers on the network of a job: they know a port, and not the secret. They disturb nothing, and learn nothing."""

import json
import os
import re
import sys
from pathlib import Path

from harness import Case, Problem
from network import Hosts
from rails import program
from running import Job

STRANGER = Path(__file__).with_name("stranger.py")
KINDS = ("garbage", "half", "silent", "slow", "leave", "replay")
# Kinds to which a rank says nothing at all. One that repeats a greeting gets an answer, which it cannot use.
UNANSWERED = ("garbage", "half", "silent", "slow")
# Connections of a flood.
FLOOD = 1000
# The longest time that a rank keeps a connection without a greeting, with room for a busy machine, in seconds.
KEPT = 4.0
# Seconds for which a program sends messages.
SENDS = 8


def listeners(hosts: Hosts) -> list:
    """Address and port of each listener of the job, as words for stranger.py."""
    found = {place for host in range(hosts.count) for place in hosts.listeners(host)}
    return [str(word) for place in sorted(found) for word in place]


def recorded(hosts: Hosts, work: Path) -> Path:
    """A file with the greeting of another connection of this job or of one before: empty messages where none was seen."""
    file = work / "greeting.json"
    command = ["ip", "netns", "exec", hosts.host(0), sys.executable, STRANGER, "record", "eth0", "20"]
    with Job(command) as tap:
        tap.until(lambda: "ready" in tap.said(tap.out), "the recorder does not start")
        with program(hosts, "steady", 1, ranks=2) as job:
            job.ends_well()
        _, out, err = tap.ends()
    greeting = json.loads(out.splitlines()[-1])
    if not greeting:
        raise Problem(f"no greeting has passed: {err}")
    file.write_text(json.dumps(greeting))
    return file


def visit(hosts: Hosts, count: int, kinds: tuple, greeting: Path, places: list) -> dict:
    """The tally of stranger.py, run on the host behind those of the job."""
    command = [sys.executable, STRANGER, "connect", count, ",".join(kinds), greeting, *places]
    ran = hosts.inside(hosts.host(hosts.count), *command, seconds=60)
    if ran.code != 0:
        raise Problem(f"stranger.py: {ran.err}")
    return json.loads(ran.out)


def complaints(tally: dict) -> list[str]:
    found = []
    for kind, row in tally.items():
        if row["closed"] != row["connected"]:
            found.append(f"{kind}: {row['connected'] - row['closed']} connections are kept")
        if kind in UNANSWERED and row["bytes"]:
            found.append(f"{kind}: was answered by {row['bytes']} bytes")
        if row["longest"] > KEPT:
            found.append(f"{kind}: was kept for {row['longest']} s")
    return found


def around(count: int, kinds: tuple):
    """Strangers connect while ranks send messages; two connections of ranks are made only afterwards."""
    def test(world) -> str:
        summary = world.work / "strangers-summary.json"
        with Hosts(world.prefix, kind="bridge", strangers=1) as hosts:
            greeting = recorded(hosts, world.work)
            with program(hosts, "apart", SENDS, options=("--summary", f"json={summary}")) as job:
                job.is_under_way()
                if not (places := listeners(hosts)):
                    raise Problem("no rank listens, though ranks have not met")
                tally = visit(hosts, count, kinds, greeting, places)
                job.ends_well()
                err = job.said(job.err)
        if not (made := sum(row["connected"] for row in tally.values())):
            raise Problem(f"no connection was accepted: {tally}")
        if found := complaints(tally):
            raise Problem("; ".join(found))
        named = [line for line in err.splitlines() if hosts.address(hosts.count) in line]
        if not 1 <= len(named) <= hosts.count:
            raise Problem(f"the stranger is named {len(named)} times:\n{err}")
        for where, shown in (("the last words", shown_counts(err)), ("the summary", summed_counts(summary))):
            if sum(shown) != made:
                raise Problem(f"{made} connections were made; {where} count {shown}:\n{err}")
        return "; ".join(f"{kind} {row['connected']}" for kind, row in tally.items())
    return test


def shown_counts(err: str) -> list[int]:
    """The connections that were dropped, as each rank says at its end."""
    lines = re.findall(r"connections and datagrams of strangers that were dropped: (.*)", err)
    return [int(count) for line in lines for count in re.findall(r"(\d+) on tcp:", line)]


def summed_counts(summary: Path) -> list[int]:
    return [row["count"] for row in json.loads(summary.read_text())["strangers"]]


def listens_where_it_sends(world) -> str:
    """Listeners are bound to addresses of the interfaces in use, and are there only while a peer can come."""
    with Hosts(world.prefix, rails=2) as hosts:
        used = {hosts.address(host, rail) for host in (0, 1) for rail in (0, 1)}
        with program(hosts, "apart", SENDS) as job:
            job.is_under_way()
            addresses = {address for host in (0, 1) for address, _ in hosts.listeners(host)}
            job.ends_well()
        if not addresses or not addresses <= used:
            raise Problem(f"ranks listen at {sorted(addresses)}, not only at {sorted(used)}")
        with program(hosts, "gap", SENDS, ranks=2) as job:
            job.is_under_way()
            job.until(lambda: not hosts.listeners(0) + hosts.listeners(1), "ranks that have met all others still listen")
            job.ends_well()
    return " ".join(sorted(addresses))


def ranks_of(program: str) -> list[Path]:
    """The folders in /proc of the ranks that run a program."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "exe").resolve().name == program and b"FISHPLATE_RANK=" in (folder / "environ").read_bytes():
                found.append(folder)
        except OSError:
            continue
    return found


def keeps_no_secret_open(world) -> str:
    """After MPI_Init no rank has the file of the secret open, so no child inherits it."""
    with Hosts(world.prefix) as hosts, program(hosts, "steady", 3) as job:
        job.is_under_way()
        ranks = ranks_of("steady")
        for folder in ranks:
            names = [os.readlink(link) for link in (folder / "fd").iterdir()]
            if any("fishplate-secret" in name for name in names):
                raise Problem(f"process {folder.name} has the secret open: {names}")
        job.ends_well()
    if len(ranks) != 4:
        raise Problem(f"{len(ranks)} ranks were seen")
    return f"{len(ranks)} ranks"


def tests() -> list[Case]:
    return [
        Case("strangers: listeners are where messages go", listens_where_it_sends),
        Case("strangers: the file of the secret is closed", keeps_no_secret_open),
        *(Case(f"strangers: {kind}", around(12, (kind,)), short=kind in ("garbage", "replay")) for kind in KINDS),
        Case(f"strangers: {FLOOD} of all kinds at once", around(FLOOD, KINDS)),
    ]
