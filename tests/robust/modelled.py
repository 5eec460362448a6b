"""Jobs on modelled machines: they end as other jobs do, and a deadlock is reported. Events pictures, traces and reports are complete and
repeat byte for byte."""

import json
import re
import signal
import subprocess
import time

from harness import Problem
from watched import Job

RANKS = 3
# Runs whose reports are compared.
DEADLOCKS = 8


def start(world, *arguments, options=()) -> Job:
    fishplate = world.mpiexec.parent / "fishplate"
    return Job(world.work, [fishplate, "run", "-n", RANKS, "--fabric", "qdr", *options, *arguments])


def deadlock(world):
    """The report names every rank and the call in which it waits."""
    with start(world, world.victim, "wait") as job:
        if job.end() == 0:
            raise Problem("exit status 0")
        job.check_says("deadlock: all ranks wait and nothing is on its way", "MPI_Recv from any tag 4711")
        job.check_gone()


def deadlock_again(world):
    """The report is the same in every run, also where ranks wait for different peers and a core is busy: it names every rank with its
    call, and nothing that differs from run to run, such as a process id or the rank that noticed first."""
    plans = {"wait": [world.victim, "wait"], "rounds": [world.work / "rounds", 1, 8, "and wait"]}
    for name, words in plans.items():
        seen = set()
        for run in range(DEADLOCKS):
            busy = subprocess.Popen(["sh", "-c", "while :; do :; done"]) if run % 2 else None
            try:
                with start(world, *words) as job:
                    code = job.end(10)
                    seen.add((code, job.err))
                    job.check_gone()
            finally:
                if busy:
                    busy.kill()
                    busy.wait()
        if len(seen) != 1:
            raise Problem(f"{name}: {DEADLOCKS} runs gave {len(seen)} reports" + "".join(f"\n{code}: {err.strip()}" for code, err in seen))


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
    """The rank is named after ten seconds; only --timeout ends it."""
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


def rounds(world, *arguments, options=(), ranks=RANKS, fabric="qdr", code=0, program="rounds") -> Job:
    """A finished job: a ring of ranks that compute and print their time at the end."""
    fishplate = world.mpiexec.parent / "fishplate"
    summary = () if "--summary" in options else ("--summary", "none")
    words = [fishplate, "run", "-n", ranks, "--fabric", fabric, *summary, *options, world.work / program, *arguments]
    with Job(world.work, words) as job:
        if (ended := job.end(20)) != code:
            raise Problem(f"exit status {ended}, not {code}: {job.err[-800:]}")
        job.check_gone()
        job.output, job.errors = job.out, job.err
        job.times = dict(map(int_and_float, re.findall(r"^(\d+) ([\d.]+)$", job.output, re.M)))
        return job


def int_and_float(pair) -> tuple[int, float]:
    return int(pair[0]), float(pair[1])


def picos(micros: float) -> int:
    return round(micros * 1_000_000)


def lanes(file) -> dict[str, list[dict]]:
    """The spans of each lane of a trace, in order of time; none begins before the previous one ends."""
    events = json.loads(file.read_text())["traceEvents"]
    hosts = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    names = {event["tid"]: f'{hosts[event["pid"]]}, {event["args"]["name"]}'
             for event in events if event["name"] == "thread_name"}
    found = {name: [] for name in names.values()}
    for event in events:
        if event["ph"] == "X":
            lane = found[names[event["tid"]]]
            event["end"] = picos(event["ts"]) + picos(event["dur"])
            if lane and picos(event["ts"]) < lane[-1]["end"]:
                raise Problem(f"{names[event['tid']]}: {event} begins before {lane[-1]} ends")
            lane.append(event)
    arrows = [{event["id"] for event in events if event["ph"] == end} for end in "sf"]
    if not arrows[1] or not arrows[1] <= arrows[0]:
        raise Problem(f"{len(arrows[0])} arrows begin, {len(arrows[1])} end")
    return found


def record(world):
    """The trace has a lane for each rank and for each direction of bus and link; the work of the processors adds up to the run's times."""
    file, texts = world.work / "trace.json", set()
    for _ in range(2):
        job = rounds(world, 3, 100_000, options=("--trace", file))
        texts.add(file.read_bytes())
    if len(texts) != 1:
        raise Problem("two runs gave different records")
    found = lanes(file)
    parts = ["rank {}: calls", "rank {}: CPU", "rail 0: PCI, memory to HCA", "rail 0: PCI, HCA to memory",
             "rail 0: link, out", "rail 0: link, in"]
    wanted = {f"host {rank}, {part.format(rank)}" for rank in range(RANKS) for part in parts}
    if found.keys() != wanted:
        raise Problem(f"lanes are {sorted(found)}")
    for rank, seconds in job.times.items():
        cpu, calls = found[f"host {rank}, rank {rank}: CPU"], found[f"host {rank}, rank {rank}: calls"]
        busy = sum(picos(span["dur"]) for span in cpu)
        if not picos(cpu[0]["ts"]) + busy == cpu[-1]["end"] == calls[-1]["end"]:
            raise Problem(f"rank {rank} did {busy} ps of something until {cpu[-1]['end']}, its calls end at {calls[-1]['end']}")
        clock = [span for span in calls if span["name"] == "MPI_Wtime"]
        if int(clock[0]["ts"] * 1000) != round(seconds * 1e9):
            raise Problem(f"rank {rank} read {seconds} s at {clock[0]}")
    sent = sum(span["args"]["bytes"] for span in found["host 1, rail 0: link, out"])
    if sent < 3 * 100_000:
        raise Problem(f"{sent} bytes left host 1")


def record_of_a_crowd(world):
    """Also with shared hosts and lost packets, every resource does one thing at a time."""
    file, plan = world.work / "trace.json", world.work / "faults.toml"
    plan.write_text('loss = 0.02\nscatter = "2us"\ntimeout = "100us"\nslow = { host = 1, percent = 300 }\n')
    for way in ("memory", "hca"):
        rounds(world, 4, 20_000, ranks=5, fabric="2xqdr",
               options=("--ppn", 2, "--intra-host", way, "--faults", plan, "--trace", file))
        found = lanes(file)
        for rank in range(5):
            cpu = found[f"host {rank // 2}, rank {rank}: CPU"]
            if picos(cpu[0]["ts"]) + sum(picos(span["dur"]) for span in cpu) != cpu[-1]["end"]:
                raise Problem(f"{way}: there are moments in which rank {rank} did nothing, not even wait")


def record_of_a_deadlock(world):
    """The trace contains the calls that never ended."""
    file = world.work / "trace.json"
    rounds(world, 1, 8, "and wait", options=("--trace", file), code=16)
    found = lanes(file)
    for rank in range(RANKS):
        call, busy = (found[f"host {rank}, rank {rank}: {lane}"][-1] for lane in ("calls", "CPU"))
        if call["name"] != "MPI_Recv" or call["end"] != busy["end"]:
            raise Problem(f"rank {rank} ends with {call} and {busy}")


def record_without_room(world):
    job = rounds(world, options=("--trace", "/dev/full"), code=1)
    if not re.fullmatch(r"fishplate: --trace /dev/full: No space left on device.*\n", job.errors):
        raise Problem(job.errors)


def record_nowhere(world):
    """Told before the job starts."""
    for option in (("--trace", "/nowhere/t.json"), ("--compute", "recorded", "--record", "/nowhere/c.trace")):
        job = rounds(world, options=option, code=2)
        if job.output or len(job.errors.splitlines()) != 1 or "/nowhere/" not in job.errors:
            raise Problem(f"{job.output}{job.errors}")


def computing_left_out(world):
    outputs = {str(sorted(rounds(world, 3, options=options).times.items())) for options in ((), ("--compute", "none"))}
    if len(outputs) != 1:
        raise Problem(f"without the option and with `none` they are {outputs}")


def computing_measured(world):
    """It takes time, and more of it on a larger scale; and is said to differ."""
    times = [max(rounds(world, 3, options=("--compute", how)).times.values())
             for how in ("none", "measured", "measured:1000")]
    if not times[0] < times[1] < times[2]:
        raise Problem(f"times at the end are {times}")
    job = rounds(world, 1, options=("--compute", "measured"))
    if len(job.errors.splitlines()) != 1 or "differ from run to run" not in job.errors:
        raise Problem(job.errors)


def replayed(world, file, *options, fabric="qdr", code=0) -> Job:
    """A finished replay of a trace."""
    with Job(world.work, [world.mpiexec.parent / "fishplate", "run", "--fabric", fabric, *options, file]) as job:
        if (ended := job.end(20)) != code:
            raise Problem(f"exit status {ended}, not {code}: {job.err[-800:]}")
        job.check_gone()
        job.errors = job.err
        return job


def computing_replayed(world):
    """As it was recorded, each time; on another machine too."""
    file, picture, summary = world.work / "rounds.trace", world.work / "trace.json", world.work / "rounds.json"

    def computing(run) -> list:
        return [(rank["compute_s"], rank["mpi_s"]) for rank in json.loads(summary.read_text())["per_rank"]]

    form = ("--summary", f"json={summary}")
    first = computing(rounds(world, 3, options=("--compute", "measured", "--record", file, *form)))
    seen = set()
    for _ in range(2):
        again = computing(replayed(world, file, *form, "--trace", picture))
        if again != first:
            raise Problem(f"recorded {first}, replayed {again}")
        seen.add(picture.read_bytes())
    if len(seen) != 1:
        raise Problem("two replays gave different records")
    shown = [picos(span["dur"]) for name, lane in lanes(picture).items() if name.endswith("CPU")
             for span in lane if span["name"] == "compute"]
    if sum(shown) != sum(round(rank[0] * 1e12) for rank in first):
        raise Problem(f"{first} were recorded and {sum(shown)} ps are shown")
    other = computing(replayed(world, file, *form, fabric="fdr"))
    if [rank[0] for rank in other] != [rank[0] for rank in first] or other == first:
        raise Problem(f"another machine takes {other}, where the first one took {first}")


def damaged_traces(world):
    file, other = world.work / "rounds.trace", world.work / "other.trace"
    rounds(world, 2, options=("--compute", "measured", "--record", file))
    kept = file.read_bytes()

    def check(says, contents, *options):
        other.write_bytes(contents)
        job = replayed(world, other, *options, code=2)
        if not re.search(says, job.errors):
            raise Problem(f"it does not say {says!r}: {job.errors}")

    check("is of 3 ranks", kept, "-n", 4)
    for length in range(20, len(kept), 37):
        check("other.trace: byte [0-9]+: ", kept[:length])
    check("it is of version 8, and this is version 7; record it", kept.replace(b"trace 7", b"trace 8", 1))
    check("computing already: no --compute", kept, "--compute", "measured")
    job = replayed(world, file, "--summary", "none")
    other.write_bytes(2 * kept)
    again = replayed(world, other, "--summary", "none")
    if job.errors or "the first of its 2 recordings is used" not in again.errors:
        raise Problem(f"{job.errors}, {again.errors}")


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
        ("a deadlock is reported in the same words every time", deadlock_again),
        *[rank_dies(where) for where in ("ring", "reduce")],
        ("a rank leaves a modelled machine", rank_leaves),
        ("a rank that spins on a modelled machine", spins),
        ("a modelled machine with faults", faulty_fabric),
        ("a modelled machine is the same again", same_again),
        ("a record of a modelled machine", record),
        ("a record of ranks that share hosts", record_of_a_crowd),
        ("a record of a deadlock", record_of_a_deadlock),
        ("a record that there is no room for", record_without_room),
        ("a record in a folder that there is not", record_nowhere),
        ("computing that takes no time", computing_left_out),
        ("computing that is measured", computing_measured),
        ("computing that is replayed", computing_replayed),
        ("damaged traces", damaged_traces),
        refused("computing that is recorded nowhere", "--fabric", "qdr", "--compute", "recorded", says="--record FILE"),
        refused("computing in a way that there is not", "--fabric", "qdr", "--compute", "guessed", says="measured"),
        refused("computing on a scale that is none", "--fabric", "qdr", "--compute", "measured:-1", says="-1 is not a scale"),
        refused("a record without a modelled machine", "--trace", "t.json", says="--fabric"),
        refused("a fabric that there is not", "--fabric", "qdrr", says="qdr"),
        refused("a fabric's file that there is not", "--fabric", "./nowhere.toml", says="nowhere.toml"),
        refused("a plan of faults that there is not", "--fabric", "qdr", "--faults", "nowhere.toml", says="nowhere.toml"),
        refused("no ranks on a host", "--fabric", "qdr", "--ppn", 0, says="--ppn 0"),
    ]
