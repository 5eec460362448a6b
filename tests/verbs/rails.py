"""Jobs over the two rails of both hosts: policies, the bytes of each rail, and rails that break and recover while a job runs."""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import benches
import counts
import harness
import programs
from c import run as c
from harness import Case, Problem

# Ranks of a job: two on each host.
RANKS = 4
# The time that a job sends messages, in seconds, and the most that it may take on an emulated processor.
SENDS, SECONDS = 4, 120
# The default comes first.
POLICIES = ("adaptive", "stripe", "round-robin")
# Ways in which a rail breaks, under which a job goes on: both ports; the port of one host; the packets that one host sends, so that
# acknowledgements are lost but no request, or the other way round.
BREAKS = ("cut", "down", "pull 0", "pull 1", "mute 0", "mute 1")
SHORT_BREAKS = {(0, "cut"), (1, "down")}
# The longest time without messages after a rail of the two has broken, in seconds.
OUTAGE = 6.2
# The share of the bytes that each of two equal rails carries may differ by this from a half.
EVEN = 0.01
ATTEMPTS = 6
# Programs under which a rail breaks: those that run for seconds on an emulated processor.
BROKEN_PROGRAMS = [("send_modes", 2), ("nonblocking", 3), ("coll_data", 4), ("full_rings", 4), ("flood", 2)]
# Breaks under programs that are not made for it.
BROKEN = [(0, "cut"), (1, "down"), (0, "pull 1")]
# Packets over both rails after which a program is under way.
UNDER_WAY = 400


def prepare(options) -> None:
    sources = [Path(__file__).with_name(f"{name}.c") for name in ("steady", "gap")]
    programs.build(options, sources + [next(c.HERE.glob(f"{name}.c*")) for name, _ in BROKEN_PROGRAMS])


class Job:
    """A command that runs while rails break, such as a C program over both hosts that says "under way" while it sends messages."""

    def __init__(self, command: list, env: dict | None = None, seconds: float = SECONDS):
        self.out, self.err, self.seconds = tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+"), seconds
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=self.out, stderr=self.err,
                                        env=os.environ | (env or {}), start_new_session=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.kill_session(self.process.pid)
        self.process.wait()
        self.out.close()
        self.err.close()

    @staticmethod
    def said(stream) -> str:
        stream.seek(0)
        return stream.read()

    def until(self, holds, complaint: str) -> None:
        end = time.monotonic() + self.seconds
        while not holds():
            if time.monotonic() > end or (self.process.poll() is not None and not holds()):
                raise Problem(f"{complaint}: {self.said(self.out)}{self.said(self.err)}")
            time.sleep(0.05)

    def is_under_way(self) -> None:
        self.until(lambda: "under way" in self.said(self.out), "it has not begun")

    def waits_for(self) -> str:
        """Standard error after the launcher was asked what each rank waits for."""
        self.process.send_signal(signal.SIGQUIT)
        time.sleep(3)
        return self.said(self.err)

    def ends(self) -> tuple[int, str, str]:
        end = time.monotonic() + self.seconds
        while self.process.poll() is None:
            if time.monotonic() > end:
                raise Problem(f"it has not ended: {self.said(self.out)}{self.waits_for()}")
            time.sleep(0.05)
        return self.process.returncode, self.said(self.out), self.said(self.err)

    def ends_well(self) -> str:
        code, out, err = self.ends()
        if code != 0 or " ok\n" not in out:
            raise Problem(f"exit status {code}: {out}{err}")
        return out


def program(world, name: str, *arguments, ranks: int = RANKS, env: dict | None = None) -> Job:
    return Job(world.launcher(ranks, programs.folder(world.prefix) / name, *arguments), env)


def carried(rail: int) -> int:
    """Bytes that both hosts have sent over a rail."""
    ports = [Path(f"/sys/class/net/r{rail}h{host}/statistics/tx_bytes") for host in (0, 1)]
    return sum(int(port.read_text()) for port in ports)


def packets() -> int:
    """Packets that have left host 0."""
    return sum(int(Path(f"/sys/class/net/r{rail}h0/statistics/tx_packets").read_text()) for rail in (0, 1))


def repeated() -> int:
    """Packets that the devices had to repeat."""
    counters = [Path(f"/sys/class/infiniband/rxe{n}/ports/1/hw_counters/{name}") for n in range(4) for name in counts.AGAIN]
    return sum(int(counter.read_text()) for counter in counters)


def right_under(policy: str):
    """Results are right, and both rails carry bytes of messages."""
    def test(world) -> str:
        before = [carried(rail) for rail in (0, 1)]
        with program(world, "steady", 1, env={"FISHPLATE_RAIL_POLICY": policy}) as job:
            job.ends_well()
        bytes_of = [carried(rail) - before[rail] for rail in (0, 1)]
        if min(bytes_of) < sum(bytes_of) / 20:
            raise Problem(f"the rails have carried {bytes_of[0]} and {bytes_of[1]} bytes")
        return f"{bytes_of[0] / sum(bytes_of):.0%} over rail 0"
    return test


def even_under(policy: str, size: str, iterations: int):
    """Each of two equal rails carries half the bytes. A run with repeated packets proves nothing, and is run again."""
    def test(world) -> str:
        launcher = benches.LAUNCHER.format(fishplate=world.prefix / "bin/fishplate")
        command = [world.prefix / "bin/fishplate", "bench", "bw", "--launcher", launcher, "-m", size, "-i", iterations,
                   "--rounds", 1, "--json"]
        for _ in range(ATTEMPTS):
            before, again = [carried(rail) for rail in (0, 1)], repeated()
            ran = world.run(*command, seconds=120, env={"FISHPLATE_RAIL_POLICY": policy})
            if ran.code != 0:
                raise Problem(str(ran))
            bytes_of = [carried(rail) - before[rail] for rail in (0, 1)]
            share = bytes_of[0] / sum(bytes_of)
            if abs(share - 0.5) <= EVEN:
                return f"{share:.2%} over rail 0"
            if repeated() == again:
                raise Problem(f"rail 0 has carried {bytes_of[0]} bytes, rail 1 {bytes_of[1]}: {share:.2%} over rail 0")
        raise harness.Skip(f"packets were repeated in each of {ATTEMPTS} runs: {share:.2%} over rail 0")
    return test


def broken(world, rail: int, how: str) -> None:
    if world.run("rail", rail, *how.split()).code != 0:
        raise Problem(f"rail {rail} {how} fails")


def breaks(rail: int, how: str, policy: str = POLICIES[0]):
    """Ranks that meet only after the break find each other too. The job says once that the rail has failed."""
    def test(world) -> None:
        with program(world, "steady", SENDS, env={"FISHPLATE_RAIL_POLICY": policy}) as job:
            job.is_under_way()
            broken(world, rail, how)
            job.ends_well()
            said = [line for line in job.said(job.err).splitlines() if "has failed" in line]
        if len(said) != 1 or f"rail {rail} (rxe" not in said[0]:
            raise Problem(f"it says {said} of rail {rail}")
    return test


def breaks_and_mends(rail: int):
    def test(world) -> None:
        with program(world, "steady", 3 * SENDS) as job:
            job.is_under_way()
            for how in ("cut", "up", "down", "up"):
                broken(world, rail, how)
                time.sleep(SENDS / 2)
            job.ends_well()
    return test


def outage(rail: int, how: str):
    """The time without messages after the break."""
    def test(world) -> str:
        with program(world, "gap", 10, ranks=2) as job:
            job.is_under_way()
            time.sleep(1)
            broken(world, rail, how)
            longest = float(re.search(r"longest ([\d.]+) s", job.ends_well())[1])
        if longest > OUTAGE:
            raise Problem(f"no message for {longest} s, more than {OUTAGE} s")
        return f"{longest} s without messages"
    return test


def under(command, rail: int, how: str, judge, seconds: float = SECONDS):
    """A rail breaks once the command has sent some packets, and works again two seconds later."""
    def test(world) -> None:
        before = packets()
        with Job(command(world), seconds=seconds) as job:
            job.until(lambda: packets() - before > UNDER_WAY, "it sends too few packets")
            broken(world, rail, how)
            time.sleep(SENDS / 2)
            broken(world, rail, "up")
            if problem := judge(*job.ends()):
                raise Problem(problem)
    return test


def bench(name: str, size: str, iterations: int):
    def command(world) -> list:
        fishplate = world.prefix / "bin/fishplate"
        return [fishplate, "bench", name, "--launcher", benches.LAUNCHER.format(fishplate=fishplate), "-m", size, "-i", iterations,
                "--validation", "--rounds", 1, "--json"]
    return command


def is_measured(code: int, out: str, err: str) -> str:
    rows = [json.loads(line) for line in out.splitlines()] if code == 0 else []
    return "" if rows and all(row["median"] > 0 for row in rows) else f"exit status {code}: {out}{err}"


def breaks_under_others() -> list[Case]:
    cases = []
    for rail, how in BROKEN:
        for name, size, iterations in (("latency", "8:8", 4000), ("bw", "256K:256K", 40)):
            test = under(bench(name, size, iterations), rail, how, is_measured)
            cases.append(Case(f"rails: rail {rail}, {how}, under bench {name}", test, short=False))
        for name, ranks in BROKEN_PROGRAMS:
            def command(world, name=name, ranks=ranks) -> list:
                return world.launcher(ranks, programs.folder(world.prefix) / name)
            def is_right(code, out, err) -> str:
                return "" if code == 0 and " ok\n" in out else f"exit status {code}: {out}{err}"
            cases.append(Case(f"rails: rail {rail}, {how}, under {name} -n {ranks}", under(command, rail, how, is_right), short=False))
    return cases


def tests() -> list[Case]:
    return [
        *(Case(f"rails: a program over two rails, {policy}", right_under(policy), short=policy == POLICIES[0]) for policy in POLICIES),
        Case("rails: stripe halves the bytes of long messages", even_under("stripe", "256K:256K", 2), short=False),
        Case("rails: round-robin halves the bytes of many messages", even_under("round-robin", "16K:16K", 20), short=False),
        *(Case(f"rails: rail {rail}, {how}, under messages", breaks(rail, how), short=(rail, how) in SHORT_BREAKS)
          for rail in (0, 1) for how in BREAKS),
        *(Case(f"rails: rail {rail}, cut, under messages, {policy}", breaks(rail, "cut", policy), short=False)
          for rail in (0, 1) for policy in POLICIES[1:]),
        *(Case(f"rails: rail {rail} breaks and recovers, twice, under messages", breaks_and_mends(rail), short=False) for rail in (0, 1)),
        *(Case(f"rails: rail {rail}, {how}: the time without messages", outage(rail, how), short=False)
          for rail, how in ((0, "cut"), (0, "down"), (0, "pull 1"), (1, "cut"))),
        *breaks_under_others(),
    ]
