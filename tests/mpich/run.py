#!/usr/bin/env python3
"""Compile MPICH's conformance programs with a prefix's mpicc and run them under its mpiexec.

    tests/mpich/run.py [--prefix build] [--chapter NAME…] [--filter TEXT] [--subset ci] [--update]
    tests/mpich/run.py --fortran COMPILER… the programs in Fortran, compiled with mpifort, and those in two languages

What to run is said by the testlist files of the source (`program ranks key=value…`; see
mpich_sources.py for where they come from). A program passes when mpiexec exits with 0 and the
output is ` No Errors` and nothing else; lines with resultTest= want a failure instead. A test is
called FOLDER/PROGRAM, with its arguments behind a colon, separated by commas.

Skipped, with the reason under -v: programs that need what the MPI ABI does not have, lines that need
more memory than --memory or that differ from another line only by settings of MPICH's own, and
under --peer those that MPICH itself expects to fail (xfail). Failures that come of procedures that are
not supported yet are known by themselves (unsupported.py); a program that calls one and passes has
not come there, and counts with them. Others are compared with mpich.expected (expected.py). The last
line is `N passed, N failed, N skipped`, where both count as passed. --update writes the list and the
figures of docs/figures/foreign.md anew. Exit status 3: the source could not be fetched, nothing was tested.
"""

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
import mpich_fortran  # noqa: E402
from expected import Expectations, Judge, publish  # noqa: E402
from mpich_sources import VERSION, Builder, fetch  # noqa: E402
from unsupported import Table, without_comments  # noqa: E402

# All folders but those about other languages, MPICH's own, speed, and the tools interface.
CHAPTERS = ["attr", "coll", "comm", "datatype", "errhan", "errors/attr", "errors/coll", "errors/comm",
            "errors/datatype", "errors/group", "errors/io", "errors/pt2pt", "errors/rma", "errors/spawn",
            "errors/topo", "group", "info", "init", "io", "part", "pt2pt", "rma", "spawn", "threads/coll",
            "threads/comm", "threads/init", "threads/part", "threads/pt2pt", "threads/rma",
            "threads/spawn", "topo"]
SECONDS = 90  # for a program whose line names no time-limit
EXPECTED_SECONDS = 10  # for one that is expected to fail, as some do by having no end
# Tests that --subset ci leaves out: folders of unsupported subjects, programs that take seconds each, and most of f90, whose programs are
# those of f77 in free form (the suite `fortran` calls each procedure of the module `mpi`).
CI_WITHOUT = ["f90/[!fm]*/*", "f??/io/*", "f??/rma/*", "f??/spawn/*",
              "errors/spawn/*", "part/*", "spawn/*", "threads/part/*", "threads/spawn/*",
              "rma/atomic_get*", "rma/atomic_rmw_gacc", "rma/derived_acc*", "rma/large_acc*", "rma/manyget", "rma/rma_contig*", "coll/uoplong", "errors/coll/*length", "errors/comm/too_many_*",
              "pt2pt/bsendpending", "pt2pt/sendflood", "pt2pt/sendrecv3*", "threads/comm/*", "threads/pt2pt/*huge*"]


@dataclass
class Line:
    folder: str
    program: str
    ranks: int
    args: list = field(default_factory=list)
    env: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.folder}/{self.program}" + (":" + ",".join(self.args) if self.args else "")


def read_testlist(tests: Path, folder: str) -> list[Line]:
    """The lines of a folder's testlist; of its template where it has only that."""
    for file in (tests / folder / "testlist", tests / folder / "testlist.in"):
        if file.exists():
            break
    else:
        sys.exit(f"{folder} is no folder of test programs")
    lines = []
    for text in file.read_text().splitlines():
        text = mpich_fortran.filled_in(text.partition("#")[0])
        large = "@largetest@" in text
        words = re.sub(r"@\w+@", "", text).split()
        if not words or words[0].startswith("!") or (tests / folder / words[0]).is_dir():
            continue
        line = Line(folder, words[0], 1)
        for word in words[1:]:
            key, equals, value = word.partition("=")
            if not equals:
                line.ranks = int(word) if word.isdigit() else line.ranks
            elif key == "arg":
                line.args.append(value)
            elif key == "env":
                name, _, setting = value.partition("=")
                line.env[name] = setting
            else:
                line.options[key] = value
        if large:
            line.options.setdefault("mem", "64")
        lines.append(line)
    return lines


# These compile with a warning, and pass or fail by the memory beside the integers.
HANDLES_IN_INTS = ("coll/nonblocking2",)


def reason_to_skip(line: Line, seen: set, options) -> str:
    key = (line.name, line.ranks)
    again = key in seen
    seen.add(key)
    if options.peer and "xfail" in line.options:
        return f"MPICH expects it to fail ({line.options['xfail']})"
    if float(line.options.get("mem", 0)) > options.memory:
        return f"needs {line.options['mem']} GB of memory"
    if line.name in HANDLES_IN_INTS:
        return "keeps datatypes in integers, which the MPI ABI's do not fit into"
    if line.name == "init/timeout":
        return "tests MPICH's variable MPIEXEC_TIMEOUT"
    if line.options.get("mpix", "").lower() == "true":
        return "tests MPICH's extensions"
    if again:
        return "differs from another line only by settings of MPICH's own"
    return ""


def left_out(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in CI_WITHOUT)


def version_of(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]


def judge(line: Line, ran: harness.Outcome, seconds: float) -> str:
    """The fault of a run, or nothing."""
    if ran.code is None:
        return f"no end after {seconds:g} s"
    wanted = line.options.get("resultTest")
    output = [text for text in (ran.out + ran.err).splitlines() if text.strip()]
    said = [text for text in output if re.fullmatch(r"\s*No [Ee]rrors\s*", text)]
    other = [text for text in output if text not in said and not re.fullmatch(r"\s*Test Passed\s*", text)]
    if wanted:  # TestErrFatal: any output; TestStatus: a failure that the program meant
        return "mpiexec exits with 0, though the program fails" if ran.code == 0 else ""
    if other:
        return f"exit status {ran.code}, output: " + " | ".join(other[:4])
    if ran.code != 0:
        return f"exit status {ran.code}"
    return "" if said else "does not say No Errors"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    parser.add_argument("--chapter", nargs="+", metavar="FOLDER", help="these folders, e.g. coll rma")
    parser.add_argument("--filter", default="", metavar="TEXT", help="tests whose name holds this")
    parser.add_argument("--subset", choices=["ci"], help="a part that takes a minute or two")
    parser.add_argument("--fortran", metavar="COMPILER", help="the folders of Fortran, with this compiler behind mpifort")
    parser.add_argument("--expected", type=Path, help="the list of expected failures (mpich.expected, of Fortran mpich_COMPILER.expected); "
                        "an empty string for none")
    parser.add_argument("--peer", action="store_true", help="the prefix is MPICH's")
    parser.add_argument("--update", action="store_true", help="write the list anew, keep its reasons")
    parser.add_argument("--cache", type=Path, default=harness.ROOT / "build/foreign")
    parser.add_argument("--memory", type=float, default=2, metavar="GB")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="time-out of a program")
    parser.add_argument("--mpiexec-options", default="", metavar="WORDS", help="more words for mpiexec, as its machine")
    parser.add_argument("--results", metavar="NAME", help="the name under which results are kept (mpich; of Fortran mpich-COMPILER)")
    parser.add_argument("--build-only", action="store_true", help="compile the programs, and stop")
    parser.add_argument("-v", "--verbose", action="store_true", help="one line per test")
    options = parser.parse_args()
    complete = not (options.chapter or options.filter or options.subset)
    if options.update and not complete:
        parser.error("--update needs a complete run: no --chapter, --filter, --subset")
    suite = f"mpich-{Path(options.fortran).name}" if options.fortran else "mpich"
    if options.fortran and not shutil.which(options.fortran):
        return harness.not_run(suite, f"there is no {options.fortran}")
    if options.expected is None:
        options.expected = HERE / f"{suite.replace('-', '_', 1)}.expected"
    start = time.monotonic()
    prefix = harness.checked_prefix(options.prefix)
    cache = options.cache.resolve()
    tests = fetch(cache)
    builder = mpich_fortran.FortranBuilder(tests, prefix, cache, options.fortran) if options.fortran else Builder(tests, prefix, cache)
    builder.utilities()

    chapters = options.chapter or (mpich_fortran.CHAPTERS if options.fortran else CHAPTERS)
    lines = [line for folder in chapters for line in read_testlist(tests, folder.strip("/"))
             if options.filter in line.name and not (options.subset and left_out(line.name))]
    listed = options.expected if str(options.expected) not in ("", ".") else None
    tally, seen = Judge(Expectations.read(listed), None if options.peer else Table()), set()

    def note(line: Line, state: str, why: str, took: float = 0.0) -> None:
        kind = tally.add(line.name, line.ranks, state, why, row=line.folder)
        if took:
            tally.times.append({"name": f"{line.name} -n {line.ranks}", "seconds": round(took, 2)})
        if options.verbose or kind in ("fail", "surprise"):
            print(f"{kind:9} {line.name} on {line.ranks} ({took:.1f} s) {why}".rstrip(), flush=True)

    to_run = []
    for line in lines:
        if why := reason_to_skip(line, seen, options):
            note(line, "skip", why)
        else:
            to_run.append(line)
    with ThreadPoolExecutor(2) as pool:
        programs = {(line.folder, line.program): None for line in to_run}
        for key, built in zip(programs, pool.map(lambda key: builder.program(*key), programs)):
            programs[key] = built
    if options.build_only:
        return 0
    for line in to_run:
        target, complaint = programs[line.folder, line.program]
        if complaint:
            if "switch quantity not an integer" in complaint:
                note(line, "skip", "takes handles for integers, which the MPI ABI's are not")
            elif missing := builder.missing_names(complaint):
                note(line, "skip", f"needs {', '.join(missing)}, which the MPI ABI does not have")
            else:
                error = next((t for t in complaint.splitlines() if "error" in t), complaint)
                note(line, "fail", f"does not compile: {error}")
            continue
        seconds = min(float(line.options.get("timeLimit", options.seconds)), 2 * options.seconds)
        if tally.expectations.find(line.name, line.ranks):
            seconds = min(seconds, EXPECTED_SECONDS)
        with tempfile.TemporaryDirectory(prefix="mpich-test-") as work:
            ran = harness.launch(prefix, line.ranks, [target, *line.args], seconds=seconds,
                                 env=line.env, cwd=Path(work), options=tuple(shlex.split(options.mpiexec_options)))
        problem = judge(line, ran, seconds)
        text = "".join(map(without_comments, builder.sources(line.folder, line.program)))
        if problem and tally.unsupported and (name := tally.unsupported.quiet(text)):
            problem += f" | it uses MPI_{name}: this procedure is not supported yet"
        elif not problem and tally.unsupported and (name := tally.unsupported.unreached(text)):
            problem = f"says No Errors without a call of MPI_{name}: this procedure is not supported yet"
        note(line, "fail" if problem else "pass", problem, ran.seconds)

    stale = tally.stale() if complete else []
    print("".join(text + "\n" for text in stale), end="")
    if options.update and listed:
        tally.write(listed, separator="/")
        kind = f" in Fortran, with {version_of(options.fortran)}" if options.fortran else ""
        publish(suite, f"MPICH {VERSION}'s programs{kind}, by folder:\n\n" + tally.markdown())
    print(tally.table(), end="")
    return tally.close(options.results or suite, stale, start)


if __name__ == "__main__":
    sys.exit(main())
