"""`--check messages` on modelled machines: a program with an error against each rule is reported with both ranks and calls, and its right neighbour is not."""

from harness import Problem
from watched import Job

RANKS = 3
# Programs of mismatches.c, and what their reports say.
ERRORS = {
    "roots": ("has different roots", "rank 0 at", "rank 1 at", "MPI_Bcast, root 0", "MPI_Bcast, root 1"),
    "operations": ("has different operations", "rank 0 at", "rank 1 at", "MPI_Allreduce, MPI_SUM", "MPI_Allreduce, MPI_MAX"),
    "counts": ("has different counts", "rank 0 at", "rank 1 at", "MPI_Allgather", "1 MPI_INT (4 B)", "2 MPI_INT (8 B)"),
    "signatures": ("has different type signatures", "rank 0 at", "rank 1 at", "MPI_Allreduce", "MPI_FLOAT", "MPI_INT"),
    "blocks": ("has blocks that do not fit", "rank 0 at", "rank 1 at", "MPI_Gatherv, expects of member 1 1 MPI_INT", "gives 2 MPI_INT"),
    "forms": ("meet different calls", "MPI_Barrier", "MPI_Ibarrier"),
    "calls": ("meet different calls", "MPI_Allreduce", "MPI_Barrier"),
    "absent": ("is not made by all", "rank 0 at", "MPI_Bcast", "rank 1 at", "MPI_Finalize, without that call"),
    "types": ("is sent as MPI_FLOAT and received as MPI_INT", "rank 0 at", "MPI_Send, to rank 1, tag 7", "rank 1 at", "MPI_Recv, from rank 0, tag 7"),
    "truncated": ("a message of 16 B on MPI_COMM_WORLD is received into a buffer of 8 B", "MPI_Send", "MPI_Recv"),
    "unreceived": ("is never received", "rank 0 at", "MPI_Send, to rank 1, tag 7, 4 MPI_INT (16 B)", "rank 1 at", "MPI_Finalize"),
    "unfinished": ("a request is active at the end", "rank 1 at", "MPI_Irecv, from rank 0, tag 7", "MPI_Finalize"),
}


def checked(world, what: str, checks: str = "messages") -> tuple[int, str]:
    fishplate = world.mpiexec.parent / "fishplate"
    words = [fishplate, "run", "-n", RANKS, "--fabric", "qdr", "--check", checks, "--summary", "none", world.work / "mismatches", what]
    with Job(world.work, words) as job:
        code = job.end(20)
        job.check_gone()
        return code, job.err


def error(what: str):
    def test(world):
        code, said = checked(world, what)
        missing = [words for words in ERRORS[what] if words not in said]
        if not code or missing or "--check messages: one error" not in said:
            raise Problem(f"exit status {code}, without {missing}:\n{said}")
    return f"--check messages reports: {what}", test


def right(world):
    code, said = checked(world, "right")
    if code or said:
        raise Problem(f"exit status {code}:\n{said}")


def race(world):
    code, said = checked(world, "race", "messages,races,leaks")
    if code or "note: a receive could match either of two messages" not in said or "rank 2 at" not in said:
        raise Problem(f"exit status {code}:\n{said}")


def leaks(world):
    code, said = checked(world, "leaks", "messages,leaks")
    wanted = ["note: a communicator is not freed", "rank 0 at", "MPI_Comm_dup, which has made a communicator", "note: a datatype is not freed", "rank 2 at"]
    missing = [words for words in wanted if words not in said]
    if code or missing or said.count("a communicator is not freed") != 1:
        raise Problem(f"exit status {code}, without {missing}:\n{said}")
    code, said = checked(world, "right", "messages,leaks")
    if code or said:
        raise Problem(f"a right program: exit status {code}:\n{said}")


def recorded(world):
    """A program that was recorded in real time is checked by its trace. What it takes to be checked is not there the fast way."""
    fishplate, trace = world.mpiexec.parent / "fishplate", world.work / "types.trace"
    on_model = [fishplate, "run", "-n", RANKS, "--fabric", "qdr", "--check", "messages", "--summary", "none"]
    for words, code, wanted in (([world.mpiexec, "-n", RANKS, "--record", trace, world.work / "mismatches", "types"], 0, ""),
                                ([*on_model, trace], 1, "is sent as MPI_FLOAT and received as MPI_INT"),
                                ([*on_model, "--fast", trace], 2, "--fast")):
        with Job(world.work, words) as job:
            ended = job.end(20)
            job.check_gone()
            if ended != code or wanted not in job.err:
                raise Problem(f"{words}: exit status {ended}:\n{job.err}")
    trace.unlink()


def functions(world):
    """A function of the program, which the check must pass on, and a call that fails and takes nothing back."""
    code, said = checked(world, "functions")
    if code or said:
        raise Problem(f"exit status {code}:\n{said}")


def tests() -> list:
    return [*map(error, ERRORS), ("--check messages is quiet: right", right), ("--check messages notes a race", race),
            ("--check messages notes objects that are left", leaks), ("--check messages reads a trace of a run in real time", recorded), ("--check messages is quiet: functions and failures", functions)]
