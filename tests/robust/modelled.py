"""Jobs on modelled machines: they end as other jobs do, and time that stands still is told."""

import signal
import time

from job import Job, Problem

RANKS = 3


def start(world, *arguments, options=()) -> Job:
    fishplate = world.mpiexec.parent / "fishplate"
    return Job(world.work, [fishplate, "run", "-n", RANKS, "--fabric", "qdr", *options, *arguments])


def deadlock(world):
    """Every rank is named, with what it waits for."""
    with start(world, world.victim, "wait") as job:
        if job.end() == 0:
            raise Problem("exit status 0")
        job.check_says("deadlock: all ranks wait and nothing is on its way", "MPI_Recv from any tag 4711")
        job.check_gone()


def rank_dies(where: str):
    def test(world):
        with start(world, world.victim, where) as job:
            job.wait_until_ready(RANKS)
            time.sleep(world.random.random() * 0.2)
            job.kill(world.random.randrange(RANKS))
            if (code := job.end()) != 128 + signal.SIGKILL:
                raise Problem(f"exit status {code}")
            job.check_says("SIGKILL")
            job.check_gone()
    return f"on a modelled machine a rank is killed: ranks {where}", test


def rank_leaves(world):
    with start(world, world.victim, "leave", 3) as job:
        if (code := job.end()) != 3:
            raise Problem(f"exit status {code}, not 3")
        job.check_says("rank 1")
        job.check_gone()


def spins(world):
    """It is named after ten seconds; nothing but the user's --timeout ends it."""
    with start(world, world.victim, "compute", options=("--timeout", 13)) as job:
        if (code := job.end(20)) != 124:
            raise Problem(f"exit status {code}, not 124")
        job.check_says("rank [0-9] has run for 10 s without calling MPI")
        job.check_gone()


def faulty_fabric(world):
    """Packets are lost and late, bytes come in any order; programs do not notice."""
    plan = world.work / "faults.toml"
    plan.write_text('loss = 0.002\ndelay = { share = 0.05, up_to = "20us" }\nscatter = "2us"\ntimeout = "1ms"\n')
    for seed in range(2):
        with start(world, world.programs / "send_modes", options=("--faults", plan, "--seed", seed)) as job:
            if code := job.end(20):
                raise Problem(f"seed {seed}: exit status {code}: {job.err[-800:]}")
            job.check_gone()


def same_again(world):
    """The same words give the same bytes."""
    outputs = set()
    for _ in range(3):
        with Job(world.work, [world.mpiexec.parent / "fishplate", "bench", "allreduce", "-n", 5, "-m", "4:64K",
                              "--fabric", "2xqdr,mpich2-2003", "--json"]) as job:
            if code := job.end(30):
                raise Problem(f"exit status {code}: {job.err[-800:]}")
            outputs.add(job.out)
    if len(outputs) != 1:
        raise Problem(f"three runs gave {len(outputs)} outputs")


def refused(what: str, *options, says: str):
    def test(world):
        fishplate = world.mpiexec.parent / "fishplate"
        with Job(world.work, [fishplate, "run", "-n", 2, *options, world.victim, "leave", 0]) as job:
            if job.end() == 0:
                raise Problem("exit status 0")
            job.check_says(says)
            job.check_gone()
    return f"refused: {what}", test


def tests() -> list:
    return [
        ("a deadlock on a modelled machine", deadlock),
        *[rank_dies(where) for where in ("ring", "reduce")],
        ("a rank leaves a modelled machine", rank_leaves),
        ("a rank that spins on a modelled machine", spins),
        ("a modelled machine with faults", faulty_fabric),
        ("a modelled machine is the same again", same_again),
        refused("a fabric that there is not", "--fabric", "qdrr", says="qdr"),
        refused("a fabric's file that there is not", "--fabric", "./nowhere.toml", says="nowhere.toml"),
        refused("a plan of faults that there is not", "--fabric", "qdr", "--faults", "nowhere.toml", says="nowhere.toml"),
        refused("no ranks on a host", "--fabric", "qdr", "--ppn", 0, says="--ppn 0"),
    ]
