"""Programs of other ABIs get our library of that ABI. Those that cannot are refused, and those that load another library are named."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from harness import Problem
from watched import Job

HERE = Path(__file__).resolve().parent
FAKE = "int fake(void) { return 0; }\n"
CALLS = "int fake(void);\nint main(void) { return fake(); }\n"
# MPICH's MPI_COMM_WORLD is an integer.
MPICH = """#include <stdio.h>
int MPI_Init(int *, char ***); int MPI_Finalize(void); int MPI_Comm_rank(int, int *); int MPI_Comm_size(int, int *);
int main(int argc, char **argv) {
    int rank = -1, size = -1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(0x44000000, &rank);
    MPI_Comm_size(0x44000000, &size);
    printf("%d/%d\\n", rank, size);
    return MPI_Finalize();
}
"""
# A program with an MPI library in itself, as a static link leaves it.
STATIC = "int MPI_Init(void *argc, void *argv) { return 0; }\nint main(void) { return MPI_Init(0, 0); }\n"
# A program that counts its calls by the profiling interface.
WRAPS = """#include <mpi.h>
static int calls;
int MPI_Init(int *argc, char ***argv) { calls++; return PMPI_Init(argc, argv); }
int main(int argc, char **argv) { MPI_Init(&argc, &argv); return MPI_Finalize() || calls != 1; }
"""
OPENS = """#include <dlfcn.h>
#include <unistd.h>
int main(int argc, char **argv) { if (argc < 2 || !dlopen(argv[1], RTLD_NOW)) return 1; for (;;) pause(); }
"""


def built(world, name: str, text: str, *options: str) -> Path:
    """A file made of this C program."""
    folder = world.work / "libraries"
    folder.mkdir(exist_ok=True)
    target = folder / name
    subprocess.run(["cc", "-x", "c", "-", "-o", str(target), *options], input=text, text=True, check=True)
    return target


def other_abi(name: str, *patterns: str):
    def test(world):
        library = built(world, name, FAKE, "-shared", "-fPIC", f"-Wl,-soname,{name}")
        program = built(world, f"linked-with-{name}", CALLS, "-x", "none", str(library), f"-Wl,-rpath,{library.parent}")
        for allowed, wanted in [([], 126), (["--allow-other-mpi"], 0)]:
            with Job(world.work, [world.mpiexec, *allowed, "-n", 2, program]) as job:
                if (code := job.end(10)) != wanted:
                    raise Problem(f"exit status {code} with {allowed}: {job.err}")
                job.check_one_line(f"is linked with {name}", *patterns)
        with Job(world.work, [world.mpiexec, "-n", 1, program]) as job:
            job.end(10)
            if job.err:
                raise Problem(f"one rank alone is a job of one rank: {job.err}")
    return f"a program is linked with {name}", test


def through_library(world):
    """The library that a library of the program needs: its file is named."""
    fortran = built(world, "libmpi_mpifh.so.20", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi_mpifh.so.20")
    solver = built(world, "libsolver.so", "int fake(void); int solve(void) { return fake(); }\n", "-shared", "-fPIC",
                   "-Wl,-soname,libsolver.so", "-x", "none", str(fortran), f"-Wl,-rpath,{fortran.parent}")
    program = built(world, "solves", "int solve(void); int main(void) { return solve(); }\n", "-x", "none", str(solver),
                    f"-Wl,-rpath,{solver.parent}", "-Wl,--enable-new-dtags", "-Wl,--allow-shlib-undefined")
    script = world.work / "libraries" / "solves.sh"
    script.write_text(f"#!{program}\n")
    script.chmod(0o755)
    for command in [program, script]:
        refused(world, command, f"{command.name} is linked with libmpi_mpifh.so.20 .Open MPI's Fortran. by .*/libsolver.so",
                "none of the MPI libraries here", "build it again with mpifort")


def refused(world, program: Path, *patterns: str, hosts: tuple = ()):
    """A program of two ranks is refused, and runs on demand with the line of the refusal."""
    for allowed, wanted in [([], 126), (["--allow-other-mpi"], 0)]:
        with Job(world.work, [world.mpiexec, *hosts, *allowed, "-n", 2, program]) as job:
            if (code := job.end(20)) != wanted:
                raise Problem(f"exit status {code} with {allowed}: {job.err}")
            job.check_one_line(*patterns)


def static(world):
    """A static link of an MPI library is refused, and a program that wraps MPI_Init is none."""
    program = built(world, "static", STATIC)
    refused(world, program, "has MPI_Init in itself", "static link")
    prefix = world.mpiexec.parent.parent
    wraps = built(world, "wraps", WRAPS, f"-I{prefix}/include", "-x", "none", str(prefix / "lib/libmpi_abi.so.1"))
    with Job(world.work, [world.mpiexec, "-n", 2, wraps]) as job:
        if (code := job.end(10)) != 0 or job.err:
            raise Problem(f"exit status {code}: {job.err}")


def on_hosts(world):
    """The agent of the host that starts rank 0 finds the library, by the files of that host."""
    library = built(world, "libmpi.so.20", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.20")
    program = built(world, "linked-remotely", CALLS, "-x", "none", str(library), f"-Wl,-rpath,{library.parent}")
    hosts = ("--hosts", "h0:1,h1:1", "--launch-with", f"{HERE / 'as-host'} {{host}}")
    refused(world, program, "is linked with libmpi.so.20 .an ABI of another library.", "libmpi_abi.so.1, .*libmpi.so.12", hosts=hosts)


def two_abis(world):
    """A program that needs the libraries of two ABIs is named, with the files that need them."""
    prefix = world.mpiexec.parent.parent
    ours = prefix / "lib/fishplate/libmpi.so.12"
    part = built(world, "libpart.so", MPICH.replace("main", "part"), "-shared", "-fPIC", "-Wl,-soname,libpart.so", "-x", "none", str(ours))
    source = Path(__file__).with_name("which_library.c").read_text()
    program = built(world, "mixed", source, f"-I{prefix}/include", "-Wl,--no-as-needed", "-x", "none", str(prefix / "lib/libmpi_abi.so.1"),
                    str(part), f"-Wl,-rpath,{part.parent}", "-Wl,--allow-shlib-undefined")
    with Job(world.work, [world.mpiexec, "-n", 2, program]) as job:
        if (code := job.end(10)) != 0:
            raise Problem(f"exit status {code}: {job.err}")
        job.check_one_line("two ABIs", "libmpi_abi.so.1 .the standard ABI. by .*/mixed", "libmpi.so.12 .* by .*/libpart.so")


def verbose(world):
    """Two lines name the library, the file that needs it, and the folders that are searched first."""
    ours = world.mpiexec.parent.parent.resolve() / "lib/fishplate/libmpi.so.12"
    program = built(world, "verbose", MPICH, "-x", "none", str(ours))
    wanted = {program: f"verbose needs libmpi.so.12 \\(the ABI of MPICH and Intel MPI\\) by .*/verbose$",
              "sleep": "sleep needs no MPI library at its start"}
    for command, line in wanted.items():
        with Job(world.work, [world.mpiexec, "-v", "-n", 2, command, 0]) as job:
            if (code := job.end(10)) != 0:
                raise Problem(f"exit status {code}: {job.err}")
            lines = job.err.splitlines()
            folders = f"searched first: {ours.parent.parent}, {ours.parent}$"
            if len(lines) != 4 or not re.search(line, lines[0]) or not re.search(folders, lines[1]):
                raise Problem(f"{command}: {job.err}")


# Names of the standard that work and that do not yet, and one of an extension.
IMPORTS = """int MPI_Init(int *, char ***); int PMPI_Barrier(int); int MPI_Win_fence(int, int); int MPIX_Comm_revoke(void);
int use(void) { return MPI_Init(0, 0) + PMPI_Barrier(0x44000000) + MPI_Win_fence(0, 0) + MPIX_Comm_revoke(); }
"""


def info(world):
    """`fishplate info` shows the ABI of a program, the file that needs it, and the state of each name."""
    prefix = world.mpiexec.parent.parent
    ours = prefix.resolve() / "lib/fishplate/libmpi.so.12"
    part = built(world, "libimports.so", IMPORTS, "-shared", "-fPIC", "-Wl,-soname,libimports.so", "-x", "none", str(ours))
    program = built(world, "imports", "int use(void); int main(void) { return use(); }\n", "-x", "none", str(part),
                    f"-Wl,-rpath,{part.parent}", "-Wl,--allow-shlib-undefined")
    command = [prefix / "bin/fishplate", "info", program]
    with Job(world.work, [*command, "--json"]) as job:
        if (code := job.end(10)) != 0:
            raise Problem(f"exit status {code}: {job.err}")
        found = json.loads(job.out)
        library = {"name": "libmpi.so.12", "abi": "mpich", "contents": "the ABI of MPICH and Intel MPI",
                   "needed_by": str(part), "used": str(ours)}
        names = {"MPI_Init": "supported", "PMPI_Barrier": "supported", "MPIX_Comm_revoke": "missing_beside_the_abi"}
        state = {row["name"]: row["state"] for row in found["names"]}
        fence = state.pop("MPI_Win_fence")
        if found["libraries"] != [library] or found["refusal"] or state != names or fence not in ("supported", "not_yet"):
            raise Problem(job.out)
    with Job(world.work, command) as job:
        job.end(10)
        for line in [r"ABI +the ABI of MPICH and Intel MPI", rf"needs +libmpi.so.12 by {part}", rf"would use +{ours}",
                     r"supported +2|supported +3", r"outside the ABI, missing +1 +MPIX_Comm_revoke"]:
            if not re.search(line, job.out):
                raise Problem(f"{line}: {job.out}")
    fortran = built(world, "libmpichf90.so.3", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpichf90.so.3")
    refused_one = built(world, "info-fortran", CALLS, "-x", "none", str(fortran), f"-Wl,-rpath,{fortran.parent}")
    for name, code, pattern in [(refused_one, 0, "several ranks +no: .*libmpichf90.so.3.*Fortran"), (Path(__file__), 0, "ABI +unknown"),
                                ("/nowhere/program", 2, "there is no program /nowhere/program")]:
        with Job(world.work, [*command[:-1], name]) as job:
            if job.end(10) != code or not re.search(pattern, (job.out + job.err).replace("\n" + " " * 22, " ")):
                raise Problem(f"{name}: {job.out} {job.err}")


# What a program has of Open MPI's C++ bindings: a function that our library has, and one that it has not.
CXX = """int MPI_Init(int *, char ***);
void there(void) __asm__("_ZN3MPI20InitializeInterceptsEv");
void absent(void) __asm__("_ZN3MPI4Comm17Create_errhandlerEPFvRS0_PizE");
"""


def info_cxx(world):
    """Names of the C++ bindings that our library lacks are counted, and shown as people write them."""
    folder = world.mpiexec.parent.parent.resolve() / "lib/fishplate"
    # The library that the program was built with has both.
    whole = built(world, "libmpi_cxx.so.40", CXX + "void there(void) {} void absent(void) {}\n", "-shared", "-fPIC", "-Wl,-soname,libmpi_cxx.so.40")
    program = built(world, "cxx", CXX + "int main(void) { MPI_Init(0, 0); there(); absent(); return 0; }\n", "-x", "none",
                    str(folder / "libmpi.so.40"), str(whole))
    command = [world.mpiexec.parent / "fishplate", "info", program]
    with Job(world.work, [*command, "--json"]) as job:
        job.end(10)
        state = {row["name"]: row["state"] for row in json.loads(job.out)["names"]}
        wanted = {"MPI_Init": "supported", "_ZN3MPI20InitializeInterceptsEv": "supported_beside_the_abi",
                  "_ZN3MPI4Comm17Create_errhandlerEPFvRS0_PizE": "missing_beside_the_abi"}
        if state != wanted:
            raise Problem(job.out)
    with Job(world.work, command) as job:
        job.end(10)
        text = " ".join(job.out.split())
        for line in ["C++ bindings 1 of the names that the program needs are not there: MPI::Comm::Create_errhandler;",
                     "outside the ABI, missing 1 MPI::Comm::Create_errhandler"]:
            if line not in text:
                raise Problem(f"{line}: {job.out}")


def search_path(world):
    """DT_RPATH comes before LD_LIBRARY_PATH; the ranks load our library all the same."""
    prefix = world.mpiexec.parent.parent
    own = (prefix / "lib/libmpi_abi.so.1").resolve()
    other = world.work / "libraries" / "other"
    other.mkdir(parents=True, exist_ok=True)
    (other / "libmpi_abi.so.1").write_bytes(own.read_bytes())
    source = Path(__file__).with_name("which_library.c").read_text()
    program = built(world, "which", source, f"-I{prefix}/include", "-x", "none", str(own),
                    f"-Wl,-rpath,{other}", "-Wl,--disable-new-dtags")
    with Job(world.work, [world.mpiexec, "-n", 2, program], env={"LD_PRELOAD": ""}) as job:
        if (code := job.end(10)) != 0:
            raise Problem(f"exit status {code}: {job.err}")
        job.check_one_line("which would load .*/other/libmpi_abi.so.1 by its own DT_RPATH", "LD_PRELOAD")
        loaded = {os.path.realpath(line.split(" ", 1)[1]) for line in job.out.splitlines()}
        if loaded != {str(own)} or not all(line.startswith("2 ") for line in job.out.splitlines()):
            raise Problem(f"the ranks loaded {job.out}")


def mpich(world):
    """A program that needs libmpi.so.12 gets ours, also where its own search path has another."""
    ours = world.mpiexec.parent.parent / "lib/fishplate/libmpi.so.12"
    other = built(world, "libmpi.so.12", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.12")
    for tags, lines in [("--enable-new-dtags", 0), ("--disable-new-dtags", 1)]:
        program = built(world, f"mpich{tags}", MPICH, "-x", "none", str(ours), f"-Wl,-rpath,{other.parent},{tags}")
        with Job(world.work, [world.mpiexec, "-n", 2, program], env={"LD_PRELOAD": ""}) as job:
            if (code := job.end(10)) != 0 or sorted(job.out.split()) != ["0/2", "1/2"]:
                raise Problem(f"exit status {code}, {job.out!r}: {job.err}")
            if lines:
                job.check_one_line("would load .*/libmpi.so.12 by its own DT_RPATH", "LD_PRELOAD")
            elif job.err:
                raise Problem(f"nothing is to be said: {job.err}")


def fixed_environ(world):
    """A program at fixed addresses has a copy of `environ`, which is the one that MPI_Init must see, with what the program has changed."""
    folder = world.mpiexec.parent.parent / "lib/fishplate"
    source = MPICH.replace("int main", "#include <stdlib.h>\nextern char **environ;\nint main")
    source = source.replace("size = -1;", 'size = environ ? -1 : -2; setenv("MV2_SET_BY_PROGRAM", "1", 1);')
    program = built(world, "environ", source, "-no-pie", "-fno-pie", "-x", "none", str(folder / "libmpi.so.12"))
    with Job(world.work, [world.mpiexec, "-n", 2, program]) as job:
        if (code := job.end(10)) != 0 or sorted(job.out.split()) != ["0/2", "1/2"]:
            raise Problem(f"exit status {code}, {job.out!r}: {job.err}")
    # A process without a launcher says itself that a setting has no meaning.
    with Job(world.work, ["env", f"LD_LIBRARY_PATH={folder}", program]) as job:
        if (code := job.end(10)) != 0 or job.out.split() != ["0/1"] or "MV2_SET_BY_PROGRAM" not in job.err:
            raise Problem(f"exit status {code}, {job.out!r}: {job.err}")


def mpich_abi(world):
    """Handles, statuses, constants, callbacks and limits of MPICH's ABI, by a program that has its numbers."""
    of_abi(world, "mpich_abi", "libmpi.so.12")


def openmpi_abi(world):
    """The same program with the facts of Open MPI's ABI. At fixed addresses it has copies of the objects whose addresses are handles."""
    for options in [[], ["-no-pie", "-fno-pie"], ["-fPIC"]]:
        of_abi(world, "openmpi_abi", "libmpi.so.40", *options)


def openmpi_cxx(world):
    """What programs of Open MPI's C++ bindings import."""
    folder = world.mpiexec.parent.parent / "lib/fishplate"
    cxx = Path(__file__).with_name("openmpi_abi") / "cxx.c"
    for options in [["-no-pie", "-fno-pie"], ["-fPIC"]]:
        of_abi(world, "openmpi_abi", "libmpi.so.40", "-rdynamic", *options, source=cxx, more=(str(folder / "libmpi_cxx.so.40"),))


def of_abi(world, abi: str, library: str, *options: str, source: Path = Path(__file__).parent / "mpich_abi/abi.c", more: tuple = ()):
    tests = Path(__file__).parent
    ours = world.mpiexec.parent.parent / "lib/fishplate" / library
    program = built(world, f"{abi}-{source.stem}", source.read_text(), f"-I{tests / abi}", *options, "-Wall", "-Wextra", "-Werror", "-x", "none", *more, str(ours))
    with Job(world.work, [world.mpiexec, "-n", 3, program]) as job:
        if (code := job.end(20)) != 0 or job.out.split() != ["passed"] * 3 or job.err:
            raise Problem(f"exit status {code}, {job.out!r}: {job.err}")


def loaded_later(world):
    """Seen in the memory of ranks that never call this library: the searches come before the time is up."""
    library = built(world, "libmpi.so.40", FAKE, "-shared", "-fPIC", "-Wl,-soname,libmpi.so.40")
    program = built(world, "opens", OPENS)
    with Job(world.work, [world.mpiexec, "-n", 2, "--timeout", 2, program, library]) as job:
        if (code := job.end(10)) != 124:
            raise Problem(f"exit status {code}, not 124: {job.err}")
        job.check_says("none of the 2 ranks called MPI_Init", "libmpi.so.40 in memory", "the ABI of Open MPI")


def no_library(world):
    with Job(world.work, [world.mpiexec, "-n", 2, "sh", "-c", "sleep 0.3"]) as job:
        job.end(10)
        if job.err:
            raise Problem(f"programs without MPI are fine: {job.err}")


def wheel(world):
    """A python gets what a wheel of mpi4py needs to choose MPICH's ABI, unless the user has chosen."""
    program = [sys.executable, "-c", "import os, ctypes; ctypes.CDLL('libmpi.so.12').MPI_Initialized; os.write(1, os.environb[b'MPI4PY_MPIABI'] + b'\\n')"]
    for given, wanted in [({}, "mpich"), ({"MPI4PY_MPIABI": "openmpi"}, "openmpi")]:
        with Job(world.work, [world.mpiexec, "-n", 2, *program], env=given) as job:
            if (code := job.end(20)) != 0 or job.out.split() != [wanted] * 2:
                raise Problem(f"exit status {code}, {job.out!r}: {job.err}")


def tests() -> list:
    return [
        ("a program of MPICH's ABI", mpich),
        ("a program at fixed addresses that names environ", fixed_environ),
        ("handles, statuses, callbacks and limits of MPICH's ABI", mpich_abi),
        ("handles, statuses, callbacks and limits of Open MPI's ABI", openmpi_abi),
        ("the C++ bindings of Open MPI's ABI", openmpi_cxx),
        other_abi("libmpichf90.so.3", "MPICH's Fortran", "mpifort"),
        other_abi("libmpi.so.20", "an ABI of another library", "mpi4py"),
        ("a library of a program needs another library", through_library),
        ("a static link of an MPI library", static),
        ("another library on other hosts", on_hosts),
        ("libraries of two ABIs in one program", two_abis),
        ("--verbose names the libraries", verbose),
        ("info names the libraries of a program and the state of its MPI names", info),
        ("info counts the names of C++ bindings that are not there", info_cxx),
        ("a program's own search path finds another library", search_path),
        ("ranks load another library while they run", loaded_later),
        ("programs without MPI", no_library),
        ("a python with a wheel of mpi4py", wheel),
    ]
