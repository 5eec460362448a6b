"""Names that MPICH's and Intel's `libmpi.so.12` export, and ours: what ours lacks stands in a list, with the reason."""

import re
import subprocess
from pathlib import Path

from harness import Case, Problem, Skip
from libraries import PEERS, fetched

# Patterns of whole names, for MPI_ as for PMPI_, and why programs do without. A pattern without a name fails.
LEFT_OUT = {
    r"MPIX_(Comm_(agree|failure_ack|failure_get_acked|get_failed|revoke|shrink))": "fault tolerance is not in the standard ABI",
    r"MPIX_(Stream|Threadcomm|Async)_.*|MPIX_.*_enqueue(_c)?|MPIX_Comm_(get_stream|test_threadcomm)": "streams and thread communicators of MPICH",
    r"MPIX_(Grequest_.*|Type_iov.*|Request_is_complete|Info_set_hex|St(art|op)_progress_thread)": "extensions of MPICH that no known binary imports",
    r"MPIX_(Op_create_x|(Comm|File|Win|Session)_create_errhandler_x)": "functions with extra state, for language bindings of MPICH",
    r"MPIX_((Get|Put)_notify(_c)?|Win_.*notify.*)": "Intel's notified access",
    r"QMPI_.*": "MPICH's interface for several tools",
    r"MPI[RI]_.*": "what MPICH's libraries of Fortran and C++ call in it",
    r"MPI_F_(ARGVS_NULL|ERRCODES_IGNORE)": "what Intel's library of Fortran stores",
}


def exported(library: Path) -> set:
    """The names of MPI, without versions."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout.splitlines()
    names = {line.split()[-1].split("@")[0] for line in lines}
    return {name for name in names if re.match(r"P?MPIX?_|MPIR_|MPII_|QMPI_", name)}


def names(world) -> str:
    if not fetched():
        raise Skip("wheels of other MPI libraries cannot be fetched from PyPI")
    theirs = {folder: exported(PEERS / folder / "lib/libmpi.so.12") for folder in ("mpich", "impi")}
    lacking = set().union(*theirs.values()) - exported(world.prefix / "lib/fishplate/libmpi.so.12")
    # A name of the profiling interface is left out with the name that it stands for.
    reasons = {name: [pattern for pattern in LEFT_OUT if re.fullmatch(pattern, name.removeprefix("P"))] for name in lacking}
    if unknown := sorted(name for name, patterns in reasons.items() if not patterns):
        raise Problem(f"libmpi.so.12 lacks {len(unknown)} names for no listed reason: {', '.join(unknown)}")
    used = {pattern for patterns in reasons.values() for pattern in patterns}
    if unused := [pattern for pattern in LEFT_OUT if pattern not in used]:
        raise Problem(f"nothing is left out by {', '.join(unused)}")
    return f"{len(lacking)} names of {len(set().union(*theirs.values()))} are left out"


def cases() -> list[Case]:
    return [Case("names of MPICH's and Intel's library", names)]
