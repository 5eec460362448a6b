"""A fatal error ends the job whatever the program does then; what is left of a job ends with its launcher."""

import os
import signal

from harness import Problem
from watched import Job

RANKS = 2


def fatal_error(how: str):
    """Exit handlers do not run; buffered text is written."""
    def test(world):
        with Job(world.work, [world.mpiexec, "-n", RANKS, world.programs / "ending", how]) as job:
            if job.end(20) == 0:
                raise Problem("exit status 0")
            job.check_one_line(r"rank 1\b", r"failed: MPI_Send: ", "4711")
            if job.out != "buffered":
                raise Problem(f"the output is {job.out!r}")
            job.check_gone()
    return f"a fatal error, and an exit handler: {how}", test


def misuse(how: str, *patterns: str):
    """The program is to blame, and the message says so."""
    def test(world):
        with Job(world.work, [world.mpiexec, "-n", RANKS, world.programs / "ending", how]) as job:
            if job.end(20) == 0:
                raise Problem("exit status 0")
            job.check_says(r"rank 1\b", *patterns)
            if "fault of the library" in job.err:
                raise Problem(f"the library takes the blame: {job.err}")
            job.check_gone()
    return f"a misuse: {how}", test


def launcher_killed(what: str, *arguments: str):
    """Processes below wrappers end, too, and one line says why."""
    def test(world):
        words = [word.format(mpiexec=world.mpiexec) for word in arguments]
        with Job(world.work, [world.mpiexec, *words]) as job:
            job.wait_for("all were started", lambda: job.out.count("ready\n") == RANKS)
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()
            job.check_gone()
            job.check_says(rf"fishplate: the launcher \(pid {job.process.pid}\) was killed")
    return f"the launcher is killed: {what}", test


def agent_killed(world):
    """The agent's guard ends the processes of its host; the launcher reports the host."""
    script = "echo ready; sleep 1000; true"
    arguments = [world.mpiexec, "-n", RANKS, "--hosts", "a,b", "--launch-with", "env HOST={host}", "sh", "-c", script]
    with Job(world.work, arguments) as job:
        job.wait_for("all were started", lambda: job.out.count("ready\n") == RANKS)
        agents = [pid for pid in job.members() if os.path.exists(f"/proc/{pid}/cmdline")
                  and b"\0agent\0" in open(f"/proc/{pid}/cmdline", "rb").read()]
        os.kill(agents[0], signal.SIGKILL)
        if job.end(10) == 0:
            raise Problem("exit status 0")
        job.check_says("host [ab]: ")
        job.check_gone()


def tests() -> list:
    wrapper = "echo ready; sleep 1000; true"
    session = "setsid sh -c 'echo ready; sleep 1000; true' & wait"
    return [
        *[fatal_error(how) for how in ("none", "barrier", "sleep", "finalize")],
        misuse("signal", "signal handler, which must not call MPI"),
        misuse("descriptors", "the program has closed the descriptor", "exited with code"),
        launcher_killed("below a wrapper", "-n", str(RANKS), "sh", "-c", wrapper),
        launcher_killed("in sessions of their own", "-n", str(RANKS), "sh", "-c", session),
        launcher_killed("with a job within a rank", "-n", "1", "{mpiexec}", "-n", str(RANKS), "sh", "-c", wrapper),
        launcher_killed("with agents", "-n", str(RANKS), "--hosts", "a,b", "--launch-with", "env HOST={{host}}",
                        "sh", "-c", wrapper),
        ("an agent is killed: below a wrapper", agent_killed),
    ]
