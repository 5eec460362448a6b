"""Summaries of jobs: exact figures of a scripted program, equal in every run; and what killed ranks leave."""

import json
import re

from harness import Problem
from hosts import AS_HOST
from watched import Job
from modelled import RANKS, lanes, picos, rounds

ROUNDS, BYTES = 5, 200


def same(what: str, found, wanted) -> None:
    if found != wanted:
        raise Problem(f"{what}: {found}, not {wanted}")


def summary(world, *options, fabric="qdr") -> tuple[Job, dict]:
    """The summary of a ring of ranks as JSON."""
    file = world.work / "summary.json"
    job = rounds(world, ROUNDS, BYTES, options=("--summary", f"json={file}", *options), fabric=fabric)
    return job, json.loads(file.read_text())


def exact(world):
    """Messages and calls are those of the program; times are those of the trace, to the picosecond."""
    trace = world.work / "trace.json"
    _, found = summary(world, "--trace", trace)
    messages = RANKS * ROUNDS
    same("messages", found["messages"], {
        "count": messages, "bytes": messages * BYTES, "by_size": [{"up_to": 256, "count": messages, "bytes": messages * BYTES}]})
    same("the matrix", found["matrix"], [[rank, (rank + 1) % RANKS, ROUNDS, ROUNDS * BYTES] for rank in range(RANKS)])
    same("the job", [found[key] for key in ("ranks", "ranks_per_host", "fabric", "partial")], [RANKS, 1, "qdr", False])
    procedures = {row["name"]: row for row in found["procedures"]}
    same("MPI_Sendrecv", [procedures["MPI_Sendrecv"][key] for key in ("calls", "bytes")], [messages, messages * BYTES])
    for name in ("MPI_Init", "MPI_Comm_rank", "MPI_Wtime", "MPI_Finalize"):
        same(name, [procedures[name][key] for key in ("calls", "bytes")], [RANKS, 0])
    shown = lanes(trace)
    calls = [span for name, lane in shown.items() if name.endswith("calls") for span in lane]
    for name, row in procedures.items():
        spans = sum(picos(span["dur"]) for span in calls if span["name"] == name)
        # The trace begins when MPI has started.
        if name != "MPI_Init":
            same(f"the time in {name}", round(row["seconds"] * 1e12), spans)
    for rank in found["per_rank"]:
        cpu = shown[f"host {rank['rank']}, rank {rank['rank']}: CPU"]
        waits = sum(picos(span["dur"]) for span in cpu if span["name"] == "wait")
        same(f"the waiting of rank {rank['rank']}", round(rank["wait_s"] * 1e12), waits)
    same("the end", round(found["virtual_s"] * 1e12), max(span["end"] for span in calls))
    busy = {(row["name"], row["host"]): round(row["busy_s"] * 1e12) for row in found["resources"]}
    for name, lane in shown.items():
        host, part = name.split(", ", 1)
        if part == "rail 0: link, out":
            same(name, busy["link out", int(host[5:])], sum(picos(span["dur"]) for span in lane))


def again(world):
    """Equal in every run but for the time on this computer, and with or without it the program takes the same time."""
    seen, times = set(), [rounds(world, ROUNDS, BYTES).times]
    for _ in range(3):
        job, found = summary(world)
        times.append(job.times)
        del found["wall_s"]
        seen.add(json.dumps(found))
    if len(seen) != 1:
        raise Problem("three runs gave different summaries:\n" + "\n".join(seen))
    if any(other != times[0] for other in times):
        raise Problem(f"with summaries the program takes another time: {times}")


def computing(world):
    """Recorded computing is the time outside MPI, in the run and in its replay."""
    file, replay = world.work / "rounds.trace", world.work / "replay.json"
    _, found = summary(world, "--compute", "measured", "--record", file)
    with Job(world.work, [world.mpiexec.parent / "fishplate", "run", "--fabric", "qdr", "--summary", f"json={replay}", file]) as job:
        same("the replay's exit status", job.end(20), 0)
    same("times of the ranks", json.loads(replay.read_text())["per_rank"], found["per_rank"])
    for rank in found["per_rank"]:
        if not 0 < rank["compute_s"] < rank["compute_s"] + rank["mpi_s"] <= found["virtual_s"] * (1 + 1e-12):
            raise Problem(f"{rank} of {found['virtual_s']} s")


def as_text(world):
    """The default on a modelled machine: a few lines, after a job that has not failed."""
    fishplate = world.mpiexec.parent / "fishplate"
    for code, arguments in ((0, ()), (1, (8, "and wait"))):
        with Job(world.work, [fishplate, "run", "-n", RANKS, "--fabric", "qdr", world.work / "rounds", ROUNDS, *arguments]) as job:
            if (job.end(20) != 0) != bool(code):
                raise Problem(job.err)
            job.check_gone()
            lines = job.err.splitlines()
        title = f"fishplate: {RANKS} ranks on qdr, 1 a host"
        if code and title in lines:
            raise Problem(f"a job that failed has a summary: {job.err}")
        if not code and (lines[0] != title or len(lines) > 15 or max(map(len, lines)) > 80):
            raise Problem(f"{len(lines)} lines: {job.err}")


def killed(world):
    """On this machine a killed rank leaves what it has counted."""
    file = world.work / "profile.json"
    with Job(world.work, [world.mpiexec, "-n", RANKS, f"--profile={file}", world.victim, "ring"]) as job:
        job.wait_until_ready(RANKS)
        job.kill(1)
        if (code := job.end()) != 137:
            raise Problem(f"exit status {code}")
        job.check_gone()
    found = json.loads(file.read_text())
    same("partial", found["partial"], True)
    same("the ranks", [rank["rank"] for rank in found["per_rank"]], list(range(RANKS)))
    if found["virtual_s"] is not None or found["resources"] or not found["messages"]["count"]:
        raise Problem(f"{found}")
    if not any(row[0] == 1 for row in found["matrix"]):
        raise Problem(f"nothing of the killed rank: {found['matrix']}")


def on_another_host(world):
    """Ranks that an agent has started count for the same profile, killed or not."""
    for mode, kill in (("leave", False), ("ring", True)):
        file = world.work / "profile.json"
        words = (mode, 0) if mode == "leave" else (mode,)
        program = [world.victim, *words] if kill else [world.work / "rounds", ROUNDS, BYTES]
        with Job(world.work, [world.mpiexec, "-n", RANKS, "--hosts", f"a:{RANKS}", "--launch-with", AS_HOST,
                              f"--profile={file}", *program]) as job:
            if kill:
                job.wait_until_ready(RANKS)
                job.kill(1)
            code = job.end(20)
            if code != (137 if kill else 0):
                raise Problem(f"exit status {code}: {job.err}")
            job.check_gone()
        found = json.loads(file.read_text())
        same("partial", found["partial"], kill)
        same("the ranks", [rank["rank"] for rank in found["per_rank"]], list(range(RANKS)))
        if not kill:
            same("the matrix", found["matrix"],
                 [[rank, (rank + 1) % RANKS, ROUNDS, ROUNDS * BYTES] for rank in range(RANKS)])


def without_room(world):
    job = rounds(world, options=("--summary", "json=/dev/full"), code=1)
    if not re.fullmatch(r"fishplate: --summary json /dev/full: No space left on device.*\n", job.errors):
        raise Problem(job.errors)


def tests() -> list:
    return [
        ("a summary of a modelled machine", exact),
        ("a summary is the same again", again),
        ("a summary of a program that computes", computing),
        ("a summary as text", as_text),
        ("a profile of a rank that is killed", killed),
        ("a profile of ranks on another host", on_another_host),
        ("a summary that there is no room for", without_room),
    ]
