"""mpi4py's suite over both hosts: its modules pass there as on one host (tests/mpi4py/run.py).

It is fetched and built before the machine starts. Modules that do not depend on hosts are left out, such as the one that makes
thousands of datatypes and sends none, and modules of unsupported procedures. "Point to point" sends datatypes.
"""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import harness
import rails
import waiting
from harness import Case, Problem
from job import Job

SUITE = Path(__file__).resolve().parent.parent / "mpi4py" / "run.py"
STEADY = Path(__file__).with_name("steady_mpi4py.py")
GROUPS = {
    "point to point": ["test_p2p_buf", "test_p2p_buf_matched", "test_p2p_obj", "test_p2p_obj_matched", "test_msgspec", "test_msgzero",
                       "test_request", "test_status", "test_util_pkl5"],
    "collectives": ["test_cco_buf", "test_cco_vec", "test_cco_obj", "test_op"],
    "nonblocking collectives": ["test_cco_nb_buf", "test_cco_nb_vec", "test_cco_ngh_buf", "test_cco_ngh_obj"],
    "communicators": ["test_comm", "test_comm_topo", "test_group", "test_attributes", "test_errhandler", "test_exceptions",
                      "test_info", "test_objmodel", "test_environ"],
    "threads": ["test_threads", "test_util_sync", "test_util_pool"],
}
# One module of each kind of traffic, for `--short`.
FEW = ["test_p2p_buf_matched", "test_cco_obj", "test_threads"]
# Modules during which a rail breaks.
BROKEN = ["test_p2p_buf_matched", "test_cco_buf"]
# Rails that break and work again under messages: which, and in which ways.
MENDED = [(0, ("cut", "down")), (1, ("pull 0", "mute 1"))]
# One rank and two of each host.
RANKS = (2, 4)
HOSTS = "--hosts 0,1 --launch-with 'on-host {host}'"
# Every module imports Python's library again in each rank, which takes seconds on an emulated processor.
STALL = 60
# The most that a program may take while rails break, in seconds.
LIMIT = 300


def prepare(options) -> str:
    """Builds the suite; returns the reason if it cannot be had."""
    command = [sys.executable, SUITE, "--prefix", options.prefix, "--build-only"]
    done = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode == harness.NOT_RUN:
        return " ".join(done.stderr.split())
    if done.returncode:
        raise Problem(f"mpi4py cannot be built: {done.stderr}")
    return ""


def all_passed(ran: harness.Outcome) -> str:
    """The closing line of a suite that had no failure but the expected ones."""
    counts = re.search(r"^(\d+) passed, 0 failed, \d+ skipped\n\Z", ran.out, re.MULTILINE)
    if ran.code != 0 or not counts or counts[1] == "0":
        raise Problem(f"exit status {ran.code}:\n{ran.out[-3000:]}{ran.err[-1000:]}")
    return counts[0].strip()


def suite(modules: list[str], ranks: int, seconds: float):
    def test(world) -> str:
        return all_passed(world.run(sys.executable, SUITE, "--prefix", world.prefix, "--ranks", ranks, "--stall", STALL,
                                    "--mpiexec-options", HOSTS, "-v", "--only", *modules, seconds=seconds))
    return test


def command_of(module: str):
    def command(world) -> list:
        return [sys.executable, SUITE, "--prefix", world.prefix, "--ranks", 2, "--stall", STALL, "--mpiexec-options",
                HOSTS, "--only", module]
    return command


def python_of(world) -> Path:
    """The Python that has mpi4py."""
    sys.path.append(str(SUITE.parent))
    python, _ = runpy.run_path(str(SUITE))["build"](world.prefix, harness.ROOT / "build/foreign")
    return python


def steady(seconds: float):
    """Starts a program of mpi4py that checks messages for some seconds."""
    def start(world) -> Job:
        return Job(world.launcher(2, python_of(world), "-P", STEADY, seconds), seconds=LIMIT)
    return start


def raises_when_all_break(world) -> None:
    """The exception of a connection that is lost ends the program."""
    with steady(LIMIT)(world) as job:
        job.is_under_way()
        waiting.break_rails(world, "cut")
        code, _, err = job.ends(waiting.ERROR_SECONDS)
    if code == 0 or "MPI.Exception: MPI_ERR_OTHER" not in err:
        raise Problem(f"exit status {code}: {err}")


def has_passed(code: int, out: str, err: str) -> str:
    return "" if code == 0 and re.search(r"^[1-9]\d* passed, 0 failed", out, re.MULTILINE) else f"exit status {code}:\n{out[-3000:]}{err[-1000:]}"


def tests() -> list[Case]:
    few = Case("mpi4py: a few modules -n 2", suite(FEW, 2, 120), short=False)
    broken = [Case(f"mpi4py: rail {rail}, {how}, under {module} -n 2", rails.under(command_of(module), rail, (how,), has_passed, seconds=LIMIT),
                   short=False) for rail, how in rails.BROKEN for module in BROKEN]
    mended = [Case(f"mpi4py: rail {rail} is {' and mended, then '.join(ways)} and mended, under messages",
                   rails.breaks_and_mends(steady(3 * rails.SENDS), rail, ways), short=False) for rail, ways in MENDED]
    cut = Case("mpi4py: all cables are cut under messages", raises_when_all_break, short=False)
    return [few, *(Case(f"mpi4py: {name} -n {ranks}", suite(modules, ranks, 1200), short=False)
                   for ranks in RANKS for name, modules in GROUPS.items()), *broken, *mended, cut]
