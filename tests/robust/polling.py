"""`fishplate compare` and replays of programs that decide by time: polls between slices, tasks for whoever is free, other algorithms."""

import json
import re
import subprocess

from comparison import compare
from harness import Problem
from watched import Job

# A ring exchange behind slices of computing, each with a poll of all requests. `guarded`: no poll once all are done.
OVERLAP = """
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
static void compute(int amount) {
    volatile double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
}
int main(int argc, char **argv) {
    int rank, size, bytes = 1 << 20, guarded = argc > 1 && !strcmp(argv[1], "guarded");
    MPI_Request all[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *in = calloc(bytes, 1), *out = calloc(bytes, 1);
    for (int step = 0; step < 12; step++) {
        int done = 0;
        MPI_Irecv(in, bytes, MPI_BYTE, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &all[0]);
        MPI_Isend(out, bytes, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD, &all[1]);
        for (int slice = 0; slice < 16; slice++) {
            compute(20000);
            if (!guarded || !done) MPI_Testall(2, all, &done, MPI_STATUSES_IGNORE);
        }
        if (!guarded || !done) MPI_Waitall(2, all, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
}
"""
# A master hands tasks of other lengths to whoever is free.
TASKS = """
#include <mpi.h>
static void compute(int amount) {
    volatile double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
}
int main(int argc, char **argv) {
    int rank, size, task, tasks = 120;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0) {
        int next = 0;
        for (int worker = 1; worker < size; worker++, next++) MPI_Send(&next, 1, MPI_INT, worker, 0, MPI_COMM_WORLD);
        for (int busy = size - 1; busy; next++) {
            MPI_Recv(&task, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
            int other = next < tasks ? next : -1;
            if (other < 0) busy--;
            MPI_Send(&other, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        }
    } else for (;;) {
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task < 0) break;
        compute(20000 + task * 7919 % 13 * 3000);
        MPI_Send(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""
# Chooses its algorithm by the time of a message: where it is long, other calls with other computing follow.
CHOOSES = """
#include <mpi.h>
static void compute(int amount) {
    volatile double x = 1;
    for (int i = 0; i < amount; i++) x = x * 0.999 + 1;
}
int main(int argc, char **argv) {
    int rank, slow = 0;
    double own = 0, sum, start, least = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 16; round++) {
        start = MPI_Wtime();
        for (int leg = 0; leg < 2 && rank < 2; leg++) {
            if (leg == rank) MPI_Send(&own, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD);
            else MPI_Recv(&sum, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        start = MPI_Wtime() - start;
        if (start < least) least = start;
    }
    /* The least of them: a rank may be interrupted in one. */
    slow = least > 8e-6;
    MPI_Bcast(&slow, 1, MPI_INT, 0, MPI_COMM_WORLD);
    for (int step = 0; step < 30; step++) {
        compute(30000);
        if (slow) MPI_Bcast(&own, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        else MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""


def build(world, name: str, source: str) -> str:
    (world.work / f"{name}.c").write_text(source)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / f"{name}.c", "-o", world.work / name], check=True)
    return name


def computed(world, program: str, fabric: str, how, file, *arguments) -> float:
    """The computing of all ranks in a run with `--compute HOW FILE`, in seconds."""
    summary = world.work / "polling.json"
    words = [world.mpiexec.parent / "fishplate", "run", "-n", 4, "--fabric", fabric, "--summary", f"json={summary}", "--compute", how, file,
             world.work / program, *arguments]
    with Job(world.work, words) as job:
        if (ended := job.end(60)) != 0:
            raise Problem(f"{program} on {fabric}: exit status {ended}: {job.err[-800:]}")
        job.check_gone()
    found = json.loads(summary.read_text())
    if "differences" in found:
        raise Problem(f"{program} on {fabric} makes other calls: {found['differences']}")
    return sum(rank["compute_s"] for rank in found["per_rank"])


def recorded(file) -> float:
    """The computing of all ranks in a recording, in seconds."""
    return sum(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith(("MPI_", "clock_"))) * 1e-9


def slices_between_polls(world):
    """A program that computes in slices with polls between is replayed on machines where messages come sooner or later."""
    program, file = build(world, "overlap", OVERLAP), world.work / "overlap.computing"
    for arguments in (), ("guarded",):
        computed(world, program, "qdr", "record", file, *arguments)
        wanted = recorded(file)
        for fabric in "qdr", "edr", "10gbe-tcp":
            times = {computed(world, program, fabric, "replay", file, *arguments) for _ in range(2)}
            if len(times) != 1 or abs(times.pop() / wanted - 1) > 1e-3:
                raise Problem(f"{arguments} on {fabric} compute for {times}, where {wanted} were recorded")
    kept = world.work / "overlaps.computing"
    words = ("--fabrics", "qdr,edr", "-n", 4, "--json")
    first, _ = compare(world, *words, "--record", kept, program=program, arguments=())
    again, _ = compare(world, *words, "--replay", kept, program=program, arguments=())
    found = json.loads(first)
    if first != again or not all(of["aligned"] for of in found["recordings"]) or any("bound" not in row for row in found["rows"]):
        raise Problem(f"the comparison is {first}, then {again}")
    # 1 MiB take about 0.1 to 0.4 ms, and the slices some 0.6 ms: nearly all of it is hidden.
    if found["rows"][0]["shares"]["bandwidth"] > 0.1:
        raise Problem(f"the exchange does not overlap: {found['rows'][0]}")


def tasks_for_whoever_is_free(world):
    """Where other workers are free first, each does other tasks than in the recording, and little computing is invented."""
    program = build(world, "tasks", TASKS)
    out, _ = compare(world, "--fabrics", "qdr,edr,10gbe-tcp", "-n", 4, "--recordings", 1, "--json", program=program, arguments=())
    for row in json.loads(out)["rows"]:
        if "not_replayed" in row or not 0.9 < row["speed_up"] < 1.1 or row["bound"] is None:
            raise Problem(f"a row is {row}")


def another_algorithm(world):
    """A program that takes another algorithm on another machine is refused there, with rank, call and reason; elsewhere it is compared."""
    program, file = build(world, "chooses", CHOOSES), world.work / "chooses.computing"
    words = ("--fabrics", "edr,fdr,10gbe-tcp", "-n", 4, "--recordings", 1)
    out, _ = compare(world, *words, "--record", file, "--json", program=program, arguments=(), code=1)
    rows = {row["machine"]: row for row in json.loads(out)["rows"]}
    why = rows["10gbe-tcp"].get("not_replayed", "")
    wanted = r"rank \d: its call \d+ is MPI_Bcast, and MPI_Allreduce was recorded there; \d+ % of the recorded computing would be"
    if not re.search(wanted, why) or "not_replayed" in rows["fdr"]:
        raise Problem(f"the rows are {rows}")
    text, _ = compare(world, "--fabrics", "edr,10gbe-tcp", "-n", 4, "--replay", file, program=program, arguments=(), code=1)
    text = " ".join(text.split())
    if "could be compared on edr alone, so nothing is advised" not in text or "10gbe-tcp, 4 ranks: not replayed" not in text:
        raise Problem(text)


def tests() -> list:
    return [
        ("a program that computes between polls is compared", slices_between_polls),
        ("a program whose work goes to whoever is free is compared", tasks_for_whoever_is_free),
        ("a program that chooses its algorithm by time", another_algorithm),
    ]
