#!/usr/bin/env python3
"""Build mpi4py against a prefix and run its own suite under the prefix's mpiexec.

    tests/mpi4py/run.py [--prefix build] [--ranks 1,2,4] [--subset ci] [--only MODULE…] [--wheel [ABI]] [--update]

mpi4py's sdist comes from PyPI and is built by the prefix's mpicc into a folder of its own under
build/foreign, once for each header and prefix. mpi4py looks at MPI_ABI_VERSION in mpi.h: where it
is 1 or more, its configuration is src/lib-mpi/config/mpiabi.h, which takes every procedure of
MPI 5.0 for granted and tries none (MPI4PY_BUILD_MPIABI=1 would make every symbol weak instead, for
libraries that lack some; ours exports all, so it stays off). NumPy is left out: the suite then
uses Python's own arrays.

With --wheel PyPI's wheel runs over our libmpi.so.12, MPICH's ABI, as the launcher chooses it, or with --wheel openmpi over our libmpi.so.40,
Open MPI's; nothing is built.

Every test module is a run of its own. A test has failed if it failed on any rank. After a test that
ended differently on different ranks (which may be out of step from then on) the run is started
again without the tests that are done. After a crash or a hang, the first test that was not done on
all ranks is the culprit if no rank was further on; else it is run alone, and then the rest: so one
bad test costs only itself.
Failures because of unsupported procedures are recognised (unsupported.py), others are compared with mpi4py.expected (expected.py).
The last line is `N passed, N failed, N skipped`, where both count as passed, below a table. --update writes the list and the figures
of docs/figures/foreign.md again.
"""

import argparse
import fcntl
import hashlib
import json
import os
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from expected import Expectations, Judge, publish  # noqa: E402
from unsupported import SIGN, Table  # noqa: E402
from versions import MPI4PY  # noqa: E402

SHA256 = "56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02"

# Modules that --subset ci leaves out: those that mostly wait for a rank that met an unsupported procedure, and, on more than one
# rank, those that hardly depend on the number of ranks.
SLOW = {"test_comm_inter", "test_dynproc", "test_ulfm"}
ONCE = {"test_address", "test_ctypes", "test_datatype", "test_doc", "test_mpiapi", "test_package",
        "test_pack", "test_pickle", "test_toplevel", "test_util_dtlib", "test_util_pool"}
# A run in which a rank has just met an unsupported procedure is given up sooner: others may wait for that rank.
IMPATIENT = 0.3  # of --stall


def sdist(cache: Path) -> Path:
    """The sdist, fetched if it is not there, with the hash that was reviewed. Ends the program where it cannot be had."""
    archive = cache / f"mpi4py-{MPI4PY}.tar.gz"
    if not archive.exists():
        cache.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--retries", "2", "--no-deps",
                               "--no-binary", "mpi4py", "-d", cache, f"mpi4py=={MPI4PY}"],
                              capture_output=True, text=True)
        if done.returncode or not archive.exists():
            give_up(done.stderr)
    seen = hashlib.sha256(archive.read_bytes()).hexdigest()
    if seen != SHA256:
        archive.unlink()
        sys.exit(f"{archive.name} from PyPI has SHA-256 {seen}, not {SHA256}: not used")
    return archive


def give_up(why: str) -> None:
    print(tail(why), file=sys.stderr)
    sys.exit(harness.not_run("mpi4py", f"mpi4py {MPI4PY}, or a package that builds it, could not be fetched from PyPI"))


def build(prefix: Path, cache: Path) -> tuple[Path, Path]:
    """The Python of a virtual environment that has mpi4py, and the folder of its tests."""
    archive = sdist(cache)
    key = hashlib.sha256(b"\0".join([MPI4PY.encode(), str(prefix).encode(), sys.version.encode(),
                                     (prefix / "include/mpi.h").read_bytes()])).hexdigest()[:12]
    home = cache / f"mpi4py-{MPI4PY}-{key}"
    python = home / "venv/bin/python"
    source = home / f"mpi4py-{MPI4PY}"
    if not (home / "ready").exists():
        print(f"building mpi4py {MPI4PY} against {prefix} (once)", flush=True)
        home.mkdir(exist_ok=True)
        with tarfile.open(archive) as tar:
            tar.extractall(home, filter="data")
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", source],
                              env=os.environ | {"MPICC": str(prefix / "bin/mpicc"), "CFLAGS": "-O0"},
                              capture_output=True, text=True)
        if "No matching distribution found" in done.stderr:  # of what the sdist is built with
            give_up(done.stderr)
        if done.returncode:
            sys.exit(f"mpi4py does not build against {prefix}:\n{done.stdout}{done.stderr}")
        (home / "ready").touch()
    return python, source / "test"


def install_wheel(cache: Path) -> tuple[Path, Path]:
    """The Python of a virtual environment with PyPI's wheel, built for several ABIs, and the folder of the sdist's tests."""
    archive = sdist(cache)
    home = cache / f"mpi4py-{MPI4PY}-wheel"
    python = home / "venv/bin/python"
    home.mkdir(exist_ok=True)
    lock = os.open(home, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)  # another suite may install it at the same time
    if not (home / "ready").exists():
        with tarfile.open(archive) as tar:
            tar.extractall(home, filter="data")
        subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", f"mpi4py=={MPI4PY}"],
                              capture_output=True, text=True)
        if done.returncode:
            give_up(done.stderr)
        (home / "ready").touch()
    os.close(lock)
    return python, home / f"mpi4py-{MPI4PY}/test"


def read_events(folder: Path, ranks: int) -> list[list[dict]]:
    """The events that each rank wrote, without a last line that was cut short."""
    events = []
    for rank in range(ranks):
        try:
            lines = (folder / f"{rank}.jsonl").read_text().splitlines()
        except FileNotFoundError:
            lines = []
        events.append([])
        for line in lines:
            try:
                events[-1].append(json.loads(line))
            except ValueError:
                break
    return events


def combine(events: list[list[dict]]):
    """From the events of one run: the results that can be trusted, as (name, state, why), then the
    first test that did not end on all ranks, with what the other ranks said of it and whether no
    rank had gone on from it in good order, or None, and whether the run went to its end.
    Nothing is trusted after a test that did not end, or did not end alike, on all ranks."""
    ends = [{e["end"]: e for e in mine if "end" in e} for mine in events]
    starts = [{e["start"] for e in mine if "start" in e} for mine in events]
    order = dict.fromkeys(e.get("start") or e["end"] for mine in events for e in mine
                          if "start" in e or "end" in e)
    results = []
    for name in order:
        states = [end.get(name, {}).get("state") for end in ends]
        whys = {r: end[name]["why"] for r, end in enumerate(ends) if states[r] == "fail"}
        if None in states:
            culprit = (all(name in mine for mine in starts)
                       and all(state in (None, "fail") for state in states))
            return results, (name, [f"rank {r}: {why}" for r, why in whys.items()], culprit), False
        if whys:
            alike = len(whys) == len(states) and len(set(whys.values())) == 1
            results.append((name, "fail", whys[0] if alike else
                            "; ".join(f"rank {r}: {why}" for r, why in whys.items())))
            if len(whys) < len(states):
                return results, None, False
        else:
            results.append((name, "skip" if set(states) == {"skip"} else "pass", ends[0][name]["why"]))
    return results, None, all(any("done" in e for e in mine) for mine in events)


def run_module(context, module: str, ranks: int):
    """Yields (name, state, why) of every test of a module, however many runs that takes."""
    prefix, python, tests, options = context
    environment = {"PYTHONPATH": str(tests)}
    if options.wheel:
        environment["MPI4PY_MPIABI"] = options.wheel
    known: dict[str, tuple] = {}
    everything: list[str] = []
    alone = None
    while True:
        with tempfile.TemporaryDirectory(prefix="mpi4py-") as work:
            folder = Path(work)
            plan = folder / "plan"
            plan.write_text(json.dumps({"done": list(known), "alone": alone}))

            def progress():
                return sum(f.stat().st_size for f in folder.glob("*.jsonl"))

            def patience():
                latest = (f.read_text()[-1000:] for f in folder.glob("*.jsonl"))
                return options.stall * (IMPATIENT if any(SIGN in text for text in latest) else 1)

            ran = harness.launch(
                prefix, ranks, [python, "-P", HERE / "rank.py", work, module, plan],
                env=environment, seconds=patience, progress=progress, cwd=folder,
                options=shlex.split(options.mpiexec_options), mpiexec=tuple(shlex.split(options.mpiexec)))
            events = read_events(folder, ranks)
        what_ended = ("no end" if ran.code is None
                      else f"the run ended with status {ran.code}")
        results, open_test, complete = combine(events)
        everything = everything or next((e["all"] for mine in events for e in mine if "all" in e), [])
        if open_test and (open_test[2] or open_test[0] == alone):
            name, whys, _ = open_test
            results.append((name, "fail", "; ".join([*whys, what_ended])))
            open_test = None
        fresh = [result for result in results if result[0] not in known]
        for name, state, why in fresh:
            known[name] = (state, why)
            yield name, state, why
        if alone:
            alone = None
        elif complete:
            if ran.code != 0:
                yield f"{module}.exit", "fail", f"{what_ended} after all tests: {tail(ran.err)}"
            break
        elif open_test:
            alone = open_test[0]
            continue
        if everything and all(name in known for name in everything):
            break
        if not fresh:  # nothing can be learnt by another try
            yield f"{module}.start", "fail", f"{what_ended}, no test ran: {tail(ran.err)}"
            break
    # Tests of a fixture that failed or was skipped have no result themselves.
    for name in everything:
        if name not in known:
            fixtures = (f"{name.rpartition('.')[0]}.setUpClass", f"{module}.setUpModule")
            owner = next((known[fixture] for fixture in fixtures if fixture in known), None)
            yield (name, *(owner or ("fail", "not reached")))


def tail(text: str) -> str:
    return " | ".join(text.strip().splitlines()[-4:])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--ranks", default="1,2,4", help="numbers of ranks (default 1,2,4)")
    parser.add_argument("--subset", choices=["ci"], help="a part that takes a minute or two")
    parser.add_argument("--only", nargs="+", metavar="MODULE", help="these test modules")
    parser.add_argument("--without", nargs="+", default=[], metavar="MODULE", help="all modules but these")
    parser.add_argument("--stall", type=float, default=20, metavar="S",
                        help="a run without progress for so long is ended (default 20)")
    parser.add_argument("--mpiexec", default="", metavar="WORDS", help="the command of another launcher, before `-n RANKS`")
    parser.add_argument("--mpiexec-options", default="", metavar="WORDS", help="more words for mpiexec, as its hosts")
    parser.add_argument("--expected", type=Path, default=None,
                        help="the list of expected failures (mpi4py.expected, with --wheel mpi4py_wheel.expected or mpi4py_wheel_openmpi.expected); an empty string for none")
    parser.add_argument("--update", action="store_true", help="write the list anew, keep its reasons")
    parser.add_argument("--cache", type=Path, default=harness.ROOT / "build/foreign")
    parser.add_argument("--results", default="mpi4py", metavar="NAME", help="the name under which results are kept (mpi4py)")
    parser.add_argument("--wheel", nargs="?", const="mpich", choices=["mpich", "openmpi"], metavar="ABI",
                        help="PyPI's wheel in place of a build, over our libmpi.so.12 (mpich, which is meant without a name) or libmpi.so.40 (openmpi)")
    parser.add_argument("--build-only", action="store_true", help="build mpi4py, and stop")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line per module")
    options = parser.parse_args()
    if options.expected is None:
        lists = {None: "mpi4py.expected", "mpich": "mpi4py_wheel.expected", "openmpi": "mpi4py_wheel_openmpi.expected"}
        options.expected = HERE / lists[options.wheel]
    complete = not options.only and not options.without and not options.subset and options.ranks == "1,2,4"
    if options.update and not complete:
        parser.error("--update needs a complete run: no --only, no --subset, all of --ranks 1,2,4")
    start = time.monotonic()
    prefix = harness.checked_prefix(options.prefix)
    cache = options.cache.resolve()
    python, tests = install_wheel(cache) if options.wheel else build(prefix, cache)
    if options.build_only:
        return 0
    every = sorted(f.stem for f in tests.glob("test_*.py"))
    modules = options.only or [name for name in every if not (options.subset and name in SLOW)]
    if unknown := (set(modules) | set(options.without)) - set(every):
        parser.error(f"no such test module: {', '.join(sorted(unknown))}")

    modules = [name for name in modules if name not in options.without]
    listed = options.expected if str(options.expected) not in ("", ".") else None
    tally = Judge(Expectations.read(listed), Table())
    for turn, ranks in enumerate(map(int, options.ranks.split(","))):
        for module in modules:
            if options.subset and turn > 0 and module in ONCE:
                continue
            began, before = time.monotonic(), len(tally.wrong)
            for name, state, why in run_module((prefix, python, tests, options), module, ranks):
                tally.add(name, ranks, state, why)
            tally.times.append({"name": f"{module} -n {ranks}", "seconds": round(time.monotonic() - began, 2)})
            if options.verbose:
                print(f"{module} on {ranks}: {time.monotonic() - began:.1f} s", flush=True)
            for line in tally.wrong[before:]:
                print(line, flush=True)
    stale = tally.stale() if complete else []
    print("".join(line + "\n" for line in stale), end="")
    if options.update and listed:
        tally.write(listed)
        if not options.wheel:
            publish("mpi4py", f"mpi4py {MPI4PY}, by the number of ranks:\n\n" + tally.markdown())
    print(tally.table(), end="")
    return tally.close(options.results, stale, start)


if __name__ == "__main__":
    sys.exit(main())
