"""Messages of 16 KiB to some MiB within a host, whose memory their receivers may read: ranks that are stopped or killed amid them, systems that refuse
the reads, and processors that are scarce. Every byte arrives, and nobody waits for a receiver that is not there."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path

from harness import Problem, Skip
from surroundings import Mounted, works
from watched import Job

RANKS = 4
# Where reads are forced, every message is read that can be.
READS = {"FISHPLATE_PROTOCOL": "read-rendezvous"}
# The methods of long messages, for cores that share a cache and for others.
METHODS = {"by costs": {}, "by reads": READS, "by both ranks, near": {"FISHPLATE_PROTOCOL": "cooperative-copy", "FISHPLATE_CORES": "near"},
           "by both ranks, far": {"FISHPLATE_PROTOCOL": "cooperative-copy", "FISHPLATE_CORES": "far"}}
# Exit status of a program to which the system refuses nothing here.
NOT_HERE = 77
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")


class Flow(Job):
    """Ranks that exchange messages in pairs until they are told to end. There are more of them than cores."""

    def __init__(self, world, env: dict):
        super().__init__(world.work, ["taskset", "-c", TWO_CORES, world.mpiexec, "-n", RANKS, world.programs / "shared_flow", "flow"], env=env)


# Two of this machine's cores, or its only one.
TWO_CORES = ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))


def stopped_amid_messages(world):
    """Any rank, for a moment often and for long once."""
    for env in ({}, READS):
        with Flow(world, env) as job:
            job.wait_until_ready(RANKS)
            for seconds in (*(world.random.random() * 0.03 for _ in range(20)), 2):
                time.sleep(world.random.random() * 0.02)
                rank = world.random.randrange(RANKS)
                job.kill(rank, signal.SIGSTOP)
                time.sleep(seconds)
                job.kill(rank, signal.SIGCONT)
            os.kill(job.process.pid, signal.SIGUSR1)
            code = job.end(60)
            if code != 0 or job.out.replace("ready\n", "") != " ok\n" or job.err:
                raise Problem(f"exit status {code}, {job.out!r}, {job.err[-800:]!r}")
            job.check_gone()


def stopped_receiver(messages: int, env: dict):
    """The sends return although the receiver is stopped before it claims anything: the sender lets it go on only then."""
    def test(world):
        works(world, [world.mpiexec, "-n", 2, world.programs / "shared_flow", "stopped", messages], env=env)
    return f"{messages} messages to a receiver that is stopped", test


def killed_amid_messages(world):
    for _ in range(world.kills):
        with Flow(world, world.random.choice([{}, READS])) as job:
            job.wait_until_ready(RANKS)
            time.sleep(world.random.random() * 0.03)
            dead = world.random.randrange(RANKS)
            job.kill(dead)
            if (code := job.end()) != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}, not {128 + signal.SIGKILL}: {job.err[-500:]}")
            job.check_one_line(rf"rank {dead}\b", r"SIGKILL|signal 9")
            job.check_gone()


def message_of_a_dead_sender(world):
    """The receiver finds the memory gone while the launcher, which is stopped, knows of nothing: the error has the class of a dead rank."""
    # The stopped launcher passes no output on.
    files = [world.work / f"dead.{rank}" for rank in (0, 1)]
    for file in files:
        file.write_text("")
    with Job(world.work, [world.mpiexec, "-outfile-pattern", world.work / "dead.%r", "-n", 2, world.programs / "shared_flow", "dead"], env=READS) as job:
        job.wait_for("2 ranks were ready", lambda: all("ready\n" in file.read_text() for file in files))
        os.kill(job.process.pid, signal.SIGSTOP)
        ranks = job.ranks()
        os.kill(ranks[1], signal.SIGKILL)
        job.wait_for("the sender was dead", lambda: 1 not in job.ranks())
        os.kill(ranks[0], signal.SIGUSR1)
        job.wait_for("the calls failed", lambda: "dead" in files[0].read_text() or "classes" in files[0].read_text())
        os.kill(job.process.pid, signal.SIGCONT)
        out = files[0].read_text()
        if (code := job.end()) != 128 + signal.SIGKILL or "as for a dead rank\n" not in out:
            raise Problem(f"exit status {code}, {out!r}, {job.err[-500:]!r}")
        job.check_one_line(r"rank 1\b", r"SIGKILL|signal 9")
        job.check_gone()
    for file in files:
        file.unlink()


def refused(what: str, *words):
    """By each method of long messages."""
    def test(world):
        for method, env in METHODS.items():
            with Job(world.work, [world.mpiexec, "-n", 2, world.programs / "refusals", *words], env=env) as job:
                code = job.end(60)
                if code == NOT_HERE:
                    raise Skip(job.err.splitlines()[0])
                if code != 0 or job.out != " ok\n" or job.err:
                    raise Problem(f"{method}: exit status {code}, {job.out!r}, {job.err[-800:]!r}")
                job.check_gone()
    return f"messages while the system refuses reads: {what}", test


def refusals() -> list:
    each = [refused(f"{kind}, rank {rank}, {when}", kind, rank, when) for kind in ("dumpable", "caps", "seccomp") for rank in (0, 1)
            for when in ("early", "later")]
    return [refused("of some pages", "holes"), *each, ("messages while the system refuses reads: hidden processes", hidden_processes)]


def hidden_processes(world):
    """Who may not read a process does not see it in /proc, and does not take it for dead."""
    with Mounted("/proc", "-t", "proc", "-o", "hidepid=invisible,gid=54321", "proc"):
        for rank in (0, 1):
            refused("", "dumpable", rank, "later")[1](world)


@contextlib.contextmanager
def yama(scope: int):
    """The scope of this whole machine, for the time of a test."""
    if not YAMA.exists():
        raise Skip(f"this kernel has no Yama: there is no {YAMA}")
    before = YAMA.read_text()
    try:
        YAMA.write_text(str(scope))
    except OSError as why:
        raise Skip(f"{YAMA} cannot be set to {scope}: {why.strerror}") from None
    try:
        yield
    finally:
        YAMA.write_text(before)


def restricted(scope: int):
    """Scope 3 holds until the next boot, so no test sets it: in effect it is scope 2 for processes without rights."""
    def test(world):
        with yama(scope):
            for env in METHODS.values():
                # Without the right to read everything: what may be read is up to Yama.
                for words in ([], ["setpriv", "--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace"]):
                    works(world, [world.mpiexec, "-n", 2, *words, world.programs / "refusals", "none"], env=env)
    return f"messages under Yama's scope {scope}", test


def in_namespaces(who: str, *kinds: str):
    """Ranks with namespaces of their own, as containers of one host have them: `who` is a rank, or `all`."""
    def test(world):
        options = [*kinds, *(["--map-root-user"] if "--user" in kinds else []), *(["--fork", "--kill-child"] if "--pid" in kinds else [])]
        if (probe := subprocess.run(["unshare", *options, "true"], capture_output=True, text=True)).returncode:
            raise Skip(f"unshare {' '.join(kinds)}: {probe.stderr.strip()}")
        script = f'case $FISHPLATE_RANK in {"*" if who == "all" else who}) set -- unshare {shlex.join(options)} "$@";; esac; exec "$@"'
        for env in METHODS.values():
            works(world, [world.mpiexec, "-n", 2, "sh", "-c", script, "sh", world.programs / "refusals", "none"], env=env)
    return f"messages of {'all ranks' if who == 'all' else f'rank {who}'} in namespaces {' '.join(kinds)}", test


@contextlib.contextmanager
def quota(percent: int):
    """The files to which a process writes its number to have so much of one core."""
    name = f"fishplate-test-{os.getpid()}"
    first, second = Path("/sys/fs/cgroup") / name, Path("/sys/fs/cgroup/cpu") / name
    period = 50_000
    wanted = {first: {"cpu.max": f"{period * percent // 100} {period}"},
              second: {"cpu.cfs_period_us": f"{period}", "cpu.cfs_quota_us": f"{period * percent // 100}"}}
    reasons = []
    for folder, values in wanted.items():
        if not folder.parent.is_dir():
            continue
        try:
            folder.mkdir()
        except OSError as why:
            reasons.append(f"{folder.parent}: {why.strerror}")
            continue
        try:
            if not all((folder / file).exists() for file in values):
                reasons.append(f"{folder.parent}: no quota of processors")
                continue
            for file, value in values.items():
                (folder / file).write_text(value)
            yield folder / "cgroup.procs"
            return
        finally:
            folder.rmdir()
    raise Skip(f"no cgroup with a quota can be made ({'; '.join(reasons)})")


def within_a_quota(world):
    """The ranks stand still for most of the time, at any moment of a message."""
    with quota(40) as members:
        for env in ({}, READS):
            enter = f'echo $$ > {members} && exec "$@"'
            works(world, ["sh", "-c", enter, "sh", world.mpiexec, "-n", 2, world.programs / "shared_sends"], env=env, seconds=300)


def beside_busy_loops(world):
    cores = TWO_CORES.split(",")
    loops = [subprocess.Popen(["taskset", "-c", core, "sh", "-c", "while :; do :; done"]) for core in cores]
    try:
        for env in ({}, READS):
            works(world, ["taskset", "-c", TWO_CORES, world.mpiexec, "-n", 2, world.programs / "shared_sends"], env=env, seconds=300)
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def tests() -> list:
    return [
        ("ranks are stopped amid messages that are read", stopped_amid_messages),
        # Those that go in packets must find room at the receiver.
        stopped_receiver(2, {}),
        stopped_receiver(60, READS),
        ("a rank is killed amid messages that are read", killed_amid_messages),
        ("the message of a dead sender is read", message_of_a_dead_sender),
        *refusals(),
        restricted(1),
        restricted(2),
        *(in_namespaces(who, *kinds) for who in ("0", "1", "all") for kinds in (("--user",), ("--pid",), ("--user", "--pid"))),
        ("messages that are read, within a quota of processors", within_a_quota),
        ("messages that are read, beside busy loops", beside_busy_loops),
    ]
