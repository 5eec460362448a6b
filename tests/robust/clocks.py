"""The system's clocks on modelled machines: they show virtual time, and sleeps and deadlines follow it."""

import json
import platform
import re
import subprocess
import sys

from harness import Problem, Skip
from watched import Job

MESSAGE_SPANS = ("REALTIME", "MONOTONIC", "MONOTONIC_RAW", "REALTIME_COARSE", "MONOTONIC_COARSE", "BOOTTIME", "TAI", "timespec_get")
# The date at which virtual time starts: 1 January 2020.
DATE = 1577836800
# Between the readings of two clocks, each of which takes a little virtual time.
READINGS_NS = 1000


def run(world, *words, options=(), env=None, code=0):
    command = [world.mpiexec.parent / "fishplate", "run", "-n", 2, "--fabric", "qdr", "--summary", "none", *options, *words]
    with Job(world.work, command, env=env) as job:
        if (ended := job.end(60)) != code:
            raise Problem(f"exit status {ended}, not {code}: {job.err[-800:]}")
        job.check_gone()
        return job.out, job.err


def spans(text: str) -> dict:
    return {name: int(number) for name, number in re.findall(r"^(\w+) (-?\d+)$", text, re.MULTILINE)}


def all_clocks(world):
    """Every clock shows the virtual time of messages, the same in each run."""
    outputs = {run(world, world.work / "clocks")[0] for _ in range(3)}
    if len(outputs) != 1:
        raise Problem(f"three runs print different times: {outputs}")
    found = spans(outputs.pop())
    whole = found["MPI_Wtime"]
    for name in MESSAGE_SPANS:
        if not whole - READINGS_NS <= found[name] <= whole:
            raise Problem(f"{name} takes {found[name]} ns where MPI_Wtime takes {whole}")
    if abs(found["gettimeofday"] - whole) > READINGS_NS + 1000 or found["date"] != DATE or found["whole"] < whole:
        raise Problem(f"the times are {found}")


def waits(world):
    """Sleeps and deadlines pass in virtual time, also in another thread; processor time stays real, and a child has a clock."""
    for options in ((), ("--compute", "measured")):
        found = spans(run(world, world.work / "clocks", "waits", options=options)[0])
        # Ten waits of 2 ms, and the readings between them.
        most = 20_000_000 + 100 * READINGS_NS if not options else found["whole"]
        if found["whole"] < found["MPI_Wtime"] + found["deadlines"] or not 20_000_000 <= found["deadlines"] <= most:
            raise Problem(f"with {options} the times are {found}")


def polling_ends(world):
    """A program that works until its clock has advanced ends, with the same number of readings each time."""
    outputs = {run(world, world.work / "clocks", "polls")[0] for _ in range(2)}
    if len(outputs) != 1 or not spans(outputs.pop())["readings"] > 10:
        raise Problem(f"two runs print {outputs}")


def replays(world):
    """Readings and sleeps are a part of a trace: a replay is the same again, on another machine too, and sleeps are not counted twice."""
    file, summary = world.work / "clocks.trace", world.work / "clocks.json"
    form = ("--summary", f"json={summary}")

    def replayed(*options) -> dict:
        words = [world.mpiexec.parent / "fishplate", "run", "--fabric", "qdr", *form, *options, file]
        with Job(world.work, words) as job:
            if (ended := job.end(60)) != 0:
                raise Problem(f"exit status {ended}: {job.err[-800:]}")
        return json.loads(summary.read_text())

    measured = ("--compute", "measured", "--record", file)
    run(world, world.work / "clocks", "polls", options=measured)
    for change in ((), ("--set", "hca.send=900ns")):
        times = {replayed(*change)["virtual_s"] for _ in range(2)}
        if len(times) != 1:
            raise Problem(f"two replays differ: {times}")
    (world.work / "sleeps.c").write_text(SLEEPS)
    subprocess.run([world.mpiexec.parent / "mpicc", world.work / "sleeps.c", "-o", world.work / "sleeps"], check=True)
    found = spans(run(world, world.work / "sleeps", options=measured)[0])
    slept = replayed()["per_rank"][0]["compute_s"]
    # A computer that computes for 10 ms between these calls would be a slow one.
    if not 30_000_000 <= found["slept"] < 40_000_000 or not 30e-3 <= slept < 40e-3:
        raise Problem(f"three sleeps of 10 ms took {found} ns, and {slept} s in a replay")


def counter(world):
    """The processor's counter follows virtual time where computing takes time, and nothing else changes for the program."""
    if platform.machine() != "x86_64":
        raise Skip("only x86-64 has this counter")
    found = spans(run(world, world.work / "counter", options=("--compute", "measured"))[0])
    if not 0 < found["MPI_Wtime"] <= found["counter"]:
        raise Problem(f"it prints {found}")


SLEEPS = """
#include <mpi.h>
#include <stdio.h>
#include <time.h>
int main(int argc, char **argv) {
    int rank;
    struct timespec span = {0, 10000000};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double start = MPI_Wtime();
    for (int at = 0; at < 3; at++) nanosleep(&span, 0);
    if (!rank) printf("slept %.0f\\n", (MPI_Wtime() - start) * 1e9);
    MPI_Finalize();
}
"""


PASSED = """
#include <mpi.h>
#include <stdio.h>
extern void fishplate_pass(unsigned long long nanos) __attribute__((weak));
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double start = MPI_Wtime();
    if (fishplate_pass) fishplate_pass(3600000000000ull);
    printf("%.0f\\n", MPI_Wtime() - start);
    MPI_Finalize();
}
"""


def passes(world):
    """A program lets an hour of virtual time pass in no real time."""
    (world.work / "passed.c").write_text(PASSED)
    subprocess.run([world.mpiexec.parent / "mpicc", world.work / "passed.c", "-o", world.work / "passed"], check=True)
    out, _ = run(world, world.work / "passed")
    if out.split() != ["3600"] * 2:
        raise Problem(f"it prints {out}")


def compared(world):
    """A compared program that times itself prints modelled times."""
    direct = spans(run(world, world.work / "clocks")[0])
    # A comparison shows the last lines of the first run alone, so that one writes all into a file.
    program, printed = world.work / "clocks-written", world.work / "clocks.printed"
    printed.unlink(missing_ok=True)
    program.write_text(f"#!/bin/sh\n[ $FISHPLATE_RANK != 0 ] || [ -e {printed} ] || exec {world.work}/clocks > {printed}\nexec {world.work}/clocks\n")
    program.chmod(0o755)
    words = [world.mpiexec.parent / "fishplate", "compare", "--fabrics", "qdr", "-n", 2, "--recordings", 1, program]
    with Job(world.work, words) as job:
        if (ended := job.end(120)) != 0:
            raise Problem(f"exit status {ended}: {job.err[-800:]}")
        found = spans(printed.read_text())
    # Computing between the messages adds to their time.
    if not direct["MONOTONIC"] - READINGS_NS <= found["MONOTONIC"] <= found["MPI_Wtime"] or found["date"] != DATE:
        raise Problem(f"it prints {found}; a run without computing {direct}")


def switch(world):
    """With --real-clocks, and on real hosts, clocks are those of this computer."""
    if spans(run(world, world.work / "clocks", options=("--real-clocks",))[0])["date"] <= DATE:
        raise Problem("--real-clocks shows a date of virtual time")
    with Job(world.work, [world.mpiexec, "-n", 2, world.work / "clocks"]) as job:
        if job.end(60) != 0 or spans(job.out)["date"] <= DATE:
            raise Problem(f"on real hosts: {job.out} {job.err}")


def other_programs(world):
    """Programs without MPI have a date too, and their waits end."""
    out, _ = run(world, "sh", "-c", "date -u +%F; sleep 0.05; timeout 0.1 sleep 100; echo $?")
    if sorted(out.split()) != sorted(["2020-01-01", "124"] * 2):
        raise Problem(f"they print {out}")
    script = "import time; a = time.monotonic(); t = time.time()\nwhile time.monotonic() - a < 0.2: pass\nprint(f'{int(t)}\\n', end='')"
    out, _ = run(world, sys.executable, "-c", script)
    if out.split() != [str(DATE)] * 2:
        raise Problem(f"python prints {out}")


def users_preload(world):
    """The user's LD_PRELOAD stays, before the library of the clocks."""
    library = world.work / "libuser.so"
    subprocess.run(["cc", "-x", "c", "-", "-shared", "-fPIC", "-o", library], input="int user;\n", text=True, check=True)
    script = ["sh", "-c", "echo $LD_PRELOAD"]
    own = (world.mpiexec.parent.parent / "lib/libfishplate_clock.so").resolve()
    for env, options, wanted in (
        ({"LD_PRELOAD": str(library)}, (), f"{library}:{own}"),
        ({"LD_PRELOAD": ""}, ("-x", f"LD_PRELOAD={library}"), f"{library}:{own}"),
        ({"LD_PRELOAD": ""}, (), str(own)),
        ({"LD_PRELOAD": str(library)}, ("--real-clocks",), str(library)),
    ):
        out, _ = run(world, *script, options=options, env=env)
        if out.split() != [wanted] * 2:
            raise Problem(f"with {env} and {options} LD_PRELOAD is {out}, not {wanted}")


def tests() -> list:
    return [
        ("all clocks show virtual time", all_clocks),
        ("sleeps and deadlines follow virtual time", waits),
        ("time passes without sleep", passes),
        ("a program that polls a clock ends", polling_ends),
        ("readings of clocks are replayed", replays),
        ("the processor's counter follows virtual time", counter),
        ("a compared program prints modelled times", compared),
        ("clocks can stay real", switch),
        ("programs without MPI have clocks", other_programs),
        ("the user's LD_PRELOAD stays", users_preload),
    ]
