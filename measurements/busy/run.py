#!/usr/bin/env python3
"""Measures a ping-pong of 8 bytes beside busy loops, libraries in turn.

    measurements/busy/run.py [--prefix build] [--against PREFIX,PREFIX...] [--loops 0,1,2,4] [--compute 0] [--runs 9] [--own-session] [--jobs 1]
                      [--quota CORES]

A prefix has lib/libmpi_abi.so.1 and bin/mpiexec.hydra or bin/mpiexec. Each line has, in µs, the median over the runs of the mean, of
the 99th percentile and of the longest half round trip. `--jobs 2` runs two jobs at once. `--quota 1` puts them into a control group
with the processor time of one core; a column more has the share of its periods that were cut short. It is a measurement and belongs to
no suite.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))
import harness  # noqa: E402

SECONDS = 1.0
# Time limit of one run.
PATIENCE = 120


def launcher(prefix: Path) -> Path:
    names = [prefix / "bin" / name for name in ("mpiexec.hydra", "mpiexec")]
    found = [name for name in names if name.exists()]
    if not found:
        sys.exit(f"{prefix}/bin has no mpiexec.hydra and no mpiexec")
    return found[0]


@contextlib.contextmanager
def loops(count: int, own_session: bool):
    """Busy loops in the session of the jobs, or in one of their own."""
    command = [sys.executable, "-c", "while True: pass"]
    running = [subprocess.Popen(command, start_new_session=own_session) for _ in range(count)]
    time.sleep(0.3 if running else 0)
    try:
        yield
    finally:
        for loop in running:
            loop.kill()
            loop.wait()


# The period of a quota, in µs.
PERIOD = 100_000


class Group:
    """A control group, of version 1 or 2, with the processor time of this number of cores."""

    def __init__(self, cores: float):
        v1, v2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
        self.folder = (v1 if v1.is_dir() else v2) / f"fishplate-busy-{os.getpid()}"
        self.folder.mkdir()
        quota = int(cores * PERIOD)
        if v1.is_dir():
            (self.folder / "cpu.cfs_period_us").write_text(f"{PERIOD}")
            (self.folder / "cpu.cfs_quota_us").write_text(f"{quota}")
        else:
            (self.folder / "cpu.max").write_text(f"{quota} {PERIOD}")

    def enter(self) -> None:
        """Called in a child process before its program."""
        (self.folder / "cgroup.procs").write_text(f"{os.getpid()}")

    def periods(self) -> tuple[int, int]:
        """All periods so far, and those that were cut short."""
        found = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(found["nr_periods"]), int(found["nr_throttled"])

    def remove(self) -> None:
        self.folder.rmdir()


def one_run(prefix: Path, program: Path, compute: float, jobs: int, group: Group | None) -> list[float]:
    """Mean, 99th percentile and maximum: the worst of the jobs that run at once. The share of a group's periods that were cut short."""
    env = dict(os.environ, LD_LIBRARY_PATH=str(prefix / "lib"))
    command = [launcher(prefix), "-n", "2", program, str(SECONDS), str(compute)]
    before = group.periods() if group else (0, 0)
    started = [subprocess.Popen(list(map(str, command)), env=env, stdout=subprocess.PIPE, text=True, preexec_fn=group and group.enter)
               for _ in range(jobs)]
    found = []
    for job in started:
        out, _ = job.communicate(timeout=PATIENCE)
        if job.returncode:
            sys.exit(f"{command[0]} ended with {job.returncode}")
        mean, _, high, most = map(float, out.split())
        found.append([mean, high, most])
    after = group.periods() if group else (0, 0)
    return [max(column) for column in zip(*found)] + [(after[1] - before[1]) / max(after[0] - before[0], 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--prefix", type=Path, default=harness.ROOT / "build")
    parser.add_argument("--against", default="")
    parser.add_argument("--loops", default="0,1,2,4")
    parser.add_argument("--compute", type=float, default=0, help="microseconds of computing before each exchange")
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--own-session", action="store_true", help="the loops run in a session of their own")
    parser.add_argument("--jobs", type=int, default=1, help="jobs at once")
    parser.add_argument("--quota", type=float, help="cores whose time the jobs have")
    given = parser.parse_args()
    prefixes = [given.prefix.resolve(), *(Path(name).resolve() for name in given.against.split(",") if name)]
    program = given.prefix.resolve() / "tests" / "pingpong"
    program.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([given.prefix.resolve() / "bin/mpicc", "-O2", "-o", program, HERE / "pingpong.c"], check=True)
    group = Group(given.quota) if given.quota else None
    try:
        table(given, prefixes, program, group)
    finally:
        if group:
            group.remove()


def table(given, prefixes: list[Path], program: Path, group: Group | None) -> None:
    print(f"computing {given.compute:g} µs, {given.jobs} job(s), {given.runs} runs, load {os.getloadavg()[0]:.1f}")
    print(f"{'loops':>5}  {'library':20}  {'mean':>10}  {'p99':>10}  {'longest':>10}  {'least mean':>10}  {'most mean':>10}"
          + ("  cut short" if group else ""))
    for count in map(int, given.loops.split(",")):
        runs = {prefix: [] for prefix in prefixes}
        for _ in range(given.runs):
            for prefix in prefixes:
                with loops(count, given.own_session):
                    runs[prefix].append(one_run(prefix, program, given.compute, given.jobs, group))
        for prefix, found in runs.items():
            means = [run[0] for run in found]
            middle = [statistics.median(column) for column in zip(*found)]
            figures = [*middle[:3], min(means), max(means)]
            share = f"  {middle[3]:8.0%}" if group else ""
            print(f"{count:5}  {prefix.name:20}  " + "  ".join(f"{figure:10.3f}" for figure in figures) + share, flush=True)


if __name__ == "__main__":
    main()
