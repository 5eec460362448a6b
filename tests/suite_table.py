"""The suites: what each is about, which files it protects, and how it runs.

A suite is a folder of this one with its name, and `make NAME` runs it; a name with a suffix (`mpich-gfortran`) is a variant of the suite before
it. tests/all.py runs them, tests/readme.py writes README.md of this table, and tests/for.py finds the suites of changed files.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PREFIX = ["--prefix", "build"]

# Parts of the tree that several suites protect.
LIBRARY = ("crates/library/", "crates/base/", "crates/faces/abi/", "crates/faces/tables/")
MACHINES = ("crates/machines/", "crates/devices/device/")
JOB = ("crates/job/", "crates/command/", "crates/base/child_guard/", "crates/base/secret/")
ANSWERS = ("crates/answers/",)
OLD_ABIS = ("crates/faces/abi_convert/", "crates/faces/convert_tables/", "crates/faces/mpich_abi/", "crates/faces/openmpi_abi/", "crates/faces/openmpi_cxx/")
FORTRAN = ("crates/faces/fortran", "crates/faces/mpich_fortran/", "crates/faces/openmpi_fortran/", "crates/faces/clocks/")


@dataclass
class Step:
    """A step of a run of all suites. A suite is a step whose results are kept."""

    name: str
    command: list
    # What a suite is about.
    subject: str = ""
    # The beginnings of the names of the files that it protects.
    protects: tuple = ()
    # Steps that must have succeeded before.
    after: tuple = ()
    # Without it the suites cannot run.
    essential: bool = False
    # Its failure is no failure of the run: it shows in the suite that needs the step.
    optional: bool = False
    # Its results are kept as a suite's.
    is_suite: bool = True
    # It belongs to a user's first check: the installed tree, used as users use it.
    first: bool = False
    # It takes minutes and guards what seldom changes: it runs with --all, or by its name.
    long: bool = False


def python(script: str, *words) -> list:
    return [sys.executable, str(HERE / script), *words]


def make(target: str) -> list:
    return ["make", "--no-print-directory", target]


def fortran_compilers(full: bool) -> list[str]:
    """Compilers with which MPICH's programs in Fortran are built."""
    return ["gfortran", *(["flang-new-19"] if full else [])]


def preparation(full: bool) -> list[Step]:
    """In order of importance. Cargo locks a folder for each profile: steps that share one run one after the other."""
    subset = [] if full else ["--subset", "ci"]
    return [
        Step("stage", make("stage"), essential=True, is_suite=False, first=True),
        Step("lint", make("lint"), is_suite=False),
        Step("fetch", ["sh", "-c", "scripts/nextest; scripts/verbs-vm --kernel"], optional=True, is_suite=False),
        Step("tests", python("unit/run.py", "--compile"), after=("lint",), essential=True, is_suite=False),
        Step("mpi4py-build", python("mpi4py/run.py", *PREFIX, "--build-only"), after=("stage",), optional=True, is_suite=False),
        Step("programs-build", python("programs/run.py", *PREFIX, "--build-only"), after=("stage",), optional=True, is_suite=False, first=True),
        Step("loom-build", python("loom/run.py", "--compile"), after=("stage",), optional=True, is_suite=False),
        Step("mpich-build", python("mpich/run.py", *PREFIX, *subset, "--build-only"), after=("stage",), optional=True, is_suite=False),
        *(Step(f"mpich-{name}-build", python("mpich/run.py", *PREFIX, *subset, "--fortran", name, "--build-only"), after=("stage",),
               optional=True, is_suite=False) for name in fortran_compilers(full)),
        *([Step("applications-build", python("applications/run.py", *PREFIX, "--build-only"), after=("stage",), optional=True,
                is_suite=False)] if full else []),
        *([Step("miri", make("miri"), is_suite=False)] if full else []),
        *([Step("fuzz", python("fuzz/run.py"), "every parser of bytes that others write, under libFuzzer",
                ("crates/checks/fuzzed/", "fuzz/", "crates/base/fuzz_input/"))] if full else []),
        Step("figures", python("figures/run.py", *PREFIX, *([] if full else ["--short"])),
             "figures of modelled machines, byte by byte: they depend on no clock", (*MACHINES, *ANSWERS, "crates/library/"), after=("stage",), first=True),
        Step("scores", python("scores/run.py", *PREFIX, *(["--long"] if full else [])),
             "the model against published figures, and machines calibrated by outputs of benchmarks", (*MACHINES, "crates/answers/study/"), after=("stage",),
             long=True),
        Step("choice", python("choice/run.py", *PREFIX), "the algorithms of collectives that costs choose, compared with the best ones",
             ("crates/library/mpi/src/algorithms",), after=("stage",), long=True),
        Step("protocols", python("protocols/run.py", *PREFIX, "--programs" if full else "--quick"), "the same for the protocols of messages",
             ("crates/library/mpi/src/p2p/", "crates/library/channel/"), after=("stage",), long=True),
    ]


def rust_suites() -> list[Step]:
    """Suites that use every core."""
    return [
        Step("unit", python("unit/run.py"), "every unit and integration test in Rust, and the examples in its documentation", ("crates/",)),
        Step("loom", python("loom/run.py"), "every order of the memory accesses of rings, doorbells and the worker of files",
             ("crates/library/channel/", "crates/library/file_io/")),
    ]


def other_suites(full: bool) -> list[Step]:
    """Suites whose time limits are many times the time that they take, the longest first."""
    subset, short = ([], []) if full else (["--subset", "ci"], ["--short"])
    return [
        Step("verbs", python("verbs/run.py", *PREFIX, *short), "a real verbs stack, in a virtual machine: Soft-RoCE and software iWARP",
             ("crates/devices/verbs/", "crates/devices/rail_choice/", "crates/library/channel/src/rdma/")),
        Step("robust", python("robust/run.py", *PREFIX, *(["--releases"] if full else [])),
             "killed ranks, full disks, wrong environments, other users, things left behind", (*JOB, *ANSWERS, "crates/library/channel/src/wait/"), first=True),
        Step("abis", python("abis/run.py", *PREFIX), "programs of other ABIs: over the libraries of others, under tools, and the names that they may import",
             (*OLD_ABIS, *FORTRAN, "crates/faces/abi/", "include/")),
        Step("tcp", python("tcp/run.py", *PREFIX, *([] if full else ["--quick"])), "jobs over TCP between network namespaces, and what breaks there",
             ("crates/devices/tcp/", "crates/devices/rail_choice/", "crates/library/channel/src/rdma/", "crates/job/")),
        Step("documents", python("documents/run.py", *(["--long"] if full else [])), "every command that README.md and docs/ show, their links and words",
             ("README.md", "docs/", "CONTRIBUTING.md", "ARCHITECTURE.md", "examples/", "crates/command/", *ANSWERS), first=True),
        # Two ranks are the number of most other programs.
        Step("mpi4py", python("mpi4py/run.py", *PREFIX, *subset, *([] if full else ["--ranks", "1,4"])), "mpi4py's tests, built against our header", LIBRARY),
        *([Step("mpi4py-wheel", python("mpi4py/run.py", *PREFIX, "--wheel", "--results", "mpi4py-wheel"),
                "the same with PyPI's wheel, which loads MPICH's ABI", (*LIBRARY, *OLD_ABIS)),
           Step("mpi4py-wheel-openmpi", python("mpi4py/run.py", *PREFIX, "--wheel", "openmpi", "--results", "mpi4py-wheel-openmpi"),
                "the same with PyPI's wheel over Open MPI's ABI", (*LIBRARY, *OLD_ABIS))] if full else []),
        Step("mpich", python("mpich/run.py", *PREFIX, *subset), "MPICH's test programs in C", LIBRARY),
        *(Step(f"mpich-{name}", python("mpich/run.py", *PREFIX, *subset, "--fortran", name), f"MPICH's test programs in Fortran, built with {name}",
               (*LIBRARY, *FORTRAN)) for name in fortran_compilers(full)),
        Step("binaries", python("binaries/run.py", *PREFIX, *short), "programs of PyPI and Debian as they are packaged, built for MPICH and Open MPI",
             (*LIBRARY, *OLD_ABIS), first=True),
        Step("kernels", python("kernels/run.py", *PREFIX, *(["--long"] if full else [])), "example programs that check their own results, NAS and HPL among them",
             ("examples/", "crates/answers/replay/", *LIBRARY), first=True),
        Step("recordings", python("recordings/run.py", *PREFIX, *short), "programs under the MPI libraries of others, recorded: their traces are the same",
             ("crates/faces/recorder/", "crates/faces/recorder_large/", "crates/faces/recording/", "crates/base/trace/", "crates/faces/convert_tables/")),
        Step("counts", python("counts/run.py", *PREFIX), "instructions of the hot paths",
             (*LIBRARY, *OLD_ABIS, *FORTRAN, "crates/machines/model/", "crates/machines/sim/")),
        *([Step("applications", python("applications/run.py", *PREFIX), "applications of others, which check themselves: FFTW, HYPRE, PT-SCOTCH", LIBRARY)]
          if full else []),
        Step("programs", python("programs/run.py", *PREFIX), "C programs of our own, compiled by our mpicc, run by our mpiexec", LIBRARY, first=True),
        Step("fortran", python("fortran/run.py", *PREFIX), "Fortran programs of our own, with each compiler that is installed", FORTRAN),
        Step("launchers", python("launchers/run.py", *PREFIX, *([] if full else ["--quick"])), "jobs that the launchers of others start",
             ("crates/job/pmi/", "crates/job/launch/")),
        Step("wrappers", python("wrappers/run.py", *PREFIX), "compiler wrappers and package descriptions, as build systems use them",
             ("crates/command/", "crates/job/launch/", "include/", "mk/install.mk"), first=True),
        Step("release-files", python("release/run.py", *PREFIX, *short), "version, changes, citation, recipes and workflow of a release",
             (".github/", "CHANGELOG.md", "CITATION.cff", "Cargo.toml", "packaging/", "mk/package.mk")),
        Step("messages", python("messages/run.py", *PREFIX), "names and lines that users read, and exit codes", (*JOB, "crates/faces/abi/"), first=True),
        Step("rails", python("rails/run.py", *PREFIX, *short), "programs of ours and of others over two modelled rails, under each policy",
             ("crates/library/channel/src/rdma/", "crates/machines/model/")),
        Step("checked", python("checked/run.py", *PREFIX, *short), "right programs under `--check messages`, which must be quiet",
             ("crates/library/message_check/", "crates/faces/abi/src/message_notes")),
        Step("skew", python("skew/run.py", *PREFIX, *short), "ranks that begin at different times, over modelled rails",
             ("crates/library/channel/src/rdma/schedule/",)),
        Step("speed-ups", python("speed-ups/run.py", *PREFIX, *short), "what `compare` says of loops whose times add up by hand", ("crates/answers/compare/",)),
        *([Step("report", python("report/run.py", *PREFIX), "pages of results, in a browser", ("crates/answers/results/", "crates/answers/compare/"))] if full else []),
        *([Step("site-check", python("site/run.py", *PREFIX), "the site of the documentation: links, anchors, and what its search finds, in a browser",
                ("scripts/site/", "mk/site.mk", "docs/", "README.md", "CHANGELOG.md"))] if full else []),
        *([Step("packages", python("packages/run.py"), "installed and removed as users do it: make install, a wheel, a Debian package (both on aarch64 too, and in a fresh Debian), a container image",
                ("mk/", "scripts/", "Containerfile"))] if full else []),
    ]


def all_suites() -> list[Step]:
    """Every suite, as it runs in full."""
    return [step for step in [*rust_suites(), *other_suites(True), *preparation(True)] if step.is_suite]
