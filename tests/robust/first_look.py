"""`fishplate compare` as its user meets it: what it prints, how long it takes, and what it says is left out."""

import json
import re
import subprocess

from comparison import compare, without_file
from harness import Problem

# Prints as many lines as its argument says, and passes a barrier.
LINES = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int line = 1; !rank && line <= atoi(argv[1]); line++) printf("line %d\\n", line);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
"""
# Asks for MPI_THREAD_MULTIPLE. It has the section by which programs in Go are known.
THREADS = """
#include <mpi.h>
__attribute__((section(".go.buildinfo"), used)) static const char info[] = "made up";
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
"""
# Each rank writes 4 MB into a file and reads 1 MB of it.
FILES = """
#include <mpi.h>
static char data[4000000];
int main(int argc, char **argv) {
    MPI_File file;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_File_open(MPI_COMM_WORLD, "written", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_write_at(file, (MPI_Offset)rank * sizeof data, data, sizeof data, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, (MPI_Offset)rank * sizeof data, data, 1000000, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
}
"""


def build(world, name: str, source: str) -> str:
    (world.work / f"{name}.c").write_text(source)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / f"{name}.c", "-o", world.work / name], check=True)
    return name


def output_once(world):
    """The program's output appears once, a long one without its beginning; a quiet comparison prints its answer alone, and what disturbed
    its recordings: other work of this computer may."""
    program = build(world, "lines", LINES)
    words = ("--fabrics", "qdr,edr", "-n", "2,3", "--recordings", 2)
    _, said = compare(world, *words, program=program, arguments=(3,))
    for line in ("line 1", "line 2", "line 3"):
        if said.splitlines().count(line) != 1:
            raise Problem(f"{line!r} is not there once: {said}")
    if not re.search(r"^fishplate: this takes about \d+ (second|minute)s?", said, re.M):
        raise Problem(f"no estimate of time: {said}")
    _, said = compare(world, *words[:4], "--quick", program=program, arguments=(20,))
    if re.findall(r"line \d+", said) != ["line 18", "line 19", "line 20"] or "first 17 lines" not in said:
        raise Problem(f"a long output: {said}")
    answer, said = compare(world, *words, "-q", program=program, arguments=(20,))
    said = re.sub(r"^fishplate: \d+ recordings? of \d+ ranks (was|were) disturbed .*\n", "", said, flags=re.M)
    if said or "Take" not in answer and "hardly matters" not in answer:
        raise Problem(f"a quiet comparison says {said!r}, and answers {answer!r}")


def quick(world):
    """--quick records the program once and replays it once on each machine; it says what it does not know."""
    program, runs = world.work / "counted", world.work / "runs"
    program.write_text(f"#!/bin/sh\n[ $FISHPLATE_RANK != 0 ] || echo run >> {runs}\nexec {world.work}/heat \"$@\"\n")
    program.chmod(0o755)
    runs.unlink(missing_ok=True)
    words = ("--fabrics", "qdr,fdr,edr", "-n", "2,4", "--quick")
    out, _ = compare(world, *words, "--json", program="counted", arguments=(96, 60))
    found = json.loads(out)
    count = len(runs.read_text().splitlines())
    if count != 2:
        raise Problem(f"the program ran {count} times")
    if "nothing is known about how sure this is" not in found["advice"]["sentence"] or found["advice"]["sensitivity"] is not None:
        raise Problem(f"the advice is {found['advice']}")
    page = world.work / "quick.html"
    text, _ = compare(world, *words, "--report", page, program="counted", arguments=(96, 60))
    if "certainty unknown" not in page.read_text() or "--quick" not in text or "Shares" in text:
        raise Problem(f"page or text do not say that the certainty is unknown: {text}")


def a_recording_is_a_replay(world):
    """A replay of what one recording kept gives the same results."""
    file = world.work / "once.traces"
    words = ("--fabrics", "qdr,edr", "-n", "2,4", "--json")
    first, _ = compare(world, *words, "--recordings", 1, "--record", file)
    again, _ = compare(world, *words, traces=file)
    if without_file(first) != without_file(again):
        raise Problem("the replays differ from those of the comparison that recorded")


def files_take_no_time(world):
    """Bytes of files are named where no machine has a storage, or one has none; a modelled run names them too."""
    program = build(world, "files", FILES)
    with_storage = world.work / "storage.toml"
    with_storage.write_text('[system.one]\nfrom = "edr"\nsource = "assumed: for a test"\nstorage = { bandwidth = "1 GB/s", latency = "1 us" }\n')
    moved = "wrote 8 MB to files and read 2 MB from files, which takes no time: "
    for machines, no_storage in (("qdr,edr", "no machine has a storage"), (f"qdr,{with_storage}", "qdr has no storage"), (with_storage, None)):
        page = world.work / "files.html"
        words = ("--fabrics", machines, "-n", 2, "--quick", "--report", page)
        out, _ = compare(world, *words, "--json", program=program, arguments=())
        remarks = " ".join(json.loads(out)["remarks"])
        if (no_storage is not None) != (moved in remarks) or no_storage and moved + no_storage not in remarks:
            raise Problem(f"{machines}: the remarks are {remarks}")
        if no_storage and no_storage not in page.read_text():
            raise Problem(f"{machines}: the page does not say so")
    ran = subprocess.run([world.mpiexec.parent / "fishplate", "run", "-n", "2", "--fabric", "qdr", world.work / program], cwd=world.work,
                         capture_output=True, text=True, timeout=60, check=True)
    if not re.search(r"left out +The program wrote 8 MB", ran.stderr):
        raise Problem(f"the summary of a run: {ran.stderr}")


def left_out(world):
    """A thread level that is not granted, and clocks that stay real, are remarks."""
    program = build(world, "threads_and_clocks", THREADS)
    words = ("--fabrics", "qdr", "-n", 2, "--quick", "--json")
    out, _ = compare(world, *words, program=program, arguments=())
    remarks = " ".join(json.loads(out)["remarks"])
    for wanted in ("asked for MPI_THREAD_MULTIPLE", "own clocks show this computer's time: Go reads them"):
        if wanted not in remarks:
            raise Problem(f"{wanted!r} is missing: {remarks}")
    out, _ = compare(world, *words, "--real-clocks", program=program, arguments=())
    if "clocks" in " ".join(json.loads(out)["remarks"]):
        raise Problem(f"clocks that shall be real are a remark: {out}")


def no_mpi(world):
    """A program without MPI ends the comparison after its first run, with the reason."""
    _, said = compare(world, "--fabrics", "qdr,edr", "-n", 2, program="/bin/ls", arguments=("/",), code=1)
    if "`/bin/ls` made no MPI call" not in said or "none of the machines" in said:
        raise Problem(said)


def tests() -> list:
    return [
        ("a comparison shows the program's output once", output_once),
        ("a quick comparison", quick),
        ("a recording is a replay of itself", a_recording_is_a_replay),
        ("files that take no time are named", files_take_no_time),
        ("what modelled machines leave out is named", left_out),
        ("a comparison of a program without MPI", no_mpi),
    ]
