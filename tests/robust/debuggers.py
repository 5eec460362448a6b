"""Debuggers find the processes of a job by MPIR: gdb starts the launcher as TotalView and DDT do, or attaches to it."""

import re
import shutil
from pathlib import Path

from harness import Problem, Skip
from watched import Job

HERE = Path(__file__).resolve().parent
# Starts the launcher under control, and stops once all ranks exist.
BEGIN = """set pagination off
set confirm off
set debuginfod enabled off
# The launcher ignores this signal, and gdb would stop at it all the same.
handle SIGPIPE nostop noprint pass
break main
run
set var MPIR_being_debugged = 1
break MPIR_Breakpoint
continue
printf "state %d, %d processes\\n", MPIR_debug_state, MPIR_proctable_size
set $at = 0
while $at < MPIR_proctable_size
  printf "rank %d of %s: %s\\n", $at, MPIR_proctable[$at].host_name, MPIR_proctable[$at].executable_name
  eval "shell cat /proc/%d/stat > FOLDER/stat.%d", MPIR_proctable[$at].pid, $at
  eval "shell cat /proc/%d/maps > FOLDER/maps.%d", MPIR_proctable[$at].pid, $at
  set $at = $at + 1
end
"""
# Attaches to rank 0, and leaves it in its main function. The signal that has stopped the rank is not to stop it again.
ATTACH = """eval "shell gdb -nx -batch -p %d -ex 'handle SIGSTOP nostop noprint nopass' -ex 'break main' -ex continue -ex 'info symbol $pc' -ex detach > FOLDER/attached 2>&1", MPIR_proctable[0].pid
"""
ABORT = """continue
printf "state %d: %s\\n", MPIR_debug_state, MPIR_debug_abort_string
"""
END = "continue\n"


def gdb(world, script: str, arguments: list, *options: str) -> Job:
    """gdb with this script and the launcher of these arguments."""
    if not shutil.which("gdb"):
        raise Skip("no gdb here")
    folder = world.work / "debuggers"
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    commands = folder / "commands"
    commands.write_text(script.replace("FOLDER", str(folder)))
    launcher = world.mpiexec.parent / "fishplate"
    # The job's launcher has its symbols in the file itself, not in a link to it.
    return Job(world.work, ["gdb", "-nx", "-batch", *options, "-x", commands, "--args", launcher, "run", *arguments])


def check_ranks(world, job: Job, hosts: list[str], program: Path) -> None:
    """The table has these ranks, and each was stopped before the linker had loaded the first library."""
    lines = [f"state 1, {len(hosts)} processes"]
    lines += [f"rank {rank} of {host}: {program.resolve()}" for rank, host in enumerate(hosts)]
    if missing := [line for line in lines if line not in job.out.splitlines()]:
        raise Problem(f"not said: {missing}; {job.out}{job.err}")
    for rank in range(len(hosts)):
        folder = world.work / "debuggers"
        state = (folder / f"stat.{rank}").read_text().rpartition(")")[2].split()[0]
        maps = (folder / f"maps.{rank}").read_text()
        if state != "T" or str(program.resolve()) not in maps or "libc.so" in maps:
            raise Problem(f"rank {rank} has state {state} and these files in memory: {maps}")


def before_main(world):
    program = world.programs / "hello"
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    may_attach = not scope.exists() or scope.read_text().strip() == "0"
    own = Path("/proc/sys/kernel/hostname").read_text().strip()
    with gdb(world, BEGIN + (ATTACH if may_attach else "") + END, ["-n", 2, program]) as job:
        if (code := job.end(60)) != 0:
            raise Problem(f"exit status {code}: {job.out}{job.err}")
        check_ranks(world, job, [own, own], program)
        attached = world.work / "debuggers" / "attached"
        if may_attach and not re.search(r"^main(?: \+ \d+)? in section", attached.read_text(), re.M):
            raise Problem(f"the debugger of rank 0: {attached.read_text()}")
        if "exited normally" not in job.out:
            raise Problem(f"the job did not go on: {job.out}{job.err}")


def on_hosts(world):
    program = world.programs / "hello"
    hosts = ["--hosts", "h0:1,h1:1", "--launch-with", f"{HERE / 'as-host'} {{host}}"]
    with gdb(world, BEGIN + END, [*hosts, program]) as job:
        if (code := job.end(60)) != 0 or "exited normally" not in job.out:
            raise Problem(f"exit status {code}: {job.out}{job.err}")
        check_ranks(world, job, ["h0", "h1"], program)


def failure(world):
    with gdb(world, BEGIN + ABORT + END, ["-n", 2, "sh", "-c", "exit 3"]) as job:
        job.end(60)
        if not re.search(r"^state 2: rank \d \(pid \d+, sh on .*exited with code 3", job.out, re.M) or "exited with code 03" not in job.out:
            raise Problem(f"{job.out}{job.err}")


def attached_later(world):
    """The table is there without a debugger, for one that comes later."""
    if not shutil.which("gdb"):
        raise Skip("no gdb here")
    with Job(world.work, [world.mpiexec, "-v", "-n", 2, "sleep", "1000"]) as job:
        job.wait_for("ranks were started", lambda: job.err.count(" started\n") == 2)
        prints = "printf \"%d %d %s\\n\", MPIR_proctable_size, MPIR_proctable[1].pid, MPIR_proctable[1].executable_name"
        with Job(world.work, ["gdb", "-nx", "-batch", "-p", job.process.pid, "-ex", prints]) as debugger:
            code = debugger.end(60)
            if code != 0 or "ptrace: Operation not permitted" in debugger.err:
                raise Skip("a debugger may not attach here")
            expected = f"2 {job.ranks()[1]} {Path(shutil.which('sleep')).resolve()}"
            if expected not in debugger.out.splitlines():
                raise Problem(f"{expected}: {debugger.out}{debugger.err}")


def tests() -> list:
    return [
        ("a debugger stops ranks before their main", before_main),
        ("a debugger stops ranks on several hosts", on_hosts),
        ("a debugger is told why a job ends", failure),
        ("a debugger attaches to a launcher", attached_later),
    ]
