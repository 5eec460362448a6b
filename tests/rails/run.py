#!/usr/bin/env python3
"""C programs, mpi4py's modules and MPICH's programs over two modelled rails, under each policy of rails.

    tests/rails/run.py [--prefix build] [--short] [--only TEXT] [--list]

Every rank has a host of its own, so every message between ranks crosses the rails. `--short` runs a few programs of each kind;
`tests/all.py --all rails` runs all. tests/verbs does the same over two Soft-RoCE rails. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from programs import run as c  # noqa: E402
from harness import Case, Problem  # noqa: E402
from modelled_foreign import part  # noqa: E402

FABRIC = "2xqdr"
# The default comes first.
POLICIES = ("adaptive", "stripe", "round-robin")
# Programs in `--short`: one of each kind of traffic.
SHORT = {("send_modes", 2), ("nonblocking", 3), ("coll_data", 4), ("ordering", 2), ("fatal truncate", 3)}
# Programs that need several threads in MPI, or a clock that runs while a rank computes: virtual time has neither.
REAL_TIME = {"abort compute": "a rank that computes for ever takes no virtual time",
             "files": "virtual time has no worker of files; a row of its own runs without",
             "threads": "virtual time has one thread of a rank in MPI", "abort sleep": "virtual time ends where all ranks sleep",
             "passive": "its targets wait outside of MPI for other ranks, which is no time on a modelled machine"}
# Modules of mpi4py: one of each kind of traffic in `--short`.
FEW = ["test_p2p_buf_matched", "test_cco_buf"]
MODULES = ["test_p2p_buf", "test_p2p_buf_matched", "test_p2p_obj", "test_p2p_obj_matched", "test_msgspec", "test_request", "test_cco_buf",
           "test_cco_vec", "test_cco_obj", "test_cco_nb_buf", "test_cco_nb_vec", "test_cco_ngh_buf", "test_comm_topo"]
# Folders of MPICH's programs.
FEW_FOLDERS = ["topo"]
FOLDERS = ["coll", "comm", "datatype", "pt2pt", "topo"]


def environment(policy: str) -> dict:
    return {"FISHPLATE_RAIL_POLICY": policy}


def program(name: str, ranks: int, row: dict, policy: str) -> Case:
    words = [name, *row.get("args", [])]
    short = (" ".join(words), ranks) in SHORT

    def test(prefix: Path) -> None:
        ran = harness.launch(prefix, ranks, [c.programs(prefix) / name, *words[1:]], options=("--fabric", FABRIC, "--summary", "none"),
                             env=row.get("env", {}) | environment(policy), seconds=row.get("seconds", c.SECONDS))
        if problem := c.judge(row, ran.code, ran.out, ran.err):
            raise Problem(problem + harness.output(ran.out + ran.err))
    skip = REAL_TIME.get(" ".join(words), REAL_TIME.get(name, ""))
    return Case(f"rails: c: {policy}: {' '.join(words)} -n {ranks}", test, short, skip=skip)


def foreign(suite: str, words: list, policy: str, seconds: float):
    """A test that runs a part of a suite of others over the rails."""
    return part(suite, words, "rails", f"--fabric {FABRIC}", environment(policy), seconds)


def tests() -> list[Case]:
    programs = [program(name, ranks, row, policy) for policy in POLICIES
                for name, many, row in c.TABLE if not c.is_modelled(row) for ranks in many if 2 <= ranks <= 8]
    modules = [Case(f"rails: mpi4py: {policy}: {name}", foreign("mpi4py", ["--ranks", ranks, "--only", *only], policy, 1200),
                    short=only == FEW and policy == POLICIES[0], seconds=1200)
               for policy in POLICIES for name, ranks, only in [("a few modules", "2", FEW), ("messages and collectives", "2,4", MODULES)]]
    folders = [Case(f"rails: mpich: {policy}: {' '.join(only)}", foreign("mpich", ["--chapter", *only], policy, 1800),
                    short=only == FEW_FOLDERS and policy == POLICIES[0], seconds=1800)
               for policy in POLICIES for only in (FEW_FOLDERS, FOLDERS)]
    return programs + modules + folders


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="a few programs of each kind")
    options = parser.parse_args()
    cases = [case for case in tests() if case.wanted(options)]
    if options.list:
        print("\n".join(case.name if case.short else f"{case.name} (not in --short)" for case in tests()))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    for name, said in c.compile_all(prefix, [next(c.HERE.glob(f"{name}.c*")) for name, _, _ in c.TABLE]).items():
        sys.exit(f"{name} does not compile: {said}")
    return harness.run_suite("rails", cases, prefix)


if __name__ == "__main__":
    sys.exit(main())
