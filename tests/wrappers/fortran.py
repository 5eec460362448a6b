"""mpifort: the words that it prints, the modules that it has built for a compiler, and how build systems find both.

Where the system has no Fortran compiler, the tests that compile are skipped. Compilers of other vendors are played by scripts, which print
the version of one, check the options that it would not know, and call the system's.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Problem, Skip  # noqa: E402

# The variables that name the compiler, by the name of the wrapper, the strongest first.
USUAL = ("MPIFORT_FC", "MPICH_FC", "OMPI_FC", "I_MPI_FC")
COMPILERS = {"mpifort": USUAL, "mpif90": (*USUAL, "MPICH_F90", "I_MPI_F90"), "mpif77": (*USUAL, "MPICH_F77", "OMPI_F77", "I_MPI_F77")}
SECONDS = 120
ARCHIVE = "libfishplate_fortran.a"

FIXED = """\
      PROGRAM FIXED
      INCLUDE 'mpif.h'
      INTEGER IERR, RANK, TOTAL
      CALL MPI_INIT(IERR)
      CALL MPI_COMM_RANK(MPI_COMM_WORLD, RANK, IERR)
      CALL MPI_ALLREDUCE(RANK, TOTAL, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, IERR)
      IF (TOTAL .NE. 1) STOP 1
      CALL MPI_FINALIZE(IERR)
      END
"""
FREE = """\
program free
  use {module}
  implicit none
  integer :: ierr, rank, total
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (total /= 1) stop 1
  call MPI_Finalize(ierr)
end program
"""
# A module `mpi` that takes a compiler no time, for tests of how modules are built.
SHORT = "module mpi\n  use mpi_constants\n  use mpi_integer_handles\nend module\n"
CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(probe Fortran)
find_package(MPI 3.1 REQUIRED COMPONENTS Fortran)
if(NOT MPI_Fortran_HAVE_F77_HEADER OR NOT MPI_Fortran_HAVE_F90_MODULE)
  message(FATAL_ERROR "mpif.h or the module mpi is not found")
endif()
@F08@
add_executable(program program.f90)
target_link_libraries(program MPI::MPI_Fortran)
"""
CMAKE_F08 = """\
if(NOT MPI_Fortran_HAVE_F08_MODULE)
  message(FATAL_ERROR "the module mpi_f08 is not found")
endif()
"""
MESON = """\
project('probe', 'fortran')
mpi = dependency('mpi', language: 'fortran', version: '>=3')
executable('program', 'program.f90', dependencies: mpi)
"""
# Compilers of others: version, name, words that their modules need and that the system's compiler does not know.
OTHERS = {
    "flang": ("flang version 20.1.0", "flang-new", ()),
    "intel": ("ifx (IFX) 2025.2.0 20250605", "ifx", ()),
    "nvfortran": ("\nnvfortran 25.7-0 64-bit target on x86-64 Linux", "nvfortran", ()),
    "nag": ("NAG Fortran Compiler Release 7.2(Shin-Urayasu) Build 7203", "nagfor", ("-PIC",)),
    "cray": ("Cray Fortran : Version 18.0.1", "crayftn", ("-hPIC", "-em")),
}


def system_compiler() -> str:
    for name in ("gfortran", "flang", "flang-new", "flang-new-19"):
        if shutil.which(name):
            return name
    raise Skip("no Fortran compiler here")


class Fortran:
    """mpifort of a prefix with a cache and a temporary folder of its own. A test that is not about the building of modules shares a cache
    with others (`shares`), because a compiler takes seconds for them."""

    def __init__(self, world, shares: bool = False, **environment):
        self.world, self.work = world, Path(tempfile.mkdtemp(dir=world.work))
        self.cache, self.temporary = world.work / "shared-cache" if shares else self.work / "cache", self.work / "tmp"
        self.temporary.mkdir()
        inherited = {name: text for name, text in os.environ.items()
                     if name not in (*COMPILERS["mpif77"], *COMPILERS["mpif90"], "MPIFORT_CACHE", "MPIFORT_INTEGER8")}
        self.environment = inherited | {"PATH": f"{world.prefix}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": str(self.cache),
                                        "TMPDIR": str(self.temporary)} | environment
        (self.work / "fixed.f").write_text(FIXED)
        (self.work / "free.f90").write_text(FREE.format(module="mpi"))

    def start(self, *words) -> subprocess.Popen:
        return subprocess.Popen([str(word) for word in words], env=self.environment, cwd=self.work, text=True, start_new_session=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *words, fails: bool = False) -> str:
        """Both outputs of a command, which must succeed, or fail."""
        process = self.start(*words)
        out, err = process.communicate(timeout=SECONDS)
        if bool(process.returncode) != fails:
            raise Problem(f"`{' '.join(map(str, words))}` ended with {process.returncode}" + harness.output(out + err))
        return out + err

    def kept(self) -> list[str]:
        """Whatever lies in the cache."""
        folder = self.cache / "fishplate/fortran"
        return sorted(path.name for path in folder.iterdir()) if folder.exists() else []

    def one_folder(self) -> Path:
        """The only thing in the cache, which must be complete."""
        kept = self.kept()
        if len(kept) != 1 or not (self.cache / "fishplate/fortran" / kept[0] / ARCHIVE).exists():
            raise Problem(f"the cache has {kept}")
        return self.cache / "fishplate/fortran" / kept[0]

    def script(self, name: str, text: str) -> Path:
        path = self.work / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path


def expect(seen, wanted, what: str) -> None:
    if seen != wanted:
        raise Problem(f"{what} is {seen!r}, not {wanted!r}")


def expect_in(text: str, *parts) -> None:
    for part in parts:
        if part not in text:
            raise Problem(f"{part!r} is not in {text!r}")


def variables(wrapper: str):
    def test(world) -> None:
        names = COMPILERS[wrapper]
        for at, name in enumerate(names):
            fortran = Fortran(world, **{other: f"compiler-{other}" for other in names[at:]})
            expect(fortran.run(wrapper, "-showme:command").strip(), f"compiler-{name}", "the compiler")
            for option in ("-fc", "-f90", "-f77"):
                expect(fortran.run(wrapper, f"{option}=own", "-showme:command").strip(), "own", "the compiler")
    return f"{wrapper}: the variables that name the compiler", test


def words(world) -> None:
    compiler, fortran = system_compiler(), Fortran(world, shares=True)
    shown = fortran.run("mpifort", f"-fc={compiler}", "-show", "-O2", "a.f90").split()
    folder = fortran.one_folder()
    sources, library = world.prefix / "share/fishplate/fortran", world.prefix / "lib"
    libraries = ["-lfishplate_fortran", "-lmpifort_abi", "-lmpi_abi"]
    linked = [f"-L{folder}", f"-L{library}", f"-Wl,-rpath,{library}", "-Wl,--enable-new-dtags", *libraries]
    expect(shown, [compiler, f"-I{sources}", f"-I{folder}", "-O2", "a.f90", *linked], "the command")
    for option in ("-link_info", "-link-info", "-showme"):
        expect(fortran.run("mpifort", f"-fc={compiler}", option, "-O2", "a.f90").split(), shown, f"the answer to {option}")
    for option in ("-compile_info", "-compile-info"):
        expect(fortran.run("mpifort", f"-fc={compiler}", option, "-O2", "a.f90").split(), shown[:-len(linked)], f"the answer to {option}")
    answers = {"compile": f"-I{sources} -I{folder}", "link": " ".join(linked), "incdirs": f"{sources} {folder}",
               "libdirs": f"{folder} {library}", "libs": "fishplate_fortran mpifort_abi mpi_abi"}
    for what, wanted in answers.items():
        expect(fortran.run("mpifort", f"-fc={compiler}", f"-showme:{what}").strip(), wanted, f"the answer to -showme:{what}")
    expect(fortran.run("mpifort", f"-fc={compiler}", "-modules").strip(), str(folder), "the folder of the modules")
    version = fortran.run("mpifort", "-showme:version")
    expect_in(version, "MPI 5.0.0")
    expect(fortran.run("mpifort", f"-fc={compiler}", "-v").splitlines()[0] + "\n", version, "the first line of -v")
    expect(fortran.run("mpifort", f"-fc={compiler}", "--version"), fortran.run(compiler, "--version"), "the answer to --version")
    expect_in(fortran.run("mpifort", "-showme:help"), "-modules", "-fc=COMPILER", *USUAL)


def forms() -> list[str]:
    return ["fixed.f", "free.f90"]


def programs(world) -> None:
    compiler, fortran = system_compiler(), Fortran(world, shares=True)
    names = forms()
    if has_f08(world):
        (fortran.work / "f08.f90").write_text(FREE.format(module="mpi_f08"))
        names.append("f08.f90")
    for source in names:
        fortran.run("mpifort", f"-fc={compiler}", "-o", "program", source)
        fortran.run("mpiexec", "-n", "2", fortran.work / "program")
        fortran.run("mpif90", f"-fc={compiler}", "-c", source, "-o", "part.o")
        fortran.run("mpif77", f"-fc={compiler}", "part.o", "-o", "program")
        fortran.run("mpiexec", "-n", "2", fortran.work / "program")


def has_f08(world) -> bool:
    return "mpi_f08.f90" in (world.prefix / "share/fishplate/fortran/sources").read_text()


def ten_at_once(world) -> None:
    """Without locks, too: then all build, and the first folder that is ready counts."""
    compiler = system_compiler()
    for locks in (True, False):
        fortran = Fortran(world)
        if not locks:
            short(fortran)
            fortran.script("flock", "exit 1")
            fortran.environment["PATH"] = f"{fortran.work}:{fortran.environment['PATH']}"
        many = 10 if locks else 3
        started = [fortran.start("mpifort", f"-fc={compiler}", "-o", f"program{number}", "free.f90") for number in range(many)]
        for process in started:
            out, err = process.communicate(timeout=SECONDS)
            if process.returncode:
                raise Problem(f"mpifort ended with {process.returncode}{harness.output(out + err)}")
        fortran.one_folder()
        for number in range(many):
            fortran.run("mpiexec", "-n", "2", fortran.work / f"program{number}")


def built_once(world) -> None:
    """The compiler is asked for its version and for the program, once the modules are there."""
    fortran = short(Fortran(world))
    fortran.script("counting", f'echo "$*" >>calls; exec {system_compiler()} "$@"')
    log = fortran.work / "calls"
    compiler = f"-fc={fortran.work / 'counting'}"
    fortran.run("mpifort", compiler, "-c", "free.f90")
    log.write_text("")
    fortran.run("mpifort", compiler, "-c", "free.f90")
    calls = log.read_text().splitlines()
    expect([calls[0], calls[-1].split()[-2:], len(calls)], ["--version", ["-c", "free.f90"], 2], "what the compiler was called with")
    # Another version is another compiler.
    fortran.script("counting", f'[ "$1" != --version ] || exec echo GNU Fortran 99.1; exec {system_compiler()} "$@"')
    fortran.run("mpifort", compiler, "-c", "free.f90")
    expect(len(fortran.kept()), 2, "the number of folders")


def slow(world) -> None:
    """The message of a build that takes long comes while it lasts, and once."""
    fortran = short(Fortran(world))
    gate = fortran.work / "gate"
    os.mkfifo(gate)
    fortran.script("slow", f'[ "$1" = --version ] || [ -e {gate}.opened ] || {{ cat {gate}; : >{gate}.opened; }}; exec {system_compiler()} "$@"')
    process = fortran.start("mpifort", f"-fc={fortran.work / 'slow'}", "-c", "free.f90")
    limit = threading.Timer(SECONDS, lambda: os.killpg(process.pid, signal.SIGKILL))
    limit.start()
    first = process.stderr.readline()
    gate.write_text("")
    rest = process.stderr.read()
    limit.cancel()
    expect_in(first, "mpifort: building the Fortran modules for")
    expect((process.wait(), rest), (0, ""), "the end, and what else was said")


def interrupted(world) -> None:
    fortran = Fortran(world)
    gate = fortran.work / "gate"
    os.mkfifo(gate)
    fortran.script("stuck", f'[ "$1" = --version ] && exec echo GNU Fortran 1.0; echo begun >{gate}; exec sleep {SECONDS}')
    process = fortran.start("mpifort", f"-fc={fortran.work / 'stuck'}", "-c", "free.f90")
    expect(gate.read_text(), "begun\n", "the sign of the compiler")
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    expect((fortran.kept(), list(fortran.temporary.iterdir())), ([], []), "what is left")


def refused_cache(world) -> None:
    compiler = system_compiler()
    fortran = short(Fortran(world))
    fortran.cache.write_text("a file is no folder")
    said = fortran.run("mpifort", f"-fc={compiler}", "-o", "program", "free.f90")
    own = fortran.temporary / f"fishplate-fortran-{os.getuid()}"
    expect_in(said, f"no file can be made in {fortran.cache}/fishplate/fortran: the modules are kept in {own}")
    expect((own.stat().st_mode & 0o777, len(list(own.iterdir()))), (0o700, 1), "the temporary folder")
    expect(fortran.run("mpifort", f"-fc={compiler}", "-o", "program", "free.f90"), "", "what is said the next time")
    # Somebody else made a link of that name.
    shutil.move(own, fortran.work / "elsewhere")
    own.symlink_to(fortran.work / "elsewhere")
    expect_in(fortran.run("mpifort", f"-fc={compiler}", "-c", "free.f90", fails=True), "no file can be made in", str(own), "MPIFORT_CACHE")
    fortran.environment["MPIFORT_CACHE"] = str(fortran.work / "named")
    fortran.run("mpifort", f"-fc={compiler}", "-c", "free.f90")
    expect(len(list((fortran.work / "named").iterdir())), 1, "the number of folders in MPIFORT_CACHE")


def private_cache(world) -> None:
    """A home that is missing is not made, and what is made in one is the user's alone."""
    fortran = Fortran(world)
    fortran.script("broken", "echo GNU Fortran 1.0; [ \"$1\" = --version ]")
    del fortran.environment["XDG_CACHE_HOME"]
    words = ["sh", "-c", "umask 000; exec \"$@\"", "sh", "mpifort", f"-fc={fortran.work / 'broken'}", "-c", "free.f90"]
    home, there = fortran.work / "home", Path("/nonexistent").exists()
    for missing in (home, None):
        fortran.environment |= {"HOME": str(missing)} if missing else {}
        expect_in(fortran.run(*words, fails=True), "no home folder (HOME): the modules are kept in", str(fortran.temporary))
        fortran.environment.pop("HOME", None)
        own = list(fortran.temporary.iterdir())
        expect([path.stat().st_mode & 0o777 for path in own], [0o700], "the mode of the temporary folder")
        shutil.rmtree(own[0])
    expect((home.exists(), Path("/nonexistent").exists()), (False, there), "what is made of a home")
    home.mkdir()
    fortran.environment["HOME"] = str(home)
    fortran.run(*words, fails=True)
    made = [home / path for path in (".cache", ".cache/fishplate", ".cache/fishplate/fortran")]
    expect([path.stat().st_mode & 0o777 for path in made], [0o700] * 3, "the modes of the cache")


def full_disk(world) -> None:
    fortran = Fortran(world)
    fortran.cache.mkdir()
    space = ["unshare", "--mount", "--map-root-user", "sh", "-c"]
    mounted = f"mount -t tmpfs -o size=256k tmpfs {fortran.cache}"
    if subprocess.run([*space, mounted], capture_output=True).returncode:
        raise Skip("no file system can be mounted here")
    said = fortran.run(*space, f"{mounted} && {{ mpifort -fc={system_compiler()} -c free.f90; code=$?; find {fortran.cache}/* ! -type d; exit $code; }}",
                       fails=True)
    expect_in(said, "mpifort: the Fortran modules cannot be built for", "is full")
    expect([line for line in said.splitlines() if line.startswith(str(fortran.cache))], [], "what is left")


def copied(fortran: Fortran) -> Path:
    """A tree of its own, without modules."""
    tree = fortran.work / "tree"
    for folder in ("bin", "lib", "share/fishplate/fortran", "include"):
        shutil.copytree(fortran.world.prefix / folder, tree / folder, symlinks=True)
    shutil.rmtree(tree / "lib/fishplate/modules", ignore_errors=True)
    return tree


def short(fortran: Fortran) -> Fortran:
    """Its mpifort is of a tree whose modules are short: they declare the constants alone."""
    tree = copied(fortran)
    sources = tree / "share/fishplate/fortran"
    (sources / "mpi.f90").write_text(SHORT)
    (sources / "sources").write_text("mpi_constants.f90\nmpi.f90\n")
    fortran.environment["PATH"] = f"{tree}/bin:{os.environ['PATH']}"
    return fortran


def probe(world) -> None:
    """The word that a program in two languages prints chooses sources; a program that does not end well stands for `plain`."""
    compiler = system_compiler()
    for body, wanted in (("print '(a)', trim(merge('descriptors', 'plain      ', seven() == 7))", "descriptors"), ("error stop 'no'", "plain"),
                         ("this is no statement", "plain")):
        fortran = Fortran(world)
        tree = copied(fortran)
        sources = tree / "share/fishplate/fortran"
        for old in sources.glob("probe.*"):
            old.unlink()
        for word in ("descriptors", "plain"):
            (sources / f"chosen_{word}.f90").write_text(f"module chosen_{word}\nend module\n")
        (sources / "sources").write_text("mpi_constants.f90\nchosen_plain.f90 plain\nchosen_descriptors.f90 descriptors\n")
        (sources / "probe.c").write_text("int seven(void) { return 7; }\n")
        (sources / "probe.f90").write_text(f"interface\ninteger function seven() bind(C)\nend function\nend interface\n{body}\nend\n")
        folder = Path(fortran.run(tree / "bin/mpifort", f"-fc={compiler}", "-modules").strip())
        expect([path.stem for path in folder.glob("chosen_*.mod")], [f"chosen_{wanted}"], f"what is built where the program says {body!r}")


def ahead(world) -> None:
    """Modules that were built into the tree serve whoever cannot keep a file."""
    compiler, fortran = system_compiler(), Fortran(world)
    tree = copied(fortran)
    folder = tree / "lib/fishplate/modules"
    said = fortran.run(tree / "lib/fishplate/fortran-modules", "--quiet", "--into", folder, compiler)
    fortran.cache.write_text("a file is no folder")
    expect(fortran.run(tree / "bin/mpifort", f"-fc={compiler}", "-modules").strip(), said.split(" ", 1)[1].strip(), "the folder of the modules")
    expect(fortran.run(tree / "bin/mpifort", f"-fc={compiler}", "-o", "program", "free.f90"), "", "what mpifort says")
    fortran.run(tree / "bin/mpiexec", "-n", "2", fortran.work / "program")


def no_compiler(world) -> None:
    fortran = Fortran(world)
    tools = fortran.work / "tools"
    tools.mkdir()
    for tool in ("readlink", "sed", "sh"):
        (tools / tool).symlink_to(shutil.which(tool))
    fortran.environment["PATH"] = str(tools)
    mpifort = world.prefix / "bin/mpifort"
    expect_in(fortran.run(mpifort, "-c", "free.f90", fails=True), "mpifort: no Fortran compiler is here", "-fc=COMPILER", "MPIFORT_FC")
    expect_in(fortran.run(mpifort, "-fc=absent -O", "-c", "free.f90", fails=True), "mpifort: the compiler absent is not found")
    expect_in(fortran.run(mpifort, "-fc=mpif90", "-c", "free.f90", fails=True), "is a wrapper")
    fortran.environment["PATH"] = os.environ["PATH"]
    expect_in(fortran.run(mpifort, "-fc=true", "-c", "free.f90", fails=True), "cannot tell whose Fortran compiler true is")
    expect(fortran.kept(), [], "the cache")


def long_integers(world) -> None:
    compiler, fortran = system_compiler(), Fortran(world)
    for words in (["-fdefault-integer-8"], ["-i8"], ["-s", "default64"], ["-integer-size", "64"]):
        said = fortran.run("mpifort", f"-fc={compiler}", *words, "-c", "free.f90", fails=True)
        expect_in(said, words[-1], "makes INTEGER 8 bytes long", "MPIFORT_INTEGER8")
    fortran.environment["MPIFORT_INTEGER8"] = "own"
    (fortran.work / "own.f90").write_text("use mpi\ninteger(4) :: ierr\ncall MPI_Init(ierr)\ncall MPI_Finalize(ierr)\nend\n")
    fortran.run("mpifort", f"-fc={compiler}", "-fdefault-integer-8", "-o", "program", "own.f90")
    fortran.run(fortran.work / "program")


def broken(world) -> None:
    """A compiler that cannot build the modules: its words are shown, and nothing is left."""
    fortran = Fortran(world)
    fortran.script("broken", '[ "$1" = --version ] && exec echo GNU Fortran 4.8; echo "no such attribute" >&2; exit 1')
    said = fortran.run("mpifort", f"-fc={fortran.work / 'broken'}", "-c", "free.f90", fails=True)
    expect_in(said, "mpifort: the Fortran modules cannot be built for", "ended with 1", "no such attribute")
    expect(fortran.kept(), [], "the cache")


def others(world) -> None:
    """The modules are built with the words of each compiler, and linked by them."""
    compiler = system_compiler()
    for family, (version, name, own) in OTHERS.items():
        fortran = short(Fortran(world))
        library = fortran.work / "tree/lib"
        # nagfor has no --version.
        asked = "-V" if family == "nag" else "--version"
        fortran.script(name, f"""case $1 in {asked}) echo '{version}'; exit ;; -V | --version) echo unknown option >&2; exit 2 ;; esac
for word; do shift; case $word in {'|'.join(own) or '-PIC'}) echo "$word" >>{fortran.work}/words ;; -fPIC) echo x >>{fortran.work}/fPIC ;;
    *) set -- "$@" "$word" ;; esac; done; exec {compiler} -fPIC "$@" """)
        answer = fortran.run("mpifort", f"-fc={fortran.work / name}", "-showme:link")
        folder = fortran.one_folder()
        expect(folder.name.split("-")[0], family, f"the family of {version.strip()}")
        expect((fortran.work / "fPIC").exists(), not own, "whether -fPIC is used")
        if own:
            expect(set((fortran.work / "words").read_text().split()), set(own), "the words for the modules")
        expect_in(answer, f"-Wl,-Wl,,-rpath,,{library}" if family == "nag" else f"-Wl,-rpath,{library}")
    # Options that change what is in the modules give others.
    fortran = short(Fortran(world))
    said = [fortran.run("mpifort", f"-fc={fortran.script('ifx', INTEL.format(compiler))}", *more, "-modules").strip()
            for more in ([], ["-O3"], ["-standard-semantics"], ["-assume", "std_mod_proc_name"])]
    expect((said[0] == said[1], len(set(said))), (True, 3), "the number of folders")


INTEL = """[ "$1" != --version ] || exec echo 'ifx (IFX) 2025.2.0'
for word; do shift; case $word in -standard-semantics | -assume | std_mod_proc_name) ;; *) set -- "$@" "$word" ;; esac; done
exec {} "$@" """


def tool(name: str) -> None:
    if not shutil.which(name):
        raise Skip(f"no {name} here")


def pkg_config(world) -> None:
    tool("pkg-config")
    compiler = system_compiler()
    fortran = Fortran(world, shares=True, PKG_CONFIG_PATH=str(world.prefix / "lib/pkgconfig"))
    expect(fortran.run("pkg-config", "--modversion", "mpi-fort").strip(), "5.0", "the version of mpi-fort.pc")
    modules = fortran.run("mpifort", f"-fc={compiler}", "-modules").strip()
    for package in ("mpi-fort", "mpifort_abi"):
        flags = fortran.run("pkg-config", f"--define-variable=modules={modules}", "--cflags", "--libs", package).split()
        for source in forms():
            fortran.run(compiler, "-o", "program", source, *flags)
            fortran.run("mpiexec", "-n", "2", fortran.work / "program")


def built_by(world, prepare: list, build: list, **files: str) -> None:
    """A program of a build system, which finds the wrapper on the path."""
    fortran = Fortran(world, shares=True)
    folder = fortran.work / "project"
    folder.mkdir()
    (folder / "program.f90").write_text(FREE.format(module="mpi"))
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    # CMake looks for a compiler of a usual name.
    fortran.environment |= {"FC": system_compiler(), "MPIFORT_FC": system_compiler()}
    for command in (prepare, build):
        fortran.run(*(word.replace("@", str(folder)) for word in command))
    fortran.run("mpiexec", "-n", "2", folder / "build/program")


def cmake(world) -> None:
    tool("cmake")
    lists = CMAKE.replace("@F08@", CMAKE_F08 if has_f08(world) else "")
    built_by(world, ["cmake", "-S", "@", "-B", "@/build"], ["cmake", "--build", "@/build"], CMakeLists_txt=lists)


def meson(world) -> None:
    tool("meson")
    tool("ninja")
    built_by(world, ["meson", "setup", "@/build", "@"], ["ninja", "-C", "@/build"], meson_build=MESON)


TABLE = [
    *map(variables, COMPILERS),
    ("mpifort: the words of -show, -showme, -link_info and -v", words),
    ("mpifort: programs in both forms", programs),
    ("mpifort: ten at once build the modules once", ten_at_once),
    ("mpifort: the modules are built once for a compiler", built_once),
    ("mpifort: a build that takes long is told once", slow),
    ("mpifort: a build that is interrupted leaves nothing", interrupted),
    ("mpifort: a cache that refuses files", refused_cache),
    ("mpifort: a cache of nobody else", private_cache),
    ("mpifort: a disk without space", full_disk),
    ("mpifort: a program that runs chooses among the sources", probe),
    ("mpifort: modules that are built ahead", ahead),
    ("mpifort: no compiler", no_compiler),
    ("mpifort: integers of 8 bytes", long_integers),
    ("mpifort: a compiler that cannot build the modules", broken),
    ("mpifort: compilers of other vendors", others),
    ("mpifort: pkg-config", pkg_config),
    ("mpifort: CMake", cmake),
    ("mpifort: meson", meson),
]
