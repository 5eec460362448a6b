"""Jobs on several hosts, for which `as-host` stands in: every promise for one host holds, and a failure between hosts ends the job
with one line."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import Problem
from watched import Job

HERE = Path(__file__).resolve().parent
AS_HOST = f"{HERE / 'as-host'} {{host}}"
# A stand-in for an MPI program: it talks to the launcher as its arguments say.
STAND_IN = ["python3", "-SE", next((HERE.parent.parent / "crates/command/fishplate/tests").rglob("rank.py"))]


def start(world, *command, ranks: int = 4, hosts: str = "a,b", options: tuple = (), launch_with: str = AS_HOST,
          env: dict | None = None) -> Job:
    return Job(world.work, [world.mpiexec, "-n", ranks, "--hosts", hosts, "--launch-with", launch_with, *options, *command],
               env=env)


def shell(world, script: str, **more) -> Job:
    return start(world, "sh", "-c", script, **more)


def expect(job: Job, code: int, out: list | None = None, seconds: float = 10) -> None:
    """The exit status, the lines of output in any order, and nothing left."""
    if (seen := job.end(seconds)) != code:
        raise Problem(f"exit status {seen}, not {code}: {job.err[-500:]!r}")
    if out is not None and sorted(job.out.splitlines()) != sorted(out):
        raise Problem(f"output {job.out[-500:]!r}, not {out}")
    if code == 0 and job.err:
        raise Problem(f"standard error is not empty: {job.err[-500:]!r}")
    job.check_gone()


def ready(job: Job, ranks: int = 4) -> None:
    job.wait_for(f"{ranks} ranks were ready", lambda: job.out.count("ready") == ranks)


def agents(job: Job) -> list[int]:
    """The processes of the agents, in the order of their hosts' names: hosts start side by side, so numbers of processes
    have no order. Each agent is the first process of its kind on its host.
    """
    found = {}
    for pid in job.members():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-2:] == [b"agent", b""] and b"fishplate" in words[0]:
            name = subprocess.run(["nsenter", f"--uts=/proc/{pid}/ns/uts", "hostname"], capture_output=True, text=True)
            found[name.stdout] = min(pid, found.get(name.stdout, pid))
    return [found[name] for name in sorted(found)]


def placed(hosts: str, ranks: int, expected: str, *options):
    def test(world):
        script = 'echo "$FISHPLATE_RANK/$FISHPLATE_SIZE $(hostname) $FISHPLATE_HOSTS"'
        with shell(world, script, hosts=hosts, ranks=ranks, options=options) as job:
            where = [host for word in expected.split() for host in word[0] * int(word[2:])]
            lengths = {host: where.count(host) for host in where}
            told = ",".join(f"{at}*{count}" if count > 1 else str(at) for at, count in enumerate(lengths.values()))
            told = told if len(lengths) > 1 else ""
            expect(job, 0, [f"{rank}/{ranks} {host} {told}" for rank, host in enumerate(where)])
    return f"{ranks} ranks on {hosts} {' '.join(options)}: {expected}", test


def mpi_program(world):
    """Ranks of one host share memory there as they would without an agent."""
    with start(world, world.programs / "hello", hosts="a", ranks=3) as job:
        expect(job, 0)


def first_failure(world):
    steps = ["init", "print=ready\\n", "put=at{rank} 1", "2:get=at0", "2:get=at1", "2:get=at3", "2:exit=7", "recv=2 tag=5"]
    with start(world, *STAND_IN, *(step for step in by_rank(steps))) as job:
        expect(job, 7)
        job.check_one_line(r"^fishplate: rank 2 \(pid \d+, python3 on b\) exited with code 7; "
                           r"0-1,3: MPI_Recv from 2 tag 5 on MPI_COMM_WORLD$")


def by_rank(steps: list, ranks: int = 4):
    """Steps with {rank} in them are one for each rank."""
    for step in steps:
        yield from ([f"{rank}:{step.format(rank=rank)}" for rank in range(ranks)] if "{rank}" in step else [step])


def killed_rank(world):
    for rank in range(4):
        with start(world, *STAND_IN, "init", "print=ready\\n", "recv=any tag=1") as job:
            ready(job)
            job.kill(rank)
            expect(job, 137, seconds=3)
            job.check_one_line(rf"rank {rank} \(pid \d+, python3 on {'ab'[rank // 2]}\) was killed by SIGKILL", "; .*: MPI_Recv")


def below_a_wrapper(world):
    stand_in = " ".join(map(str, STAND_IN))
    script = f"exec 2>/dev/null; {stand_in} init 'print=ready\\n' get=go kill=SIGKILL; sleep 1000"
    with shell(world, script, ranks=2) as job:
        ready(job, 2)
        program = [pid for pid, _ in job.environments() if b"rank.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
                   and Path(f"/proc/{pid}/comm").read_text().startswith("python")]
        os.kill(max(program), signal.SIGKILL)
        expect(job, 1, seconds=3)
        job.check_one_line(r"rank \d .* lost its program \(pid \d+\)")


def aborted(world):
    with start(world, *STAND_IN, "init", "3:abort=9 enough", "recv=any tag=1") as job:
        expect(job, 9)
        job.check_one_line(r"rank 3 .* on b\) called MPI_Abort with code 9: enough")


def values_cross_hosts(world):
    steps = [*by_rank(["put=from{rank} value{rank}"]),
             *(f"{rank}:get=from{other}" for rank in range(4) for other in range(4))]
    with start(world, *STAND_IN, *steps) as job:
        expect(job, 0, [f"got {rank} value{other}" for rank in range(4) for other in range(4)])


def early_questions(world):
    with start(world, *STAND_IN, "0:get=late", "3:sleep=0.3", "3:put=late 1", "0:put=again 2", "3:get=again") as job:
        expect(job, 0, ["got 0 1", "got 3 2"])


def value_changed(world):
    with start(world, *STAND_IN, "0:put=key one", "0:put=done 1", "3:get=done", "3:put=key two", "sleep=100") as job:
        expect(job, 1)
        job.check_one_line(r"rank 3 .* on b\) misused .* key key has another value already, put by rank 0")


def interrupted_by(number: signal.Signals, *steps, seconds: float = 3):
    def test(world):
        with start(world, *STAND_IN, *steps, "init", "print=ready\\n", "recv=any tag=1") as job:
            ready(job)
            os.kill(job.process.pid, number)
            expect(job, 128 + number, seconds=seconds)
            job.check_one_line(number.name, "0-3: MPI_Recv")
    return f"{number.name} ends ranks everywhere {' '.join(steps)}", test


def signal_passed_on(world):
    with start(world, *STAND_IN, "catch=SIGUSR1", "print=ready\\n", "sleep=1") as job:
        ready(job)
        os.kill(job.process.pid, signal.SIGUSR1)
        expect(job, 0, ["ready"] * 4 + ["caught SIGUSR1"] * 4)


def stopped_and_continued(world):
    script = 'echo ready; while :; do sleep 0.1; done'
    with shell(world, script) as job:
        ready(job)
        os.kill(job.process.pid, signal.SIGTSTP)
        # A shell whose child is stopped between fork and exec is in state D.
        job.wait_for("all ranks were stopped", lambda: "T" in (seen := job.states()) and seen <= {"T", "D"})
        os.kill(job.process.pid, signal.SIGCONT)
        job.wait_for("all ranks went on", lambda: (seen := job.states()) and "T" not in seen)
        job.process.terminate()
        expect(job, 143, seconds=3)


def report(world):
    with start(world, *STAND_IN, "init", "print=ready\\n", "recv=0 tag=9") as job:
        ready(job)
        os.kill(job.process.pid, signal.SIGQUIT)
        job.wait_for("the report", lambda: "0-3: MPI_Recv from 0 tag 9" in job.err)
        job.process.terminate()
        expect(job, 143, seconds=3)


def stuck(world):
    with start(world, *STAND_IN, "init", "recv=0 tag=9", options=("--report-stuck", "1")) as job:
        job.wait_for("the report", lambda: re.search(r"no rank made progress for .*\n +0-3: MPI_Recv from 0 tag 9", job.err))
        job.process.terminate()
        expect(job, 143, seconds=3)


def timeout(world):
    with start(world, *STAND_IN, "init", "recv=0 tag=9", options=("--timeout", "1.5")) as job:
        expect(job, 124)
        job.check_one_line(r"longer than 1.5 s \(--timeout\)")


def leftovers_end(world):
    with start(world, *STAND_IN, "daemon", "child") as job:
        expect(job, 0, [])


def run_with_input(world, data: bytes, *command) -> subprocess.CompletedProcess:
    command = [world.mpiexec, "--launch-with", AS_HOST, "-n", 2, "--hosts", "a,b", *command]
    return subprocess.run(list(map(str, command)), input=data, capture_output=True, timeout=60)


def input_goes_to_rank_0(world):
    for size in (0, 5, 3_000_000):
        script = 'echo "$FISHPLATE_RANK $(cksum)"'
        data = os.urandom(size)
        done = run_with_input(world, data, "sh", "-c", script)
        sums = [subprocess.run(["cksum"], input=text, capture_output=True).stdout.decode().strip() for text in (data, b"")]
        expected = [f"0 {sums[0]}", f"1 {sums[1]}"]
        if (done.returncode, sorted(done.stdout.decode().splitlines())) != (0, expected):
            raise Problem(f"{size} bytes: {done}")


def input_that_nobody_reads(world):
    done = run_with_input(world, bytes(3_000_000), "true")
    if (done.returncode, done.stderr) != (0, b""):
        raise Problem(str(done))


def endless_input(world):
    """A job ends though its input does not."""
    reader, writer = os.pipe()
    try:
        command = [world.mpiexec, "--launch-with", AS_HOST, "-n", 2, "--hosts", "a,b", "true"]
        done = subprocess.run(list(map(str, command)), stdin=reader, capture_output=True, timeout=20)
        if (done.returncode, done.stderr) != (0, b""):
            raise Problem(str(done))
    finally:
        os.close(reader)
        os.close(writer)


def output_is_whole(world):
    """More than all pipes hold, to a reader that is slow to begin."""
    script = 'seq -f "line $FISHPLATE_RANK %.0f" 40000; echo end >&2'
    command = [str(world.mpiexec), "--launch-with", AS_HOST, "-n", "4", "--hosts", "a,b", "--tag-output", "sh", "-c", script]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        time.sleep(1)
        out, err = process.communicate(timeout=60)
    seen = {rank: [] for rank in range(4)}
    for line in out.decode().splitlines():
        match = re.fullmatch(r"\[(\d)\] line (\d) (\d+)", line)
        if not match or match[1] != match[2]:
            raise Problem(f"a line is damaged: {line!r}")
        seen[int(match[1])].append(int(match[3]))
    if any(numbers != list(range(1, 40001)) for numbers in seen.values()):
        raise Problem(f"lines are missing or out of order: { {rank: len(lines) for rank, lines in seen.items()} }")
    if sorted(err.decode().splitlines()) != [f"[{rank}] end" for rank in range(4)] or process.returncode:
        raise Problem(f"{process.returncode}: {err!r}")


def long_lines(hosts: str):
    """Lines far above all buffers have one tag, beside short ones of other ranks. A rank that stands still in the middle of one may be interrupted,
    which is marked."""
    def test(world):
        script = 'for time in 1 2 3; do head -c 1000000 /dev/zero | tr "\\0" $FISHPLATE_RANK; echo; echo short; done'
        command = [str(world.mpiexec), "--launch-with", AS_HOST, "-n", "4", "--hosts", hosts, "--tag-output", "sh", "-c", script]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        lines, marked = {rank: [] for rank in range(4)}, 0
        for line in done.stdout.splitlines():
            match = re.fullmatch(r"\[(\d)\] (\(continued\) )?(.*)", line)
            if not match:
                raise Problem(f"a line has no tag: {line[:50]!r}")
            own = lines[int(match[1])]
            if match[2]:
                marked += 1
                own[-1] += match[3]
            else:
                own.append(match[3])
        for rank, own in lines.items():
            if own != [str(rank) * 1000000, "short"] * 3:
                raise Problem(f"rank {rank} has lines of {[len(line) for line in own]} bytes")
        if done.returncode or done.stderr:
            raise Problem(f"{done.returncode}: {done.stderr[-500:]}")
        return f"{marked} interrupted" if marked else ""
    return f"long lines keep their tag, hosts {hosts}", test


def output_without_tags(world):
    with shell(world, 'printf "no newline $FISHPLATE_RANK" >&2; printf ready; sleep 0.3; echo', ranks=1, hosts="a") as job:
        job.wait_for("what has no newline yet was shown", lambda: job.out == "ready")
        job.end(10)
        if (job.out, job.err) != ("ready\n", "no newline 0"):
            raise Problem(f"{job.out!r} {job.err!r}")


def nobody_reads(world):
    command = f"{world.mpiexec} -n 2 --hosts a,b --launch-with '{AS_HOST}' yes | head -n 1"
    with Job(world.work, ["bash", "-c", f"set -o pipefail; {command}"]) as job:
        if job.end(10) == 0:
            raise Problem("exit status 0")
        job.check_gone()


def surroundings(world):
    """Settings and `-x` arrive even where the environment does not; the directory is the launcher's, or `--wdir`."""
    bare = f"env -i PATH={os.environ['PATH']} {AS_HOST}"
    script = 'echo "$FISHPLATE_SPIN $GREETING $(pwd)"'
    env = {"FISHPLATE_SPIN": "2ms", "FISHPLATE_RANK": ""}
    with shell(world, script, launch_with=bare, options=("-x", "GREETING=a b"), env=env) as job:
        job.end(10)
        if job.out != f"2ms a b {os.getcwd()}\n" * 4:
            raise Problem(f"{job.out!r} {job.err!r}")
    with shell(world, "pwd", options=("--wdir", "/usr/lib")) as job:
        expect(job, 0, ["/usr/lib"] * 4)
    with shell(world, "pwd", options=("--wdir", "/nowhere")) as job:
        expect(job, 127)
        job.check_one_line(r"host \w: cannot start ranks in /nowhere: .*--wdir")


def killed_agent(which: int):
    def test(world):
        with start(world, *STAND_IN, "init", "print=ready\\n", "recv=any tag=1") as job:
            ready(job)
            os.kill(agents(job)[which], signal.SIGKILL)
            expect(job, 137, seconds=3)
            others = ["2-3", "0-1"][which]
            job.check_one_line(rf"host {'ab'[which]}: its agent is gone: .* was killed by SIGKILL", f"{others}: MPI_Recv")
    return f"the agent of host {'ab'[which]} is killed", test


def agent_terminated(world):
    with start(world, *STAND_IN, "init", "ignore=SIGTERM", "print=ready\\n", "recv=any tag=1") as job:
        ready(job)
        os.kill(agents(job)[1], signal.SIGTERM)
        expect(job, 1, seconds=3)
        job.check_one_line("^fishplate: host b: its agent was ended by SIGTERM; 0-1: MPI_Recv")


def stopped_agent(world):
    """One that hears nothing does not hold up the end for long, and its ranks end with it."""
    with start(world, *STAND_IN, "init", "print=ready\\n", "recv=any tag=1") as job:
        ready(job)
        os.kill(agents(job)[0], signal.SIGSTOP)
        job.process.terminate()
        expect(job, 143, seconds=6)


def broken_connection(world):
    """A command between launcher and agent dies: the agent sees the end of its input."""
    relay = f"sh -c 'cat | {HERE / 'as-host'} \"$@\" | cat' relay {{host}}"
    with start(world, *STAND_IN, "init", "print=ready\\n", "recv=any tag=1", launch_with=relay) as job:
        ready(job)
        cats = [pid for pid in job.members() if Path(f"/proc/{pid}/comm").read_text() == "cat\n"]
        os.kill(min(cats), signal.SIGKILL)
        expect(job, 1, seconds=3)
        # The shell says so too that its child was killed.
        job.check_says("(?m)^fishplate: host [ab]: its agent lost the connection to the launcher; .*: MPI_Recv")


def killed_launcher(world):
    for where in (["sleep=1000"], ["ignore=SIGTERM", "ignore=SIGHUP", "sleep=1000"]):
        with start(world, *STAND_IN, *where[:-1], "print=ready\\n", where[-1]) as job:
            ready(job)
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()
            job.check_gone()


def killed_launcher_at_random(world):
    for _ in range(15):
        with start(world, *STAND_IN, "init", "recv=any tag=1") as job:
            time.sleep(world.random.random() * 0.15)
            os.kill(job.process.pid, signal.SIGKILL)
            job.end()
            job.check_gone()


def interrupted_at_random(world):
    for _ in range(15):
        with start(world, *STAND_IN, "init", "recv=any tag=1") as job:
            job.wait_for("the launcher takes signals", lambda: takes_signals(job.process.pid))
            time.sleep(world.random.random() * 0.15)
            os.kill(job.process.pid, signal.SIGINT)
            expect(job, 130, seconds=5)


def takes_signals(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    blocked = int(re.search(r"SigBlk:\s*(\w+)", status)[1], 16)
    return bool(blocked >> (signal.SIGINT - 1) & 1)


def values_of_six(world):
    """Values of one rank on each of six hosts, questions for them, and fences, in rounds."""
    rounds = [step for turn in range(3) for step in (
        *by_rank([f"put=k{turn}.{{rank}} v{turn}.{{rank}}"], 6), "fence",
        *(f"{rank}:get=k{turn}.{other}" for rank in range(6) for other in (0, 3, 5)))]
    with start(world, *STAND_IN, *rounds, "fence", hosts="a,b,c,d,e,f", ranks=6) as job:
        expected = sorted(f"got {rank} v{turn}.{other}" for turn in range(3) for rank in range(6) for other in (0, 3, 5))
        if (code := job.end(20)) != 0 or sorted(job.out.splitlines()) != expected:
            raise Problem(f"exit status {code}: {job.out[-500:]!r} {job.err[-500:]!r}")
        job.check_gone()


def left_a_fence(world):
    with start(world, *STAND_IN, "3:print=ready\\n", "3:exit=0", "0:sleep=0.3", "fence") as job:
        if (code := job.end(10)) != 1:
            raise Problem(f"exit status {code}: {job.err[-500:]!r}")
        job.check_says("rank 3 .*fence")
        job.check_gone()


def fails_before_it_answers(what: str, launch_with: str, code: int, *patterns: str, one_line: bool = True):
    def test(world):
        with start(world, "true", launch_with=launch_with.replace("AS_HOST", AS_HOST)) as job:
            expect(job, code)
            job.check_one_line(*patterns) if one_line else job.check_says(*patterns)
    return f"the command for a host {what}", test


def reached_by_ssh(world):
    """Where nothing else is said; but this machine is reached without. As ssh does, the stand-in hands a shell one line."""
    folder = world.work / "ssh"
    folder.mkdir(exist_ok=True)
    stand_in = folder / "ssh"
    options = "-o BatchMode=yes -o ServerAliveInterval=10 -o ServerAliveCountMax=3"
    stand_in.write_text(f'#!/bin/sh\n[ "$1 $2 $3 $4 $5 $6" = "{options}" ] || exit 255\nshift 6\n'
                        f'name=$1\nshift\nexec {HERE / "as-host"} "$name" sh -c "$*"\n')
    stand_in.chmod(0o755)
    own = os.uname().nodename
    command = [world.mpiexec, "-n", 3, "--hosts", f"elsewhere,{own},localhost", "sh", "-c", "hostname"]
    with Job(world.work, command, env={"PATH": f"{folder}:{os.environ['PATH']}"}) as job:
        expect(job, 0, ["elsewhere", own, own])


def noise_before_the_answer(world):
    noisy = f"sh -c 'echo welcome; echo \"to $1\"; exec {HERE / 'as-host'} \"$@\"' noisy {{host}}"
    with shell(world, "echo ready", launch_with=noisy) as job:
        job.end(10)
        if job.out != "ready\n" * 4 or sorted(job.err.split()) != sorted("welcome to a welcome to b".split()):
            raise Problem(f"{job.out!r} {job.err!r}")


def silent_command(world):
    with start(world, "true", options=("--timeout", "1"), launch_with="sh -c 'sleep 1000' {host}") as job:
        expect(job, 124)


def another_version(world):
    with start(world, "true", launch_with="sh -c 'echo fishplate agent 0.0.0; sleep 5' {host}") as job:
        expect(job, 1)
        job.check_one_line(r"host \w: .*fishplate agent 0\.0\.0.*install the same version")


def missing_program(world):
    with start(world, "/nowhere/at-all") as job:
        expect(job, 127)
        job.check_one_line(r"host \w: cannot start /nowhere/at-all: no such file")


def tests() -> list:
    return [
        placed("a,b", 4, "a=2 b=2"),
        long_lines("localhost"),
        long_lines("a,b"),
        placed("a,b,c", 4, "a=2 b=1 c=1"),
        placed("a:1,b:3", 3, "a=1 b=2"),
        placed("a,b", 3, "a=2 b=1", "--ppn", "2"),
        placed("a,b", 1, "a=1"),
        ("an MPI program below an agent", mpi_program),
        ("hosts: the first rank that failed decides", first_failure),
        ("hosts: a rank is killed", killed_rank),
        ("hosts: a program dies below a wrapper", below_a_wrapper),
        ("hosts: MPI_Abort", aborted),
        ("hosts: values cross them", values_cross_hosts),
        ("hosts: a question before its answer", early_questions),
        ("hosts: a value is put twice", value_changed),
        interrupted_by(signal.SIGINT),
        interrupted_by(signal.SIGTERM),
        interrupted_by(signal.SIGHUP, "ignore=SIGHUP", "ignore=SIGTERM"),
        ("hosts: SIGUSR1 is passed on", signal_passed_on),
        ("hosts: SIGTSTP and SIGCONT are passed on", stopped_and_continued),
        ("hosts: SIGQUIT gives a report", report),
        ("hosts: --report-stuck", stuck),
        ("hosts: --timeout", timeout),
        ("hosts: what ranks leave running ends", leftovers_end),
        ("hosts: input goes to rank 0", input_goes_to_rank_0),
        ("hosts: input that nobody reads", input_that_nobody_reads),
        ("hosts: input without end", endless_input),
        ("hosts: output is whole", output_is_whole),
        ("hosts: output without tags comes at once", output_without_tags),
        ("hosts: nobody reads the output", nobody_reads),
        ("hosts: settings, variables and directories", surroundings),
        killed_agent(0),
        killed_agent(1),
        ("an agent is told to end", agent_terminated),
        ("an agent is stopped", stopped_agent),
        ("a connection breaks", broken_connection),
        ("hosts: the launcher is killed", killed_launcher),
        ("hosts: the launcher is killed at random moments", killed_launcher_at_random),
        ("hosts: the launcher is interrupted at random moments", interrupted_at_random),
        ("hosts: values and fences in rounds", values_of_six),
        ("hosts: a rank leaves a fence out", left_a_fence),
        fails_before_it_answers("does not exist", "no-such-command {host}", 127, "host a: cannot start no-such-command",
                                "--launch-with"),
        fails_before_it_answers("fails", "sh -c 'echo \"no route to $0\" >&2; exit 255' {host}", 255,
                                r"host (\w): .* ended with code 255 before its agent answered: no route to \1 \(.*true` has to work"),
        fails_before_it_answers("finds no fishplate", "AS_HOST env /nowhere/fishplate", 127,
                                "No such file", "same path on every host"),
        fails_before_it_answers("ends without a word", "true {host}", 1, "ended with code 0 before its agent answered"),
        ("hosts are reached by ssh", reached_by_ssh),
        ("the command for a host says something first", noise_before_the_answer),
        ("the command for a host never answers", silent_command),
        ("the command for a host is another version", another_version),
        ("hosts: the program does not exist", missing_program),
    ]
