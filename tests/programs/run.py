#!/usr/bin/env python3
"""Builds the C programs of this folder with a prefix's mpicc and runs each under its mpiexec.

    tests/programs/run.py [--prefix build] [--only SUBSTRING] [--through COMMAND] [--list]

The table below gives the numbers of ranks and the expected outcome of every program. A program that succeeds exits with 0 on every
rank and prints ` ok` once. A row of a program that is meant to fail gives its exit code and what its standard error must contain.
A run that exceeds its time limit is ended, with every process that it started, and fails.
The last line is `N passed, N failed, N skipped`; the exit status is 1 when something failed.
"""

import argparse
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

# Time limit of a run whose row names none.
SECONDS = 60

# Program, numbers of ranks, and what differs from the usual: args, options (of mpiexec), code (None: any but 0), says (patterns that standard error must
# match), silent (True: no ` ok` is expected), seconds (time limit), env, and mpich (why MPICH 5.0.2 fails; skipped under --peer).
TABLE = [
    ("hello", [1, 2, 4], {}),
    ("send_modes", [2, 3], {"seconds": 120}),
    ("nonblocking", [1, 2, 3], {}),
    ("persistent", [1, 2, 3], {}),
    ("probe", [1, 2, 3], {}),
    ("cancel", [1, 2, 3], {}),
    ("bsend", [1, 2, 3], {}),
    ("truncate", [1, 2], {}),
    ("sendrecv", [1, 2, 3], {}),
    ("self", [1, 2], {}),
    ("ordering", [2], {}),
    ("full_rings", [2, 4], {}),
    ("room", [2, 3], {"mpich": "ranks that wait do not sleep"}),
    ("flood", [2], {"seconds": 120}),
    # Where reads are forced, every message is read that can be; one row has a message that nobody receives.
    ("shared_sends", [2, 3], {}),
    ("shared_sends", [2, 3], {"env": {"FISHPLATE_PROTOCOL": "read-rendezvous"}}),
    ("shared_sends", [2], {"args": ["unreceived"], "env": {"FISHPLATE_PROTOCOL": "read-rendezvous"},
                           "mpich": "it waits for the receive of such a message"}),
    ("shared_sends", [2], {"env": {"FISHPLATE_SINGLE_COPY": "off"}}),
    # The system refuses reads on both sides, on one, and after some thousands of messages.
    *(("shared_sends", [2], {"args": args, "env": {"FISHPLATE_PROTOCOL": "read-rendezvous"}})
      for args in (["refused"], ["refused", "0"], ["refused", "1"], ["later"])),
    ("shared_sends", [2], {"args": ["random", "20000"], "env": {"FISHPLATE_PROTOCOL": "read-rendezvous"}}),
    *((name, [2, 3], {"env": env, "seconds": 120, "mpich": "its sends of such messages wait for their receives"})
      for name in ("shared_threads", "shared_ends")
      for env in ({}, {"FISHPLATE_PROTOCOL": "read-rendezvous"})),
    ("shared_sends_gaps", [2, 3], {}),
    *(("shared_sends_gaps", [2], {"env": env})
      for env in ({"FISHPLATE_PROTOCOL": "read-rendezvous"}, {"FISHPLATE_SINGLE_COPY": "off"})),
    ("threads", [1, 2, 3], {"seconds": 180}),
    ("grequest", [1, 2, 3], {"seconds": 120}),
    ("grequest", [2], {"args": ["deadlock"], "options": ["--fabric", "qdr"], "code": None, "silent": True,
                       "says": ["deadlock.*0: MPI_Wait for a generalised request .*1: MPI_Barrier"],
                       "mpich": "it has no modelled machines"}),
    ("large_count", [1, 2, 3], {}),
    ("many_ranks", [1, 8, 64], {"seconds": 180}),
    ("many_objects", [1, 2, 3], {"args": ["all", "1000"], "seconds": 120}),
    ("type_layout", [1], {}),
    ("type_named", [1], {}),
    ("type_contents", [1], {}),
    ("type_attributes", [1], {}),
    ("darray", [1, 2, 3, 4], {}),
    ("f90_types", [1, 2, 3], {}),
    ("type_transfer", [2, 3], {}),
    ("pack", [1, 2], {}),
    ("groups", [6], {}),
    ("comms", [1, 2, 3, 4], {"seconds": 120}),
    ("intercomms", [2, 3, 4, 7], {"mpich": "a leader's failure is not its group's"}),
    ("intercomms", [4], {"options": ["--fabric", "2xqdr"], "mpich": "it has no modelled machines"}),
    ("intercomms", [4], {"options": ["--fabric", "qdr"], "args": ["deadlock"], "code": None, "silent": True,
                         "says": ["deadlock", "MPI_Recv from 1 of the remote group tag 5 on between",
                                  "MPI_Recv from any of the remote group tag 5 on between"],
                         "mpich": "it has no modelled machines"}),
    ("makers", [1, 2, 3, 5], {"mpich": "its ranks do not agree on errors"}),
    ("makers", [4], {"options": ["--ppn", "2", "--fabric", "2xqdr"], "mpich": "it has no modelled machines"}),
    ("attributes", [1, 2], {}),
    ("windows", [1, 2, 4], {}),
    ("one_sided", [1, 2, 4], {"seconds": 120}),
    ("long_types", [1, 2], {}),
    *[("long_types", [2], {"args": [who], "mpich": "how it ends without memory is its own"}) for who in ("target", "type", "origin")],
    ("passive", [2, 3, 4], {"mpich": "its passive targets make no progress while they compute"}),
    ("passive", [2], {"args": ["multiple"], "mpich": "its passive targets make no progress while they compute"}),
    ("passive", [2, 4], {"args": ["multiple"], "env": {"FISHPLATE_WINDOWS": "messages"}, "mpich": "it has no such setting"}),
    ("passive", [2, 3], {"args": ["calls"], "env": {"FISHPLATE_PROGRESS": "calls"}, "mpich": "it has no such setting"}),
    ("passive", [2, 4], {"args": ["unfreed"], "mpich": "its passive targets make no progress while they compute"}),
    ("passive", [3], {"args": ["killed"], "code": None, "silent": True, "says": ["rank 1.* was killed by"],
                      "mpich": "its passive targets make no progress while they compute"}),
    ("own_locks", [2, 3, 4], {}),
    # Runs in which a grant came between two steps of a wait.
    *[("own_locks", [ranks], {"args": [seed], "options": ["--ppn", "2", "--fabric", fabric], "mpich": "it has no modelled machines"})
      for ranks, fabric, seed in [(4, "2xqdr", "3"), (5, "2xqdr", "5"), (5, "8xqdr", "4"), (3, "qdr", "0")]],
    ("cart", [6, 7], {}),
    ("info", [1], {"mpich": "the null info gives MPI_ERR_ARG"}),
    ("errhandlers", [1, 2], {"mpich": "a call whose user's handler returned gives MPI_SUCCESS"}),
    ("defaults", [1, 2], {}),
    ("removed", [1, 2], {"mpich": "it has no MPI_Psend_init_c"}),
    ("environment", [1, 2], {"args": ["two words", ""]}),
    ("coll_data", [1, 2, 3, 4, 5, 6, 7], {"seconds": 180}),
    ("coll_reduce", [1, 2, 3, 4, 5, 6, 7], {"seconds": 180}),
    ("coll_ops", [1, 2, 4], {}),
    ("coll_types", [1, 2, 3, 5], {}),
    ("coll_large_count", [1, 2, 3, 4], {}),
    ("coll_overlap", [1, 2, 3, 4], {"seconds": 120}),
    ("coll_persistent", [1, 2, 3, 5, 8], {}),
    ("coll_shared", [2, 3, 4, 8], {"seconds": 120}),
    ("neighbours", [1, 2, 3, 4, 8], {}),
    ("files", [1, 2, 3, 4], {"mpich": "no data representation can be registered"}),
    ("files", [4], {"args": ["without-worker"], "options": ["--fabric", "2xqdr"], "mpich": "it has no modelled machines"}),
    ("file_patterns", [1, 2, 3, 4], {"seconds": 120, "mpich": "it tells the bytes asked for, not those read, and hangs where one rank may not write"}),
    ("file_errors", [1, 2, 3, 4], {"mpich": "its ranks do not agree on errors"}),
    ("file_errors", [3], {"options": ["--fabric", "qdr"], "mpich": "it has no modelled machines"}),
    ("cplusplus", [2], {}),
    ("profiling", [1, 2], {}),
    ("status", [1], {}),
    ("error_classes", [1, 2], {"mpich": "Allreduce of -1 elements overwrites the stack"}),
    ("freed_handles", [1, 2], {"mpich": "a forged handle crashes it"}),
    *[("fatal", [1, 3], {"args": [wrong], "code": None, "silent": True, "says": says})
      for wrong, says in [
          ("rank", ["MPI_Send", "rank", "4711"]),
          ("tag", ["MPI_Send", "tag", "-4711"]),
          ("count", ["MPI_Bcast", "count", "-4711"]),
          ("comm", ["MPI_Comm_size", "comm"]),
          ("type", ["MPI_Allreduce", "datatype"]),
          ("root", ["MPI_Gather", "root", "4711"]),
          ("truncate", ["MPI_Recv", "(?i)trunc"]),
          ("abort-handler", ["MPI_Send", "rank", "4711"]),
      ]],
    ("out_of_memory", [2], {"code": 39, "silent": True, "says": ["rank 0: out of memory: the system refused \\d+ bytes"],
                            "mpich": "its words are others"}),
    *[("abort", [1, 2, 4], {"args": [others], "code": 42, "silent": True})
      for others in ("wait", "sleep", "compute")],
    *[("outside", [1, 2], {"args": [when], "code": None, "silent": True, "says": says,
                           "mpich": "it names internal_Send instead of MPI_Send"})
      for when, says in [
          ("before", ["MPI_Comm_rank", "MPI_Init"]),
          ("before-send", ["MPI_Send", "MPI_Init"]),
          ("before-finalize", ["MPI_Finalize", "MPI_Init"]),
          ("twice", ["MPI_Init"]),
          ("after", ["MPI_Barrier", "MPI_Finalize"]),
          ("after-finalize", ["MPI_Finalize"]),
          ("after-init", ["MPI_Init"]),
      ]],
    *[("outage", [ranks], {"options": ["--fabric", "qdr", "--fault", f"host={ranks - 1},rail=0,{fault}=2ms.."],
                           "env": {"FISHPLATE_OUTAGE": "40s"}, "mpich": "it has no modelled machines"})
      for ranks in (3, 5) for fault in ("down", "silent")],
    *[("lost_window", [2], {"args": [access], "options": ["--ppn", "1", "--fabric", "qdr", "--fault", "host=0,rail=0,silent=900us.."],
                            "env": {"FISHPLATE_OUTAGE": "40s"}, "code": None, "silent": True,
                            "says": ["rank 0 .*MPI_Win_[a-z_]*: the connection to rank 1 by .* is lost"],
                            "mpich": "it has no modelled machines"}) for access in ("get", "put")],
    ("exit_code", [2, 3], {"args": ["0"], "silent": True}),
    ("exit_code", [2, 3], {"args": ["5"], "silent": True, "code": 5}),
    ("exit_code", [2, 3], {"args": ["early"], "silent": True, "code": 9}),
    ("exit_code", [2, 3], {"args": ["signal"], "silent": True, "code": None}),
]


def is_modelled(row: dict) -> bool:
    """Whether a row needs a modelled machine, which its options name: it says nothing of real devices, and without the machine another thing."""
    return "--fabric" in row.get("options", [])


def compile_program(prefix: Path, source: Path, target: Path) -> str:
    """The compiler's complaint, or nothing. Warnings count: mpi.h must be clean for users."""
    newest = max(f.stat().st_mtime for f in (source, *HERE.glob("*.h"), prefix / "include/mpi.h", prefix / "bin/mpicc"))
    if target.exists() and target.stat().st_mtime > newest:
        return ""
    wrapper = ["mpicxx", "-std=gnu++17"] if source.suffix == ".cc" else ["mpicc", "-std=gnu11"]
    command = [str(prefix / "bin" / wrapper[0]), wrapper[1], "-O1", "-g1", "-Wall", "-Wextra", "-Werror",
               "-pthread", "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def programs(prefix: Path) -> Path:
    """The folder of the compiled programs, which stay there for the next run and for tests/verbs."""
    folder = prefix / "tests" / "programs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compile_all(prefix: Path, sources: list[Path]) -> dict[str, str]:
    """Compiles into `programs(prefix)`, two at a time; the compiler's complaints, by program."""
    with ThreadPoolExecutor(2) as pool:
        said = pool.map(lambda source: compile_program(prefix, source, programs(prefix) / source.stem), sources)
        return {source.stem: text for source, text in zip(sources, said) if text}


def judge(row: dict, code: int | None, out: str, err: str) -> str:
    """The fault of a run, or nothing."""
    wanted = row.get("code", 0)
    if code is None:
        return f"no end after {row.get('seconds', SECONDS)} s"
    if wanted is None:
        if code == 0:
            return "exit code 0, though it is meant to fail"
    elif code != wanted:
        return f"exit code {code}, not {wanted}"
    oks = sum(line == " ok" for line in out.splitlines())
    if not row.get("silent", False) and oks != 1:
        return f"` ok` printed {oks} times"
    for pattern in row.get("says", []):
        if not re.search(pattern, err):
            return f"standard error does not say {pattern!r}"
    return ""


@dataclass
class World:
    prefix: Path
    work: Path
    # The words before a program that was built for another processor.
    through: list[str]
    # The compiler's complaint, by program.
    compiled: dict = field(default_factory=dict)

    def compile(self, name: str) -> Path:
        target = self.work / name
        if name not in self.compiled:
            self.compiled[name] = compile_program(self.prefix, next(HERE.glob(f"{name}.c*")), target)
        if self.compiled[name]:
            raise Problem(f"does not compile{harness.output(self.compiled[name])}")
        return target


def label(name: str, ranks: int, row: dict) -> str:
    words = [*row.get("options", []), *row.get("args", [])]
    return f"{name} -n {ranks} {' '.join(words)}".rstrip()


def program(name: str, ranks: int, row: dict):
    def test(world: World) -> None:
        command = [*world.through, world.compile(name), *row.get("args", [])]
        ran = harness.launch(world.prefix, ranks, command, env=row.get("env"), seconds=row.get("seconds", SECONDS),
                             options=tuple(row.get("options", ())))
        if problem := judge(row, ran.code, ran.out, ran.err):
            raise Problem(problem + harness.output(ran.out + ran.err))
    return test


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--through", default="", metavar="COMMAND",
                        help="what runs a program built for another kind of processor")
    parser.add_argument("--build-only", action="store_true", help="compile the programs, and stop")
    parser.add_argument("--peer", action="store_true",
                        help="the prefix is MPICH's: skip what the table says that it gets wrong")
    options = parser.parse_args()
    unlisted = {f.stem for f in HERE.glob("*.c*")} - {name for name, _, _ in TABLE}
    if unlisted:
        sys.exit(f"not in the table of {Path(__file__).name}: {', '.join(sorted(unlisted))}")
    cases = [Case(label(name, ranks, row), program(name, ranks, row), skip=row.get("mpich", "") if options.peer else "")
             for name, many, row in TABLE for ranks in many if options.only in name]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    world = World(prefix, programs(prefix), shlex.split(options.through))
    if options.build_only:
        compile_all(prefix, [next(HERE.glob(f"{name}.c*")) for name, _, _ in TABLE])
        return 0
    return harness.run_suite(f"programs-{prefix.name}" if options.through else "programs", cases, world)


if __name__ == "__main__":
    sys.exit(main())
