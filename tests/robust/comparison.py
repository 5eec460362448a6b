"""`fishplate compare`, and the replay of traces of programs that poll."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

from harness import Problem
from watched import Job

FOUR = "qdr,2xqdr,fdr,edr"
# The end of what a killed command has started, on a busy machine.
LONG = 60
# Each rank writes 4 MiB into a file that must not exist before.
EXCLUSIVE = """
#include <mpi.h>
#include <stdlib.h>
int main(int argc, char **argv) {
    MPI_File file;
    int rank, bytes = 4 << 20;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *data = calloc(bytes, 1);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    MPI_File_open(MPI_COMM_WORLD, "new", MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset)rank * bytes, data, bytes, MPI_BYTE, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
"""


def compare(world, *words, code=0, program="heat", arguments=(96, 6), traces=None, seconds=120):
    """A finished comparison of a program, or of a file with traces: its output and its errors."""
    what = [traces] if traces else [world.work / program, *arguments]
    words = [world.mpiexec.parent / "fishplate", "compare", *words, *what]
    with Job(world.work, words) as job:
        if (ended := job.end(seconds)) != code:
            raise Problem(f"exit status {ended}, not {code}: {job.err[-800:]}")
        job.check_gone()
        return job.out, job.err


def without_file(text: str) -> dict:
    """A comparison as JSON without the file with traces that stands in place of the program."""
    found = json.loads(text)
    found["program"] = found.pop("trace_of") or found["program"]
    return found


def same_record_same_bytes(world):
    """The example on four machines: what the recordings give is the same each time, and complete."""
    file = world.work / "heat.traces"
    first, _ = compare(world, "--fabrics", FOUR, "-n", "4,8", "--record", file, "--json")
    again, _ = compare(world, "--fabrics", FOUR, "--json", traces=file)
    found = without_file(first)
    if found != without_file(again):
        raise Problem("the replays differ from those of the comparison that recorded")
    rows = [(row["machine"], row["ranks"]) for row in found["rows"]]
    if rows != [(machine, ranks) for ranks in (4, 8) for machine in FOUR.split(",")]:
        raise Problem(f"rows are {rows}")
    for row in found["rows"]:
        if not (row["seconds"] > 0 and abs(sum(row["shares"].values()) - 1) < 1e-9):
            raise Problem(f"a row is {row}")
    if found["advice"]["best"] not in FOUR.split(",") or found["advice"]["sensitivity"]["assumptions"] < 10:
        raise Problem(f"the advice is {found['advice']}")
    text, _ = compare(world, "--fabrics", "qdr,fdr", "-n", "8", traces=file)
    if wide := [line for line in text.splitlines()[2:-1] if len(line) > 100]:
        raise Problem(f"lines are wider than 100 columns: {wide}")


def files_on_a_storage(world):
    """A program makes a file that must not exist, in every run, and a machine with a slow storage is bound by it."""
    (world.work / "exclusive.c").write_text(EXCLUSIVE)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", world.work / "exclusive.c", "-o", world.work / "exclusive"], check=True)
    for name, bandwidth in (("slow", "100 MB/s"), ("fast", "100 GB/s")):
        (world.work / f"{name}.toml").write_text(
            f'[system.{name}]\nfrom = "qdr"\nsource = "assumed: for a test"\nstorage = {{ bandwidth = "{bandwidth}", latency = "1 us" }}\n')
    machines = f"{world.work / 'slow.toml'},{world.work / 'fast.toml'},qdr"
    out, _ = compare(world, "--fabrics", machines, "-n", 2, "--json", program="exclusive", arguments=())
    rows = {row["machine"]: row for row in json.loads(out)["rows"]}
    slow, fast, without = rows["slow"], rows["fast"], rows["qdr"]
    # Two ranks write 4 MiB each.
    least = 2 * 4 * (1 << 20) / 100e6
    if slow["bound"] != "storage" or not least < slow["seconds"] < 1.2 * least or slow["shares"]["storage"] < 0.9:
        raise Problem(f"the slow storage: {slow}")
    if not without["seconds"] < fast["seconds"] < slow["seconds"] / 10 or without["shares"]["storage"] != 0:
        raise Problem(f"the fast storage: {fast}, and none: {without}")
    text, _ = compare(world, "--fabrics", machines, "-n", 2, program="exclusive", arguments=())
    if not re.search(r"machine +ranks +start +computing +.* storage", text):
        raise Problem(f"the table of shares has no storage: {text}")


def prices_count(world):
    """A machine with prices: a twice as expensive network loses, although it is faster."""
    def machine(name, base, hca):
        file = world.work / f"{name}.toml"
        parts = ", ".join(["price = \"{}\"", 'source = "assumed: for a test"'])
        file.write_text(f'[system.{name}]\nfrom = "{base}"\n' + "".join(
            f'{part} = {{ {parts.format(price)} }}\n'
            for part, price in (("host", "1000 EUR"), ("hca", hca), ("cable", "50 EUR"), ("switch", "5000 EUR"))))
        return file
    cheap, dear = machine("cheap", "qdr", "100 EUR"), machine("dear", "edr", "30000 EUR")
    out, _ = compare(world, "--fabrics", f"{cheap},{dear}", "-n", 4, "--json")
    found = json.loads(out)
    amounts = [row["price"]["amount"] for row in found["rows"]]
    if amounts != [4 * (1000 + 100 + 50) + 5000, 4 * (1000 + 30000 + 50) + 5000]:
        raise Problem(f"prices are {amounts}")
    advice = found["advice"]
    if (advice["best"], advice["fastest"], advice["by"]) != ("cheap", "dear", "price times time"):
        raise Problem(f"the advice is {advice}")


def threads_count_once(world):
    """Two threads that compute side by side take the time of one of them, and the user hears of it."""
    (world.work / "threads.c").write_text(THREADS)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", "-pthread", world.work / "threads.c", "-o", world.work / "threads"], check=True)
    words = [world.mpiexec.parent / "fishplate", "run", "-n", 1, "--fabric", "qdr", "--compute", "measured", "--summary", "none",
             world.work / "threads"]
    with Job(world.work, words) as job:
        if (ended := job.end(60)) != 0:
            raise Problem(f"exit status {ended}: {job.err[-800:]}")
        job.check_gone()
        all_threads, virtual = map(float, job.out.split())
        said = job.err
    if not 0.3 < virtual / all_threads < 0.8:
        raise Problem(f"two threads computed for {all_threads} s in all, and {virtual} s were charged")
    if "computes with 2 threads side by side" not in said:
        raise Problem(f"the user does not hear of the threads: {said}")


# Two threads compute for 50 ms of processor time each, while the first one sleeps. Then they wait for the end.
THREADS = """
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
static pthread_barrier_t done, end;
static double used(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}
static void *work(void *unused) {
    while (used(CLOCK_THREAD_CPUTIME_ID) < 0.05) {}
    pthread_barrier_wait(&done);
    pthread_barrier_wait(&end);
    return unused;
}
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    double before = used(CLOCK_PROCESS_CPUTIME_ID), start = MPI_Wtime();
    pthread_t threads[2];
    pthread_barrier_init(&done, 0, 3);
    pthread_barrier_init(&end, 0, 3);
    for (int at = 0; at < 2; at++) pthread_create(&threads[at], 0, work, 0);
    pthread_barrier_wait(&done);
    double all = used(CLOCK_PROCESS_CPUTIME_ID) - before;
    printf("%f %f\\n", all, MPI_Wtime() - start);
    pthread_barrier_wait(&end);
    for (int at = 0; at < 2; at++) pthread_join(threads[at], 0);
    MPI_Finalize();
}
"""


def too_few_cores(world):
    """More ranks, or threads of ranks, than a host has cores are an error, whether measured, recorded or replayed."""
    _, errors = compare(world, "--fabrics", "edr,qdr", "-n", 16, "--ppn", 16, code=2)
    if not re.search(r"qdr: 16 ranks on a host that has 8 cores \(host.cores\).*--ppn", errors):
        raise Problem(f"16 ranks on a host of 8 cores: {errors}")
    (world.work / "threads.c").write_text(THREADS)
    subprocess.run([world.mpiexec.parent / "mpicc", "-O1", "-pthread", world.work / "threads.c", "-o", world.work / "threads"], check=True)
    one = world.work / "one-core.toml"
    one.write_text('[system.one]\nfrom = "qdr"\nhost = { cores = 1, source = "assumed: for a test" }\n')
    wanted = r"1 rank with 2 threads each, 2 threads, on a host that has 1 core .*OMP_NUM_THREADS"
    words = [world.mpiexec.parent / "fishplate", "run", "-n", 1, "--fabric", one, "--compute", "measured", world.work / "threads"]
    with Job(world.work, words) as job:
        if job.end(60) == 0 or not re.search("rank 0 computes with threads: " + wanted, job.err):
            raise Problem(f"two threads on one core: {job.err}")
    file = world.work / "threads.traces"
    for words, traces in (("--record", file), None), ((), file):
        _, errors = compare(world, "--fabrics", f"qdr,{one}", "-n", 1, *words, program="threads", arguments=(), traces=traces, code=1)
        if not re.search("one-core.toml: " + wanted, errors):
            raise Problem(f"{words}: {errors}")


def input_and_folders(world):
    """Every run reads the same standard input, and files that the program writes stay out of the user's folder."""
    program = world.work / "reads"
    program.write_text(f"#!/bin/sh\n[ $FISHPLATE_RANK != 0 ] || {{ read size; echo $size >> trace; echo $size >> {world.work}/sizes; }}\n"
                       f"exec {world.work}/heat 48 3\n")
    program.chmod(0o755)
    for old in ("sizes", "trace"):
        (world.work / old).unlink(missing_ok=True)
    before = set(os.listdir(world.work))
    words = [world.mpiexec.parent / "fishplate", "compare", "--fabrics", "qdr", "-n", "2", "--recordings", "3", "--json", program]
    ran = subprocess.run(list(map(str, words)), cwd=world.work, input="48\n", capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode:
        raise Problem(f"exit status {ran.returncode}: {ran.stderr[-800:]}")
    sizes = (world.work / "sizes").read_text().split()
    if sizes != ["48"] * 3:
        raise Problem(f"runs read {sizes}")
    if left := set(os.listdir(world.work)) - before - {"sizes"}:
        raise Problem(f"left in the folder: {left}")
    ran = subprocess.run(list(map(str, [*words[:-1], "--in", ".", program])), cwd=world.work, input="48\n", capture_output=True, text=True,
                         timeout=120, check=False)
    if ran.returncode or (world.work / "trace").read_text().split() != ["48"] * len(sizes):
        raise Problem(f"--in: exit status {ran.returncode}: {ran.stderr[-800:]}")


def disturbed_recordings(world):
    """A rank that is interrupted while it computes, in the first two runs, makes these recordings be made again."""
    (world.work / "interrupted.c").write_text(INTERRUPTED)
    subprocess.run([world.mpiexec.parent / "mpicc", world.work / "interrupted.c", "-o", world.work / "interrupted"], check=True)
    count = world.work / "interrupted.count"
    count.write_text("")
    _, errors = compare(world, "--fabrics", "qdr", "-n", "2", program="interrupted", arguments=(count, 2))
    found = re.search(r"(\d+) recordings of 2 ranks were disturbed \(.*\): (.*)", errors)
    if not found or int(found[1]) < 2 or "made again" not in found[2]:
        raise Problem(f"two of the recordings were disturbed: {errors}")
    # As many as the user wants, and no other ones: they count all the same.
    count.write_text("")
    _, errors = compare(world, "--fabrics", "qdr", "-n", "2", "--recordings", 2, program="interrupted", arguments=(count, 2))
    if "2 recordings of 2 ranks were disturbed" not in errors or "count all the same" not in errors:
        raise Problem(f"both recordings were disturbed: {errors}")


# In the first runs, as many as the second argument says, a child of rank 0 wakes up on its core again and again, until rank 0 has been
# interrupted thirty times while it computes.
INTERRUPTED = """
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
static long interruptions(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
}
int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3 && !rank) {
        FILE *file = fopen(argv[1], "a+");
        fputc('x', file);
        int disturbed = ftell(file) <= atoi(argv[2]);
        fclose(file);
        if (disturbed) {
            long before = interruptions();
            pid_t child = fork();
            while (!child) usleep(50);
            while (interruptions() - before < 30) {}
            kill(child, SIGKILL);
            waitpid(child, 0, 0);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
"""


def paths_above(world):
    """A program and its input by `../`, from a folder below them; what it writes there is gone."""
    folder = world.work / "above" / "runs" / "first"
    folder.mkdir(parents=True, exist_ok=True)
    (world.work / "above" / "size").write_text("48\n")
    program = world.work / "above" / "runs" / "reads"
    program.write_text(f"#!/bin/sh\nread size < ../../size && echo $size > ../out && exec {world.work}/heat $size 3\n")
    program.chmod(0o755)
    before = sorted(path for path in (world.work / "above").rglob("*"))
    words = [world.mpiexec.parent / "fishplate", "compare", "--fabrics", "qdr", "-n", "2", "--recordings", "1", "--json", "../reads"]
    ran = subprocess.run(list(map(str, words)), cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode or json.loads(ran.stdout)["program"] != "../reads":
        raise Problem(f"exit status {ran.returncode}: {ran.stdout[-300:]} {ran.stderr[-800:]}")
    if sorted(path for path in (world.work / "above").rglob("*")) != before:
        raise Problem("the folders above have new files")
    far = "../" * 20 + str(program).lstrip("/")
    (folder / "wrapper").write_text("")
    ran = subprocess.run([*map(str, words[:-1]), far], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if ran.returncode or json.loads(ran.stdout)["program"] != far:
        raise Problem(f"by {far}: exit status {ran.returncode}: {ran.stderr[-800:]}")


def polls(world, *arguments, options, fabric="qdr"):
    words = [world.mpiexec.parent / "fishplate", "run", "-n", 4, "--fabric", fabric, "--summary", "none", *options,
             world.work / "polls", *arguments]
    with Job(world.work, words) as job:
        if (ended := job.end(60)) != 0:
            raise Problem(f"exit status {ended}: {job.err[-800:]}")
        job.check_gone()


def polling_replays(world):
    """The trace of a program that polls takes the same time in each replay, and its choices that time decides otherwise are counted."""
    file, summary = world.work / "polls.trace", world.work / "polls.json"
    polls(world, options=("--compute", "recorded", "--record", file))
    choices = {}
    for fabric in ("qdr", "sdr", "edr"):
        times = set()
        for _ in range(2):
            words = [world.mpiexec.parent / "fishplate", "run", "--fabric", fabric, "--summary", f"json={summary}", file]
            with Job(world.work, words) as job:
                if (ended := job.end(60)) != 0:
                    raise Problem(f"exit status {ended}: {job.err[-800:]}")
            found = json.loads(summary.read_text())
            times.add(found["virtual_s"])
            choices[fabric] = found.get("other_choices", 0)
        if len(times) != 1:
            raise Problem(f"two replays on {fabric} differ: {times}")
    # A test that had found its message waits for it where the message comes later.
    if not choices["sdr"] > choices["qdr"]:
        raise Problem(f"choices that differ from those of the recorded run: {choices}")


def hosts_and_networks(world):
    """A lead is divided between network and hosts where these differ, and in one host there is nothing to divide."""
    # From which iteration on times count depends on the times themselves, and a busy computer records some that are long. So
    # the trace has no computing.
    file = world.work / "hosts.trace"
    words = [world.mpiexec.parent / "fishplate", "run", "-n", 4, "--fabric", "qdr", "--record", file, world.work / "heat", 96, 6]
    with Job(world.work, words) as job:
        if (ended := job.end(60)) != 0:
            raise Problem(f"exit status {ended}: {job.err[-800:]}")

    def compared(*words):
        out, _ = compare(world, *words, "--json", traces=file)
        found = json.loads(out)
        return found, {row["machine"]: row["deciding_seconds"] for row in found["rows"]}

    def differs(one, other):
        # Iterations of the loop count from where on the start is over on all machines of a comparison.
        return abs(one / other - 1) > 0.01

    found, own = compared("--fabrics", "qdr,edr")
    advice = found["advice"]
    exchange = advice["exchange"]
    if [(hosts["of"], hosts["host"]) for hosts in exchange["hosts"]] != [("edr", "haswell"), ("qdr", "nehalem")]:
        raise Problem(f"hosts are {exchange}")
    if not re.search("The network of edr alone gives [0-9]+ % in the hosts of qdr .*; the rest is host and library", advice["sentence"]):
        raise Problem(f"the sentence is {advice['sentence']}")
    # The replays with exchanged parts are those of machines whose hosts are named.
    for host, hosts in zip(("Haswell", "qdr"), exchange["hosts"]):
        one, times = compared("--fabrics", "qdr,edr", "--host", host)
        if differs(times["edr"], hosts["best_network"]) or differs(times["qdr"], hosts["rival_network"]):
            raise Problem(f"with --host {host} {times}, exchanged {exchange}")
        if differs(times[hosts["of"]], own[hosts["of"]]):
            raise Problem(f"{hosts['of']} changes in its own hosts: {times}, {own}")
        if one["advice"]["exchange"] is not None or [machine["host"] for machine in one["machines"]] != [hosts["host"]] * 2:
            raise Problem(f"with --host {host}: {one['machines']}, {one['advice']}")
        if not 1 < times["qdr"] / times["edr"] < own["qdr"] / own["edr"]:
            raise Problem(f"the network has all of the lead: {own}, {times}")
    # One system from another has its hosts, and a changed value of a host parts them.
    if compared("--fabrics", "qdr,2xqdr")[0]["advice"]["exchange"] is not None:
        raise Problem("2xqdr has other hosts than qdr")
    changed, times = compared("--fabrics", "qdr,2xqdr", "--set", "2xqdr=host.poll=900ns", "--set", "cable.length=3m")
    if [machine["set"] for machine in changed["machines"]] != [["cable.length=3m"], ["host.poll=900ns", "cable.length=3m"]]:
        raise Problem(f"changed values are {changed['machines']}")
    if changed["advice"]["exchange"] is None or not times["2xqdr"] > times["qdr"]:
        raise Problem(f"slow hosts of 2xqdr: {changed['advice']}")


def refused(what, *words, says, code=2, **how):
    def test(world):
        _, errors = compare(world, *words, code=code, **how)
        if not re.search(says, errors):
            raise Problem(f"it does not say {says!r}: {errors}")
    return f"a comparison refuses {what}", test


def other_records(world):
    """Traces with other numbers of ranks, damaged ones, and those of two programs."""
    file, other = world.work / "other.traces", world.work / "damaged.traces"
    compare(world, "--fabrics", "qdr", "-n", 2, "--quick", "--record", file)
    _, errors = compare(world, "--fabrics", "qdr", "-n", "2,4", traces=file, code=2)
    if "-n 4: " not in errors or "is of 2 ranks" not in errors:
        raise Problem(errors)
    kept = file.read_bytes()
    for damaged, says in (
        (kept[:-7], "damaged.traces: byte [0-9]+: "),
        (kept + kept[:200], "damaged.traces: recording 2: byte"),
        (kept.replace(b"trace 7", b"trace 2", 1), "it is of version 2, and this is version 7; record it"),
        (kept + kept.replace(b"heat 96 6", b"heat 96 7"), "its traces are of `.*heat 96 6` and of `.*heat 96 7`"),
    ):
        other.write_bytes(damaged)
        _, errors = compare(world, "--fabrics", "qdr", traces=other, code=2)
        if not re.search(says, errors):
            raise Problem(f"it does not say {says!r}: {errors}")


def price_without_currency(world):
    file = world.work / "price.toml"
    file.write_text('[system.mine]\nfrom = "qdr"\nhca = { price = "450" }\n')
    _, errors = compare(world, "--fabrics", file, code=2)
    if not re.search(r'price.toml:3: .*hca.price: "450" is not valid; valid is .*"450 USD"', errors):
        raise Problem(errors)


def ended_by_signals(world):
    """A signal to the command alone, or to a run below it, leaves no process and no folder."""
    words = [world.mpiexec.parent / "fishplate", "compare", "--fabrics", "qdr,edr", "-n", 2, world.work / "heat", 64, 100000]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL):
        for moment in ("the folder", "the ranks"):
            with Job(world.work, words) as job:
                job.wait_for(moment, (lambda: os.listdir("/tmp")) if moment == "the folder" else (lambda: len(job.ranks()) == 2))
                os.kill(job.process.pid, number)
                job.end(LONG)
                job.check_gone(LONG)
    with Job(world.work, words) as job:
        job.wait_for("the ranks", lambda: len(job.ranks()) == 2)
        below = [pid for pid in job.members() if parent(pid) == job.process.pid]
        for pid in below:
            os.kill(pid, signal.SIGKILL)
        if job.end(LONG) != 1:
            raise Problem(f"a run that was killed is not named: {job.err[-500:]}")
        job.check_gone(LONG)


def parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0  # it ended meanwhile


def tests() -> list:
    return [
        ("signals to a comparison leave nothing", ended_by_signals),
        ("a comparison is the same again", same_record_same_bytes),
        ("a comparison with files and a storage", files_on_a_storage),
        ("a comparison with prices", prices_count),
        ("a lead is that of network and hosts", hosts_and_networks),
        ("threads are charged once", threads_count_once),
        ("more threads than cores are refused", too_few_cores),
        ("every run has its input and its folder", input_and_folders),
        ("a program above its folder", paths_above),
        ("a disturbed recording is made again", disturbed_recordings),
        ("a trace of a program that polls is replayed on other machines", polling_replays),
        ("a comparison refuses other records", other_records),
        ("a comparison refuses a price without a currency", price_without_currency),
        refused("a machine that there is not", "--fabrics", "qdr,fdrr", says="did you mean fdr"),
        refused("a host that there is not", "--fabrics", "qdr", "--host", "haswel", says="--host haswel: .* did you mean haswell"),
        refused("a machine that does not fit a host", "--fabrics", "qdr,mpich2-2003", "--host", "haswell",
                says="mpich2-2003 cannot have haswell hosts: .*PCI-X"),
        refused("a changed value that there is not", "--fabrics", "qdr", "--set", "hca.sned=1us", says="did you mean send"),
        refused("a machine named twice", "--fabrics", "qdr,qdr", says="qdr is named twice"),
        refused("more ranks than a machine has room for", "--fabrics", "r610-qdr", "-n", 4, says="back to back"),
        refused("a record that cannot be written", "--fabrics", "qdr", "--record", "/nowhere/record",
                says="--record /nowhere/record: cannot write this file: /nowhere does not exist", code=1),
        refused("a program that there is not", "--fabrics", "qdr", program="nowhere", says="nowhere", code=1),
    ]
