#!/usr/bin/env python3
"""What a user reads: the names and lines that jobs give, and their exit codes.

    tests/messages/run.py [--prefix build] [--only TEXT] [--list]

Each case runs C programs of this folder. The last line is `N passed, N failed, N skipped`.
"""

import argparse
import re
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import harness  # noqa: E402
from harness import Case, Problem  # noqa: E402

SECONDS = 120


@dataclass
class World:
    prefix: Path
    work: Path

    def compiled(self, name: str, *words: str) -> Path:
        """The program of a file of this folder."""
        target = self.work / name
        if not target.exists():
            self.tool("mpicc", "-Wall", "-Wextra", "-Werror", "-o", target, HERE / f"{name}.c", *words)
        return target

    def tool(self, name: str, *words, code: int = 0, env: dict | None = None) -> harness.Outcome:
        """A command of the prefix, which must end with this exit code."""
        command = [str(self.prefix / "bin" / name), *map(str, words)]
        ran = harness.run(command, seconds=SECONDS, env=env, cwd=self.work)
        if ran.code != code:
            raise Problem(f"`{' '.join(command)}` ended with {ran.code}, not {code}{harness.output(ran.out + ran.err)}")
        return ran


def expect(seen, wanted, what: str) -> None:
    if seen != wanted:
        raise Problem(f"{what}: {seen!r}, not {wanted!r}")


def host_names(world: World) -> None:
    """Each host of a modelled machine has a name of its own, and a real host has its own everywhere."""
    program = world.compiled("hosts")
    for words, names in [(["--ppn", "2"], ["host0", "host0", "host1", "host1"]), ([], ["host0", "host1", "host2", "host3"]),
                         (["--ppn", "4"], ["host0"] * 4)]:
        ran = world.tool("fishplate", "run", "-n", "4", "--fabric", "qdr", "--summary", "none", *words, program)
        expect(ran.out.split()[1::2], names, f"the hosts with {words}")
    ran = world.tool("mpiexec", "-n", "2", program)
    expect(ran.out.split()[1::2], [socket.gethostname()] * 2, "the hosts of a job on this computer")


def still_clock(world: World) -> None:
    """A program that waits for a clock that does not move is told so, once, unless computing takes time."""
    program, say = world.compiled("still"), "rank 0: the clock was read 1000000 times in a row and stands almost still"
    for words, readings, times in [([], 1_500_000, 1), ([], 900_000, 0), (["--compute", "measured"], 1_500_000, 0)]:
        ran = world.tool("fishplate", "run", "-n", "2", "--fabric", "qdr", "--summary", "none", *words, program, readings)
        expect(ran.err.count(say), times, f"lines about the clock after {readings} readings with {words}\n{ran.err}")
    expect(world.tool("mpiexec", "-n", "1", program, 1_500_000).err, "", "standard error on this computer")


def escaped(world: World) -> None:
    """Names and values reach the terminal with their control characters escaped."""
    name, shown = "a\nfishplate: b\x1b[31m", "a\\nfishplate: b\\x1b[31m"
    script = world.work / name
    script.write_text("#!/bin/sh\nexit 3\n")
    script.chmod(0o755)
    variable = {"FISHPLATE_RAILS": name}
    init = world.compiled("still")
    for words, code, env in [(["mpiexec", "-n", "2", f"./{name}"], 3, {}), (["mpiexec", "-n", "2", f"./none/{name}"], 127, {}),
                             (["mpiexec", "-n", "2", name], 127, {}), (["fishplate", "run", "--hosts", f"localhost,{name}", "true"], 2, {}),
                             (["fishplate", "run", "--wdir", f"/{name}", "true"], 127, {}), (["mpiexec", "-n", "2", init], 2, variable), (["mpiexec", "-n", "2", "-verbose", f"./{name}"], 3, {})]:
        err = world.tool(*words, code=code, env=env).err
        others = [line for line in err.splitlines() if not line.startswith("fishplate: ") and not line.startswith("  ")]
        if shown not in err or "\x1b" in err or "\nfishplate: b" in err or "" in others:
            raise Problem(f"{words} says {err!r}")
    err = world.tool("fishplate", "run", "--x\x1b[31m", "true", code=2).err
    if "--x\\x1b[31m" not in err:
        raise Problem(f"an unknown option: {err!r}")


def unsupported(world: World) -> None:
    """A call that is not supported yet is reported, also where its error returns; a job that made one says so at its end."""
    program = world.compiled("unsupported")
    version = world.tool("fishplate", "--version").out.split()[1].rstrip(",")
    string = f"1 MPI_ERR_UNSUPPORTED_OPERATION: MPI_Comm_connect is not supported yet by Fishplate {version}"
    returned = ["MPI_Comm_create_from_group", "MPI_Session_init", "MPI_T_cvar_get_num", "MPI_T_pvar_get_num"]
    ranks = dict(zip(["MPI_Comm_connect", *returned], ["3 ranks", "3 ranks", "3 ranks", "1 rank", "1 rank"]))

    def said(name: str) -> str:
        code = "MPI_T_ERR_NOT_SUPPORTED" if name.startswith("MPI_T_") else "MPI_ERR_UNSUPPORTED_OPERATION"
        return f"{name}: this procedure is not supported yet; the call did nothing but give {code}, and the program goes on"

    def last(names: list) -> str:
        listed = ", ".join(f"{name} ({ranks[name]})" for name in names)
        return f"fishplate: ranks called procedures that are not supported yet, and these calls did nothing: {listed}"

    for words in (["mpiexec"], ["fishplate", "run", "--fabric", "qdr", "--summary", "none"],
                  ["fishplate", "run", "--hosts", "a,b", "--launch-with", "env HOST={host}"]):
        ran = world.tool(*words, "-n", "3", program)
        expect(ran.out.strip(), string, f"MPI_Error_string below {words}")
        *calls, end = ran.err.splitlines()
        expect(sorted(calls), [f"fishplate: {said(name)}" for name in ranks], f"the lines of the calls below {words}")
        expect(end, last(list(ranks)), f"the last line below {words}")
    *_, fault, end = world.tool("mpiexec", "-n", "3", program, "fatal", code=55).err.splitlines()
    if "failed: MPI_Comm_connect: this procedure is not supported yet" not in fault:
        raise Problem(f"the line of the fault is {fault!r}")
    expect(end, last(returned), "the last line of a job that ended by such a call")
    alone = harness.run([program], seconds=SECONDS, cwd=world.work)
    expect(alone.err.splitlines(), [f"fishplate: rank 0: {said(name)}" for name in (
        "MPI_Session_init", "MPI_Comm_create_from_group", "MPI_T_pvar_get_num", "MPI_T_cvar_get_num", "MPI_Comm_connect")], "the only rank")
    expect(world.tool("mpiexec", "-n", "2", world.compiled("hosts")).err, "", "a job without such a call")


def missed_faults(world: World) -> None:
    """A planned fault that did not happen is named; the example of docs/user/rails.md happens."""
    program = world.work / "pi"
    world.tool("mpicc", "-O2", "-o", program, harness.ROOT / "examples/pi.c", "-lm")

    def err(*faults: str, words: tuple = ()) -> list[str]:
        options = [word for fault in faults for word in ("--fault", fault)]
        return world.tool("fishplate", "run", "-n", "2", "--fabric", "2xqdr", *words, *options, program).err.splitlines()

    late = "fishplate: the fault of host 1, rail 0 at 2.00 ms lies after the end of the job at "
    for words in ((), ("--summary", "none")):
        first, *rest = err("host=1,rail=0,down=2ms..5ms", words=words)
        if not re.fullmatch(re.escape(late) + r"\d+ µs", first) or bool(rest) != (not words):
            raise Problem(f"a fault after the end, with {words}: {first!r}, {rest}")
    expect(err("host=0,rail=1,rate=0.1@50us..", words=("--summary", "none")), [], "a fault that happens")
    shown = re.search(r"--fault '([^']+)'", (harness.ROOT / "docs/user/rails.md").read_text())[1]
    line, *rest = err(shown, words=("--summary", "none"))
    if " has failed: transport retry counter exceeded" not in line or rest:
        raise Problem(f"the example of docs/user/rails.md says {[line, *rest]}")


def other_mpi(world: World) -> None:
    """A program with the library of another ABI is refused, unless it is allowed or has one rank."""
    source, library, program = world.work / "other.c", world.work / "libmpi.so.20", world.work / "other"
    source.write_text("int fake(void);\nint fake(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so.20", "-o", library, source], check=True)
    source.write_text("int fake(void);\nint main(void) { return fake(); }\n")
    subprocess.run(["cc", "-o", program, source, library, f"-Wl,-rpath,{world.work}"], check=True)
    says = f"{program} is linked with libmpi.so.20 (an ABI of another library)"
    hosts = ["fishplate", "run", "--hosts", "a,b", "--launch-with", "env HOST={host}"]
    for words, ranks, code, named in [(["mpiexec"], 2, 126, True), (["mpiexec", "--allow-other-mpi"], 2, 0, True), (["mpiexec"], 1, 0, False),
                                      (["fishplate", "run", "--fabric", "qdr"], 2, 126, True), (hosts, 2, 126, True)]:
        lines = world.tool(*words, "-n", ranks, program, code=code).err.splitlines()
        expect((len(lines), sum(says in line for line in lines)), (named, named), f"{words}, {ranks} ranks: {lines}")
        expect(any("--allow-other-mpi" in line for line in lines), code == 126, f"advice of {words}")


def failed_start(world: World) -> None:
    """The reason why MPI_Init fails on every rank is reported once."""
    program = world.compiled("hosts")
    env = {"FISHPLATE_DEVICE": "tcp:nonesuch0"}
    ran = world.tool("fishplate", "run", "-n", "4", "--hosts", "a:2,b:2", "--launch-with", "env HOST={host}", program, code=16, env=env)
    reasons = [line for line in ran.err.splitlines() if "there is no IP interface nonesuch0" in line]
    expect((len(reasons), "failed: MPI_Init: " in "".join(reasons)), (1, True), f"lines with the reason: {ran.err!r}")


TABLE = [
    ("hosts of a modelled machine have names", host_names),
    ("programs with the library of another ABI are refused", other_mpi),
    ("faults that did not happen are named", missed_faults),
    ("calls that are not supported yet are reported", unsupported),
    ("control characters of names are escaped", escaped),
    ("a clock that stands still is reported", still_clock),
    ("a failed start is reported once", failed_start),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    harness.add_prefix_option(parser)
    harness.add_case_options(parser)
    options = parser.parse_args()
    cases = [case for case in (Case(name, test) for name, test in TABLE) if case.wanted(options)]
    if options.list:
        print("\n".join(case.name for case in cases))
        return 0
    with tempfile.TemporaryDirectory() as work:
        return harness.run_suite("messages", cases, World(harness.checked_prefix(options.prefix), Path(work)))


if __name__ == "__main__":
    sys.exit(main())
