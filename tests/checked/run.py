#!/usr/bin/env python3
"""Right programs under `run --check messages`, which must report nothing: our examples and kernels, mpi4py's modules, MPICH's programs.

    tests/checked/run.py [--prefix build] [--short] [--only TEXT] [--list]

The programs with errors, and what is said of them, are in the suite `robust` (mismatches.py). `--short` runs the kernels and a few others;
`tests/all.py --all checked` runs all. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402
from kernels import run as kernels  # noqa: E402
from modelled_foreign import part  # noqa: E402

MACHINE = "--fabric qdr --check messages"
# Time limit of a program in seconds, and of a part of the suites of others.
SECONDS, LONG = 60, 1800
PROGRAMS = [([name, "S"], (2, 4)) for name in kernels.NPB] + [(["hpl", "100", "16", "2", "2"], (4,)), (["pi"], (3,)), (["heat", "64", "20"], (4,)),
                                                              (["snapshots", "96", "4", "checked.data", "checked.log"], (4,)),
                                                              *(([name, group], (4,)) for name, group in [("calls", each) for each in kernels.CALLS])]
FEW_FOLDERS, FOLDERS = ["topo", "group"], ["attr", "coll", "comm", "datatype", "group", "info", "init", "io", "pt2pt", "rma", "topo"]
FEW_MODULES = ["test_p2p_buf_matched", "test_cco_buf"]
# Modules of mpi4py that end otherwise here: they start processes, wait for time to pass, or leave requests where a procedure is not supported.
# Two have errors: collective calls in different orders (test_ulfm), MPI_UNSIGNED_CHAR that is received as MPI_UNSIGNED (test_msgspec).
OTHERWISE = ["test_msgspec", "test_dynproc", "test_util_pool", "test_comm_inter", "test_objmodel", "test_ulfm"]
# Programs of MPICH that end otherwise under the check.
MPICH_CHECKED = {"pt2pt/sendflood": "has more events than are checked, which a note says"}


def quiet(words: list, ranks: int):
    """A program passes if neither it nor the check says anything wrong of it."""
    def test(prefix: Path) -> None:
        folder = kernels.folder(prefix)
        ran = harness.launch(prefix, ranks, [folder / words[0], *words[1:]], options=(*MACHINE.split(), "--summary", "none"), seconds=SECONDS, cwd=folder)
        if ran.code or "--check" in ran.err:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    return test


def traced(prefix: Path) -> None:
    """A program that was recorded in real time is checked by its trace."""
    folder = kernels.folder(prefix)
    trace = folder / "checked.trace"
    trace.unlink(missing_ok=True)
    ran = harness.launch(prefix, 4, [folder / "cg", "S"], options=("--record", str(trace)), seconds=SECONDS, cwd=folder)
    if ran.code:
        raise Problem(f"the recorded run: exit status {ran.code}{harness.output(ran.out + ran.err)}")
    quiet([str(trace)], 4)(prefix)


def foreign(suite: str, words: list, further: dict | None = None):
    return part(suite, words, "checked", MACHINE, {}, LONG, further or {})


def tests() -> list[Case]:
    programs = [Case(f"checked: {' '.join(words)} -n {ranks}", quiet(words, ranks)) for words, many in PROGRAMS for ranks in many]
    modules = [Case("checked: mpi4py: a few modules", foreign("mpi4py", ["--ranks", "2", "--only", *FEW_MODULES]), seconds=LONG),
               Case("checked: mpi4py", foreign("mpi4py", ["--ranks", "1,2,4", "--without", *OTHERWISE]), short=False, seconds=LONG)]
    folders = [Case(f"checked: mpich: {' '.join(only)}", foreign("mpich", ["--chapter", *only], MPICH_CHECKED), short=only == FEW_FOLDERS, seconds=LONG)
               for only in (FEW_FOLDERS, FOLDERS)]
    return [*programs, Case("checked: a trace of a run in real time", traced), *modules, *folders]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="the kernels and a few others")
    options = parser.parse_args()
    cases = [case for case in tests() if case.wanted(options)]
    if options.list:
        print("\n".join(case.name if case.short else f"{case.name} (not in --short)" for case in tests()))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    kernels.compile_all(prefix)
    return harness.run_suite("checked", cases, prefix)


if __name__ == "__main__":
    sys.exit(main())
