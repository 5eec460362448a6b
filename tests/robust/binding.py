"""Ranks are bound to cores as the launcher or the user chooses, and freed where other work is in their way."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from harness import Problem, Skip
from hosts import AS_HOST
from watched import Job

# A release takes tenths of a second where a rank gets its share of the cores, and longer where many processes want them.
RELEASE_SECONDS = 120


def first_cores(count: int) -> list[int]:
    """The first hardware threads of as many cores that the tests may use."""
    found = {}
    for number in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
        found.setdefault(siblings.read_text() if siblings.exists() else number, number)
    if len(found) < count:
        raise Skip(f"the tests may use {len(found)} cores here, not {count}")
    return list(found.values())[:count]


def on(cores: list[int], *command) -> list:
    return ["taskset", "-c", ",".join(map(str, cores)), *command]


def masks(job: Job) -> list[set]:
    """The hardware threads of each rank, in the order of ranks."""
    return [os.sched_getaffinity(pid) for _, pid in sorted(job.ranks().items())]


def told(job: Job) -> set[str]:
    """What the ranks have been told of their binding."""
    name = b"FISHPLATE_BINDING="
    return {value.removeprefix(name).decode() for _, variables in job.environments() for value in variables if value.startswith(name)}


def soft(cores: list[int]) -> str:
    """What ranks are told of a binding that a launcher with these two cores has chosen."""
    one, other = cores
    return f"soft:{one}-{other}" if other == one + 1 else f"soft:{one},{other}"


def start(world, cores: list[int], ranks: int, *options, program: tuple = (), env: dict | None = None) -> Job:
    program = program or (world.victim, "wait")
    return Job(world.work, on(cores, world.mpiexec, "-n", ranks, *options, *program), env=env)


def expect(job: Job, ranks: int, expected: list[set], binding: str) -> None:
    job.wait_until_ready(ranks)
    if (seen := masks(job)) != expected:
        raise Problem(f"the ranks may use {seen}, not {expected}: {job.err[-500:]}")
    if told(job) != {binding}:
        raise Problem(f"the ranks have been told {told(job)}, not {binding}")


def by_itself(world):
    """A core for each of two ranks; a second job does no worse."""
    cores = first_cores(2)
    apart = [{core} for core in cores]
    with start(world, cores, 2) as job, start(world, cores, 2) as second:
        expect(job, 2, apart, soft(cores))
        expect(second, 2, apart, soft(cores))


def not_bound(name: str, ranks: int, *options, program: tuple = ()):
    def test(world):
        cores = first_cores(2)
        words = [str(word).format(work=world.work, victim=world.victim) for word in program]
        with start(world, cores, ranks, *options, program=tuple(words)) as job:
            expect(job, ranks, [set(cores)] * ranks, "none")
    return name, test


def in_an_interpreter(world):
    cores = first_cores(2)
    interpreter = world.work / "valgrind"
    interpreter.write_text('#!/bin/sh\nexec "$@"\n')
    interpreter.chmod(0o755)
    with start(world, cores, 2, program=(interpreter, world.victim, "wait")) as job:
        expect(job, 2, [set(cores)] * 2, "none")


def hard(options: str, ranks: int, expected: list[list[int]]):
    """`expected` has indices of two cores."""
    def test(world):
        cores = first_cores(2)
        words = [word.format(*cores) for word in options.split()]
        with start(world, cores, ranks, *words) as job:
            expect(job, ranks, [{cores[at] for at in places} for places in expected], "hard")
    return f"the user binds: {options}", test


def refused(options: str, ranks: int, *patterns: str):
    def test(world):
        cores = first_cores(2)
        with start(world, cores, ranks, *options.split()) as job:
            if (code := job.end(20)) == 0:
                raise Problem("exit status 0")
            job.check_one_line(*patterns)
            job.check_gone()
    return f"impossible: -n {ranks} {options}", test


def reported(world):
    cores = first_cores(2)
    hello = (world.programs / "hello",)
    for options, ranks, words in [
            ((), 2, r"soft binding, 1 core: hardware thread {}"),
            (("--bind-to", "core"), 2, r"hard binding, 1 core: hardware thread {}"),
            (("--bind-to", "none"), 2, r"not bound: the user wants no binding"),
            ((), 3, r"not bound: 3 ranks share 2 cores"),
            (("--fabric", "qdr"), 2, r"not bound: the ranks of a modelled machine take turns")]:
        with start(world, cores, ranks, "--report-bindings", *options, program=hello) as job:
            if (code := job.end(60)) != 0:
                raise Problem(f"exit status {code}: {job.err[-500:]}")
            for rank in range(ranks):
                pattern = words.format(cores[rank]) if "{}" in words else words
                job.check_says(rf"(?m)^fishplate: rank {rank} on \S+: {pattern}$")


def several_hosts(world):
    """Each agent binds the ranks of its host."""
    cores = first_cores(2)
    hosts = ["--hosts", "a:2,b:2", "--launch-with", AS_HOST]
    with start(world, cores, 4, *hosts, program=("sh", "-c", "echo ready; exec sleep 60")) as job:
        expect(job, 4, [{cores[0]}, {cores[1]}] * 2, soft(cores))
    with start(world, cores, 4, *hosts, "--bind-to", "core:3", program=("true",)) as job:
        if (code := job.end(20)) == 0:
            raise Problem("exit status 0")
        job.check_says("host [ab]: cannot bind 2 ranks to 3 cores each")
        job.check_gone()


@contextlib.contextmanager
def busy(core: int, count: int = 1):
    """Busy loops on one core."""
    loops = [subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"], start_new_session=True)
             for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            os.killpg(loop.pid, signal.SIGKILL)
            loop.wait()


def released(world):
    """A rank that computes beside a busy loop gets the launcher's cores back."""
    cores = first_cores(2)
    with start(world, cores, 2, "--report-bindings", program=(world.victim, "compute")) as job:
        job.wait_until_ready(2)
        with busy(cores[0], 3):
            job.wait_for("the rank was released", lambda: masks(job)[0] == set(cores), RELEASE_SECONDS)
        job.check_says(r"(?m)^fishplate: rank 0: released from its cores")


def released_on_another_host(world):
    cores = first_cores(2)
    hosts = ["--hosts", "a:2", "--launch-with", AS_HOST]
    with start(world, cores, 2, *hosts, program=(world.victim, "compute")) as job:
        job.wait_until_ready(2)
        with busy(cores[1], 3):
            job.wait_for("the rank was released", lambda: masks(job)[1] == set(cores), RELEASE_SECONDS)


def all_threads_are_released(world):
    """Of the program below a wrapper, too."""
    cores = first_cores(2)
    program = ("sh", "-c", f"{world.programs / 'threads_compute'}; true")
    with start(world, cores, 2, program=program) as job:
        job.wait_until_ready(2)

        def free() -> bool:
            mask = set(cores)
            below = [pid for pid, variables in job.environments() if b"FISHPLATE_RANK=0" in variables]
            found = [os.sched_getaffinity(int(thread)) for pid in below for thread in os.listdir(f"/proc/{pid}/task")]
            return len(found) >= 3 and all(seen == mask for seen in found)
        with busy(cores[0], 3):
            job.wait_for("all threads were released", free, RELEASE_SECONDS)


def own_choice_stays(world):
    """A rank that chose its cores is not released from them, and a hard binding stays; a rank that is released shows that all was
    looked at."""
    cores = first_cores(2)
    choose = f"[ $FISHPLATE_RANK = 1 ] || taskset -pc {cores[1]} $$ >/dev/null; exec {world.victim} compute"
    with start(world, cores, 2, program=("sh", "-c", choose)) as job:
        job.wait_until_ready(2)
        with busy(cores[1], 3):
            job.wait_for("rank 1 was released", lambda: masks(job)[1] == set(cores), RELEASE_SECONDS)
            if masks(job)[0] != {cores[1]}:
                raise Problem(f"rank 0 may use {masks(job)[0]}")


@contextlib.contextmanager
def quota(cores: float):
    """A cgroup that may use so many cores."""
    period = 100_000
    time = str(int(cores * period))
    name = f"fishplate-test-{os.getpid()}"
    one, two = Path("/sys/fs/cgroup/cpu") / name, Path("/sys/fs/cgroup") / name
    group, limits = (one, {"cpu.cfs_period_us": str(period), "cpu.cfs_quota_us": time}) if one.parent.is_dir() else \
                    (two, {"cpu.max": f"{time} {period}"})
    try:
        group.mkdir()
        for file, text in limits.items():
            (group / file).write_text(text)
    except OSError as why:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise Skip(f"no cgroup with a quota can be made here: {why}") from None
    try:
        yield group
    finally:
        # Processes that have ended leave the group a little later.
        for _ in range(1000):
            try:
                group.rmdir()
                break
            except OSError:
                os.sched_yield()


def below_a_quota(world):
    """With a quota of one core two ranks are bound as without one, and the machine's description names it."""
    cores = first_cores(2)
    expected = [{cores[0]}, {cores[1]}]
    for limit in (1.0, 2.0):
        with quota(limit) as group:
            enter = f'echo $$ >{group}/cgroup.procs && exec "$@"'
            command = ["sh", "-c", enter, "sh", *on(cores, world.mpiexec, "-n", 2, world.victim, "wait")]
            with Job(world.work, command) as job:
                job.wait_until_ready(2)
                if (seen := masks(job)) != expected:
                    raise Problem(f"with a quota of {limit:g} cores the ranks may use {seen}")
            command = ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$@"', "sh", world.mpiexec.with_name("fishplate"), "info"]
            said = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout
            if f"{limit:.3f} cores, by a cgroup" not in said:
                raise Problem(f"fishplate info does not name the quota of {limit:g} cores{harness.output(said)}")


def tests() -> list:
    cases = [
        ("each rank gets a core, in two jobs at once", by_itself),
        not_bound("more ranks than cores are not bound", 3),
        not_bound("a single rank is not bound", 1),
        not_bound("--bind-to none", 2, "--bind-to", "none"),
        ("a program in an interpreter is not bound", in_an_interpreter),
        ("quotas of cgroups", below_a_quota),
        hard("--bind-to core", 2, [[0], [1]]),
        hard("-bind-to hwthread -map-by hwthread", 2, [[0], [1]]),
        hard("--bind-to core:overload-allowed", 3, [[0], [1], [0]]),
        hard("--map-by slot:PE=2", 1, [[0, 1]]),
        hard("-cpus-per-proc 2", 1, [[0, 1]]),
        hard("--cpu-set {1}", 2, [[1], [1]]),
        hard("--cpu-set {1} --bind-to core", 1, [[1]]),
        refused("--bind-to core", 3, "cannot bind 3 ranks to 1 core each: there are 2", "--bind-to none"),
        refused("--bind-to core:3", 1, "cannot bind 1 rank to 3 cores each"),
        refused("--cpu-set 65000", 1, "--cpu-set 65000: this job may not use 65000 here"),
        refused("--map-by ppr:1:core", 3, "no place for 3 ranks on 2 cores"),
        ("--report-bindings", reported),
        ("ranks of several hosts", several_hosts),
    ]
    return [(f"binding: {name}", run) for name, run in cases]


def releases() -> list:
    """Tests of releases, which need a scheduler that gives a rank beside busy loops its share of a core."""
    cases = [
        ("a rank that computes beside other work is released", released),
        ("a rank that computes on another host is released", released_on_another_host),
        ("all threads of a rank are released", all_threads_are_released),
        ("a rank's own choice of cores stays", own_choice_stays),
    ]
    return [(f"binding: {name}", run) for name, run in cases]
