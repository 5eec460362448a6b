"""Jobs over the two rails of both hosts: policies, the bytes of each rail, and rails that break and recover while a job runs."""

import json
import re
import time
from pathlib import Path

import benches
import counts
import harness
import c_programs
import running
from programs import run as c
from harness import Case, Problem
from job import SECONDS, Job, program

# Ranks of a job: two on each host.
RANKS = 4
# The time that a job sends messages, in seconds.
SENDS = 4
# The default comes first.
POLICIES = ("adaptive", "stripe", "round-robin")
# Ways in which a rail breaks, under which a job goes on: both ports; the port of one host; the packets that one host sends, so that
# acknowledgements are lost but no request, or the other way round.
BREAKS = ("cut", "down", "pull 0", "pull 1", "mute 0", "mute 1")
SHORT_BREAKS = {(0, "cut")}
# The longest time without messages after a rail of the two has broken, in seconds.
OUTAGE = 6.2
# The share of the bytes that each of two equal rails carries may differ by this from a half.
EVEN = 0.01
ATTEMPTS = 6
# Programs under which a rail breaks: those that run for seconds on an emulated processor.
BROKEN_PROGRAMS = [("send_modes", 2), ("nonblocking", 3), ("coll_data", 4), ("full_rings", 4), ("flood", 2)]
# Breaks under programs that are not made for it.
BROKEN = [(0, "cut"), (1, "down"), (0, "pull 1")]
# Sizes and iterations of a bandwidth that takes seconds on an idle machine, a minute on a busy one; messages of a window.
BW, WINDOW = ("64K:256K", 30), 16
# Packets over both rails after which a program is under way.
UNDER_WAY = 400


def prepare(options) -> None:
    sources = [Path(__file__).with_name(f"{name}.c") for name in ("steady", "gap")]
    c_programs.build(options, sources + [next(c.HERE.glob(f"{name}.c*")) for name, _ in BROKEN_PROGRAMS])


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
        with program(world, "steady", 1, ranks=RANKS, env={"FISHPLATE_RAIL_POLICY": policy}) as job:
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


def steady(seconds: float, **more):
    """Starts a program that checks messages of all ranks for some seconds."""
    def start(world) -> Job:
        return program(world, "steady", seconds, ranks=RANKS, **more)
    return start


def breaks(rail: int, how: str, policy: str = POLICIES[0]):
    """Ranks that meet only after the break find each other too. The job says once that the rail has failed, however slow the emulated
    processor is."""
    def test(world) -> None:
        enough = world.work / "enough"
        enough.unlink(missing_ok=True)
        with program(world, "steady", SECONDS, enough, ranks=RANKS, env={"FISHPLATE_RAIL_POLICY": policy}) as job:
            job.is_under_way()
            broken(world, rail, how)
            job.until(lambda: failures(job), "it says nothing of the broken rail")
            enough.touch()
            job.ends_well()
            said = failures(job)
        if len(said) != 1 or f"rail {rail} (rxe" not in said[0]:
            raise Problem(f"it says {said} of rail {rail}")
    return test


def failures(job: Job) -> list[str]:
    return [line for line in job.said(job.err).splitlines() if "has failed" in line]


def only_path(how: str, seconds: float):
    """The only rail breaks and works again: the results are right, and the outage is said."""
    def test(world) -> str:
        enough = world.work / "enough"
        enough.unlink(missing_ok=True)
        with program(world, "steady", SECONDS, enough, ranks=RANKS, env={"FISHPLATE_RAILS": "1"}) as job:
            job.is_under_way()
            broken(world, 0, how)
            try:
                job.until(lambda: "no path to" in job.said(job.err), "it says nothing of the outage")
                time.sleep(seconds)
            finally:
                broken(world, 0, "up")
            job.until(lambda: "is reached again" in job.said(job.err), "it does not go on")
            enough.touch()
            job.ends_well()
            return re.search(r"again after [\d.]+ s", job.said(job.err))[0]
    return test


def only_path_for_ever(world) -> None:
    with program(world, "steady", SECONDS, ranks=2, env={"FISHPLATE_RAILS": "1", "FISHPLATE_OUTAGE": "5"}) as job:
        job.is_under_way()
        broken(world, 0, "cut")
        try:
            code, _, err = job.ends()
        finally:
            broken(world, 0, "up")
    if code == 0 or "is lost" not in err or "FISHPLATE_OUTAGE" not in err:
        raise Problem(f"exit status {code}: {err}")


def break_and_mend(world, rail: int, ways: tuple) -> None:
    """A rail breaks in each of these ways, and works again after each."""
    for how in ways:
        for state in (how, "up"):
            broken(world, rail, state)
            time.sleep(SENDS / 2)


def breaks_and_mends(start, rail: int, ways: tuple = ("cut", "down")):
    """Under a job that says "under way"."""
    def test(world) -> None:
        with start(world) as job:
            job.is_under_way()
            break_and_mend(world, rail, ways)
            job.ends_well()
            if f"rail {rail} (rxe" not in (err := job.said(job.err)):
                raise Problem(f"it has ended before rail {rail} failed: {err}")
    return test


def outage(rail: int, how: str):
    """The time without messages after the break."""
    def test(world) -> str:
        with program(world, "gap", 10, ranks=2) as job:
            return running.outage(job, lambda: broken(world, rail, how), OUTAGE)
    return test


def sends(job: Job, before: int) -> None:
    """Waits until the job is under way. `before`: the packets before it."""
    job.until(lambda: packets() - before > UNDER_WAY, "it sends too few packets")


def under(command, rail: int, ways: tuple, judge, seconds: float = SECONDS):
    """A rail breaks and works again, once or more, after the command has sent some packets."""
    def test(world) -> None:
        before = packets()
        with Job(command(world), seconds=seconds) as job:
            sends(job, before)
            break_and_mend(world, rail, ways)
            if problem := judge(*job.ends()):
                raise Problem(problem)
    return test


def bench(name: str, sizes: str, iterations: int):
    window = ["-W", WINDOW] if name == "bw" else []
    def command(world) -> list:
        fishplate = world.prefix / "bin/fishplate"
        return [fishplate, "bench", name, "--launcher", benches.LAUNCHER.format(fishplate=fishplate), "-m", sizes, "-i", iterations,
                *window, "--validation", "--rounds", 1, "--timeout", SECONDS, "--json"]
    return command


def is_measured(code: int, out: str, err: str) -> str:
    rows = [json.loads(line) for line in out.splitlines()] if code == 0 else []
    good = rows and all(row["median"] > 0 for row in rows) and "has failed" in err
    return "" if good else f"exit status {code}: {out}{err}"


def breaks_under_others() -> list[Case]:
    cases = [Case(f"rails: rail {rail} breaks and recovers, twice, under bench bw",
                  under(bench("bw", *BW), rail, ("cut", "down"), is_measured), short=False) for rail in (0, 1)]
    for rail, how in BROKEN:
        for name, size, iterations in (("latency", "8:8", 4000), ("bw", *BW)):
            test = under(bench(name, size, iterations), rail, (how,), is_measured)
            cases.append(Case(f"rails: rail {rail}, {how}, under bench {name}", test, short=False))
        for name, ranks in BROKEN_PROGRAMS:
            def command(world, name=name, ranks=ranks) -> list:
                return world.launcher(ranks, c_programs.folder(world.prefix) / name)
            def is_right(code, out, err) -> str:
                return "" if code == 0 and " ok\n" in out else f"exit status {code}: {out}{err}"
            cases.append(Case(f"rails: rail {rail}, {how}, under {name} -n {ranks}", under(command, rail, (how,), is_right), short=False))
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
        *(Case(f"rails: rail {rail} breaks and recovers, twice, under messages", breaks_and_mends(steady(3 * SENDS), rail), short=False)
          for rail in (0, 1)),
        *(Case(f"rails: rail {rail}, {how}: the time without messages", outage(rail, how), short=False)
          for rail, how in ((0, "cut"), (0, "down"), (0, "pull 1"), (1, "cut"))),
        *(Case(f"rails: the only one, {how} for {seconds} s", only_path(how, seconds), short=how == "cut")
          for how, seconds in (("cut", 1), ("down", 3), ("pull 1", 10), ("mute 0", 3))),
        Case("rails: the only one, cut for ever", only_path_for_ever, short=False),
        *breaks_under_others(),
    ]
