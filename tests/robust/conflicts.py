"""`--check rma` on modelled machines: a program with an error against each rule is reported, and its right neighbour is not."""

from harness import Problem
from watched import Job

RANKS = 3
# Programs of conflicts.c, and what their reports say.
ERRORS = {
    "fence put-put": ("bytes 0 to 7 of rank 1's part of window 0 (MPI_Win_allocate)", "rank 0 at", "rank 2 at", "MPI_Put, between two fences",
                      "why: of two puts", "remedy: call MPI_Win_fence between the two"),
    "fence put-get": ("MPI_Put, between two fences", "MPI_Get, between two fences", "why: the get may return"),
    "fence operations": ("MPI_Accumulate with MPI_SUM on MPI_LONG", "MPI_Accumulate with MPI_MAX on MPI_LONG", "accumulate_ops"),
    "fence types": ("MPI_SUM on MPI_LONG", "MPI_SUM on MPI_DOUBLE", "the same datatype"),
    "fence strided": ("bytes 0 to 7", "MPI_Put"),
    "fence receive": ("bytes 24 to 31", "MPI_Recv writes this memory", "MPI_Put, between two fences", "why: the target uses the memory"),
    "fence send": ("MPI_Send reads this memory",),
    "lock shared": ("bytes 40 to 47", "MPI_Put, under a shared lock", "MPI_LOCK_EXCLUSIVE"),
    "flush": ("MPI_Put, under a shared lock", "remedy: call MPI_Win_flush between the two"),
    "exposure": ("MPI_Put, between MPI_Win_start and MPI_Win_complete", "expose its window for each in turn"),
}
RIGHT = [*[f"{name} apart" for name in ERRORS if not name.startswith("lock")], "lock exclusive", "told"]


def checked(world, what: str, fabric: str = "qdr", *options) -> tuple[int, str]:
    fishplate = world.mpiexec.parent / "fishplate"
    words = [fishplate, "run", "-n", RANKS, "--fabric", fabric, "--check", "rma", "--summary", "none", *options, world.work / "conflicts", what]
    with Job(world.work, words) as job:
        code = job.end(20)
        job.check_gone()
        return code, job.err


def error(what: str):
    def test(world):
        for fabric in ("qdr", "2xqdr"):
            code, said = checked(world, what, fabric)
            missing = [words for words in ERRORS[what] if words not in said]
            if code != 1 or missing or "--check rma: one conflict" not in said:
                raise Problem(f"{fabric}: exit status {code}, without {missing}:\n{said}")
    return f"--check rma reports: {what}", test


def right(what: str):
    def test(world):
        for fabric in ("qdr", "2xqdr"):
            code, said = checked(world, what, fabric)
            if code or said:
                raise Problem(f"{fabric}: exit status {code}:\n{said}")
    return f"--check rma is quiet: {what}", test


def again(world):
    """A report is that of the modelled machine, so it repeats byte for byte."""
    reports = {checked(world, "fence receive") for _ in range(3)}
    if len(reports) != 1:
        raise Problem(f"three runs gave {len(reports)} reports: {reports}")


def times_stay(world):
    """The check takes no virtual time."""
    fishplate = world.mpiexec.parent / "fishplate"
    times = set()
    for check in ([], ["--check", "rma"]):
        with Job(world.work, [fishplate, "run", "-n", RANKS, "--fabric", "qdr", *check, "--summary", "none", world.work / "rounds", 3, 8]) as job:
            if code := job.end(20):
                raise Problem(f"exit status {code}: {job.err}")
            times.add(tuple(sorted(job.out.splitlines())))
    if len(times) != 1:
        raise Problem(f"other times: {times}")


def tests() -> list:
    return [*map(error, ERRORS), *map(right, RIGHT), ("--check rma says the same again", again), ("--check rma takes no virtual time", times_stay)]
