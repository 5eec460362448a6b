"""Recognises failures because of procedures that the library does not support yet, and names their subjects.

The library says `MPI_X: this procedure is not supported yet` when such an error is fatal. A program that takes
the error shows only its text; then mpi4py's recorder adds the method that raised it (` in Comm.Spawn`). A C program may even
be silent about the errors of files and sessions, which return: its source tells. So it does of programs that pass without a call of
what they test: MPICH's of starting processes say ` No Errors` where there is no room for a further process.
crates/faces/tables/procedures.txt says what each procedure waits for.
"""

import re
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "crates/faces/tables/procedures.txt"
SIGN = "MPI_ERR_UNSUPPORTED_OPERATION"
SUBJECTS = {
    "files": "files",
    "fortran": "Fortran's types",
    "one-sided": "one-sided communication",
    "partitioned": "partitioned communication",
    "sessions": "sessions",
    "spawn": "starting and connecting processes",
    "tools": "the tools interface",
}
# Why mpi4py's suite skips tests when it finds that something does not work: how the reasons begin.
SKIPS = {"mpi-file": "files",
         "File": "files", "mpi-session": "sessions", "Session": "sessions"}
UNNAMED = "what the test does not tell"
# Classes of objects whose errors return unless a program asks for more, so a program may not tell them.
QUIET = ("File", "Session")
# Names of mpi4py that differ from those of MPI.
CLASSES = {"datatype": ["type"], "intracomm": ["comm"], "topocomm": ["comm"], "cartcomm": ["comm"],
           "graphcomm": ["comm"], "distgraphcomm": ["comm"]}


# Comments of C, of Fortran's fixed form and of its free form, by the end of a file's name.
COMMENTS = {".c": re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL), ".f": re.compile(r"^[cC*!].*$|!.*$", re.MULTILINE),
            ".f90": re.compile(r"!.*$", re.MULTILINE)}


def without_comments(source: Path) -> str:
    """The statements of a file; the names of procedures in its comments say nothing."""
    return COMMENTS.get(source.suffix, COMMENTS[".c"]).sub(" ", source.read_text(errors="replace"))


class Table:
    def __init__(self, path: Path = TABLE):
        self.subjects = {}  # procedure, in lower case -> its subject
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) > 2 and words[0][0].isupper() and words[2] != "works":
                self.subjects[words[0].lower()] = SUBJECTS.get(words[2], words[2])
        self.by_words = {frozenset(name.split("_")): subject for name, subject in self.subjects.items()}

    def subject(self, why: str) -> str | None:
        """The unsupported subject that caused a failure, if any."""
        for name in re.findall(r"\bMPI_(\w+): this procedure is not supported yet", why):
            return self.subjects.get(name.lower().removesuffix("_c"), UNNAMED)
        for method in re.findall(rf"{SIGN}[^;|]*? in ([\w.]+)", why):
            return self.of_method(method)
        return UNNAMED if SIGN in why else None

    def quiet(self, source: str) -> str | None:
        """An unsupported procedure that a program in C or Fortran uses, and whose error it need not have told."""
        names = re.findall(rf"\bMPI_((?:{'|'.join(QUIET)})_\w+)\s*\(", source, re.IGNORECASE)
        return next((name for name in names if name.lower().removesuffix("_c") in self.subjects), None)

    def unreached(self, source: str) -> str | None:
        """An unsupported procedure that a program calls somewhere. A program without comments that passes has not come there: the call
        would have failed. So what it is there to test has not happened, whatever it says."""
        names = re.findall(r"\bP?MPI_(\w+)\s*\(", source, re.IGNORECASE)
        return next((name for name in names if name.lower().removesuffix("_c") in self.subjects), None)

    def subject_of_skip(self, why: str) -> str | None:
        """The same for a test that skips itself."""
        for beginning, work in SKIPS.items():
            if why.startswith(beginning) and SUBJECTS[work] in self.subjects.values():
                return SUBJECTS[work]
        return None

    def of_method(self, method: str) -> str:
        """The subject of a method of mpi4py: its name has the words of the procedure's, in another order, and
        perhaps without the class."""
        owner, _, name = method.lower().rpartition(".")
        words = name.removeprefix("pympi_").split("_")
        for more in ([], [owner], CLASSES.get(owner, [])):
            for end in ([], ["c"]):
                wanted = frozenset(words + more) - frozenset(end)
                if wanted in self.by_words:
                    return self.by_words[wanted]
        return UNNAMED
