"""`fishplate compare` of programs that decide by time: polls between slices, tasks for whoever is free."""

import json
import subprocess

from comparison import compare, without_file
from harness import Problem

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
# A master hands tasks of other lengths, about a millisecond each, to whoever is free.
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
        compute(10 * (20000 + task * 7919 % 13 * 3000));
        MPI_Send(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""


def build(world, name: str, source: str) -> str:
    (world.work / f"{name}.c").write_text(source)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / f"{name}.c", "-o", world.work / name], check=True)
    return name


def slices_between_polls(world):
    """A program that computes in slices with polls between is compared; all recordings have the same completed calls."""
    program, file = build(world, "overlap", OVERLAP), world.work / "overlaps.traces"
    for arguments in (), ("guarded",):
        words = ("--fabrics", "qdr,edr", "--json")
        first, _ = compare(world, *words, "-n", 4, "--record", file, program=program, arguments=arguments)
        again, _ = compare(world, *words, traces=file)
        found = without_file(first)
        if found != without_file(again) or not all(of["aligned"] for of in found["recordings"]) or any("bound" not in row for row in found["rows"]):
            raise Problem(f"the comparison is {first}, then {again}")
        # 1 MiB take about 0.1 to 0.4 ms, and the slices some 0.6 ms: nearly all of it is hidden.
        if found["rows"][0]["shares"]["bandwidth"] > 0.1:
            raise Problem(f"the exchange does not overlap: {found['rows'][0]}")


def tasks_for_whoever_is_free(world):
    """Where other workers are free first, each still does the tasks of the recording; both times, and the difference, are known."""
    program = build(world, "tasks", TASKS)
    out, _ = compare(world, "--fabrics", "qdr,edr,10gbe-tcp", "-n", 4, "--recordings", 1, "--json", program=program, arguments=())
    for row in json.loads(out)["rows"]:
        if "not_replayed" in row or not 0.9 < row["speed_up"] < 1.1 or row["bound"] is None or not row["seconds_with_free_sources"]:
            raise Problem(f"a row is {row}")


def tests() -> list:
    return [
        ("a program that computes between polls is compared", slices_between_polls),
        ("a program whose work goes to whoever is free is compared", tasks_for_whoever_is_free),
    ]
