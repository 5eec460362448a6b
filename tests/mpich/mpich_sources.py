"""Fetches MPICH's conformance programs and compiles them.

Of Debian's source package `mpich` (debian.py) only test/mpi is unpacked. It is never committed.

The programs are written for configure and automake. Neither runs here: the two configuration
headers are written below, and of the Makefile.am files only `NAME_SOURCES`, `NAME_CPPFLAGS` and
`NAME_LDADD` are read.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import debian
import harness

VERSION = "4.0.2"
SHA256 = "b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860"

CONFIG = "\n".join(
    [f"#define HAVE_{name} 1" for name in (
        "STDARG_H STDINT_H STDLIB_H STRING_H STRINGS_H UNISTD_H MEMORY_H INTTYPES_H LIMITS_H "
        "SYS_TIME_H SYS_RESOURCE_H SYS_TYPES_H SYS_STAT_H PTHREAD_H GETRUSAGE STRDUP MEMSET USLEEP "
        "LONG_DOUBLE LONG_LONG LONG_LONG_INT FLOAT__COMPLEX DOUBLE__COMPLEX LONG_DOUBLE__COMPLEX "
        "_BOOL PTHREAD_BARRIER_INIT MPI_WIN_CREATE MPI_IO MPI_SPAWN MPI_INIT_THREAD "
        "MPI_TYPE_CREATE_STRUCT").split()]
    + ["#define USE_LONG_DOUBLE_COMPLEX 1", "#define USE_STRICT_MPI 1",
       "#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX", "#define SIZEOF_SHORT 2",
       "#define SIZEOF_INT 4", "#define SIZEOF_LONG 8", "#define SIZEOF_LONG_LONG 8",
       "#define SIZEOF_VOID_P 8", "#define SIZEOF_MPI_OFFSET 8", "#define POINTERINT_t long", ""])

# The basic types of the pool of generated datatypes.
POOL = ("MPI_CHAR,MPI_BYTE,MPI_SHORT,MPI_INT,MPI_LONG,MPI_UNSIGNED,MPI_FLOAT,MPI_DOUBLE,"
        "MPI_LONG_LONG,MPI_INT8_T,MPI_UINT64_T,MPI_C_DOUBLE_COMPLEX,MPI_FLOAT_INT,MPI_2INT")


# The pool calls two procedures by names that MPI 3 removed.
RENAMED = ["-DMPI_Type_hvector=MPI_Type_create_hvector", "-DMPI_Type_hindexed=MPI_Type_create_hindexed"]


def give_up(why: str) -> None:
    print(why, file=sys.stderr)
    sys.exit(harness.not_run("mpich", f"MPICH {VERSION}'s source could not be fetched from Debian"))


def fetch(cache: Path) -> Path:
    """The folder test/mpi, unpacked; ends the program where it cannot be had."""
    home = cache / f"mpich-{VERSION}"
    try:
        archive = debian.fetch("mpich", f"mpich_{VERSION}.orig.tar.xz", SHA256, cache)
    except debian.Unavailable as why:
        give_up(str(why))
    debian.unpack(archive, home, lambda member: "/test/mpi/" in member.name)
    return next(home.glob("*/test/mpi"))


class Builder:
    """Compiles programs into a folder that belongs to one header and one prefix."""

    def __init__(self, tests: Path, prefix: Path, cache: Path):
        self.tests, self.mpicc = tests, str(prefix / "bin/mpicc")
        self.header = (prefix / "include/mpi.h").read_text()
        # Without debug information and optimisation, which take a third of the compiler's time.
        self.flags = ["-std=gnu11", "-pthread", "-Werror=implicit-function-declaration",
                      "-DFISHPLATE_REMOVED_NAMES",
                      f"-I{tests}/include", f"-I{tests}/dtpools/include"]
        key = hashlib.sha256("\0".join(self.key(prefix)).encode())
        self.out = cache / f"mpich-{VERSION}-{key.hexdigest()[:12]}"
        self.makefiles: dict[Path, dict] = {}
        include = self.out / "include"
        include.mkdir(parents=True, exist_ok=True)
        (include / "mpitestconf.h").write_text(CONFIG)
        (self.out / "dtpoolsconf.h").write_text(CONFIG)  # included as ../dtpoolsconf.h
        self.flags.append(f"-I{include}")

    def key(self, prefix: Path) -> list[str]:
        """What the programs depend on."""
        return [str(prefix), self.header, CONFIG, POOL, *self.flags, *RENAMED]

    def compile(self, sources: list, target: Path, flags: list) -> str:
        """The compiler's complaint, or nothing."""
        if target.exists():
            return ""
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_name(target.name + ".part")
        command = [self.mpicc, *self.flags, *flags, *map(str, sources), "-o", str(fresh)]
        command += [] if "-c" in flags else ["-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return done.stdout + done.stderr or f"mpicc ended with {done.returncode}"
        fresh.rename(target)
        return ""

    def utilities(self) -> None:
        """The objects that every program is linked with."""
        util, pool = self.tests / "util", self.tests / "dtpools/src"
        wanted = [(util / f"{name}.c", name, []) for name in
                  ("mtest", "mtest_common", "mtest_single", "mtest_thread", "dtypes")]
        wanted += [(source, source.stem, [f"-DDTP_MPI_DATATYPE={POOL}", *RENAMED])
                   for source in sorted(pool.glob("*.c"))]
        for source, name, flags in wanted:
            if problem := self.compile([source], self.out / "util" / f"{name}.o", ["-c", *flags]):
                sys.exit(f"MPICH's {source.relative_to(self.tests)} does not compile:\n{problem}")

    def program(self, folder: str, name: str) -> tuple[Path, str]:
        """The path of a program of a folder's test list, and the compiler's complaint."""
        home = self.tests / folder
        rules = self.rules(home)
        sources = self.sources(folder, name)
        flags = [word for word in rules.get(f"{name}_CPPFLAGS", "").split()
                 if word.startswith(("-D", "-U"))]
        threaded = folder.startswith("threads")
        if threaded:
            flags.append("-DMTEST_USE_THREAD")
        objects = ["mtest", "mtest_common", "mtest_thread" if threaded else "mtest_single", "dtypes"]
        objects += [source.stem for source in (self.tests / "dtpools/src").glob("*.c")]
        flags += [f"-I{home}", *(str(self.out / "util" / f"{o}.o") for o in objects)]
        target = self.out / folder / name
        return target, self.compile(sources, target, flags)

    def sources(self, folder: str, name: str) -> list[Path]:
        home = self.tests / folder
        return [home / source for source in self.rules(home).get(f"{name}_SOURCES", f"{name}.c").split() if source.endswith(".c")]

    def rules(self, home: Path) -> dict:
        """The variables of a folder's Makefile.am."""
        if home not in self.makefiles:
            file = home / "Makefile.am"
            text = file.read_text() if file.exists() else ""
            text = re.sub(r"\\\n", " ", text)
            self.makefiles[home] = dict(re.findall(r"^(\w+)\s*=\s*(.*)$", text, re.MULTILINE))
        return self.makefiles[home]

    def missing_names(self, complaint: str) -> list[str]:
        """Names that the compiler or linker missed and that mpi.h rightly lacks."""
        named = set(re.findall(r"\b(?:MPI[XORI]?|QMPI)_\w+", complaint))
        return sorted(n for n in named if not_in_the_abi(n) and not re.search(rf"\b{n}\b", self.header))


# Names outside the ABI. Our header has those that it can have; a peer's may lack them.
GONE = set("""
    MPI_Address MPI_Type_hindexed MPI_Type_hvector MPI_Type_struct MPI_Type_extent MPI_Type_lb
    MPI_Type_ub MPI_LB MPI_UB MPI_Errhandler_create MPI_Errhandler_get MPI_Errhandler_set
    MPI_Handler_function MPI_Attr_put MPI_Attr_get MPI_Attr_delete MPI_Keyval_create
    MPI_Keyval_free MPI_COMBINER_HVECTOR_INTEGER MPI_COMBINER_HINDEXED_INTEGER
    MPI_COMBINER_STRUCT_INTEGER MPI_Fint MPI_F_STATUS_IGNORE MPI_F_STATUSES_IGNORE
    MPI_Info_get_valuelen_c MPI_BFLOAT16_T
""".split())


def not_in_the_abi(name: str) -> bool:
    return (name in GONE or name.startswith(("MPIX_", "MPIO_", "MPIR_", "MPII_", "QMPI_"))
            or name.endswith(("_c2f", "_f2c", "_c2f08", "_f082c")))
