"""A tool of the profiling interface, preloaded into jobs of every ABI: each call of the program reaches it once, and none of the
library's own."""

import subprocess
from pathlib import Path

import harness
from harness import Case, Problem
from libraries import PROGRAM

HERE = Path(__file__).resolve().parent
# Init, Send, Recv, Isend, Irecv, Waitall, Barrier, Finalize of each rank of calls.c.
COUNTS = "calls 1 5 5 3 3 3 1 1"
ABIS = {
    "the standard ABI": ("include", "lib/libmpi_abi.so.1"),
    "MPICH's ABI": (PROGRAM, "lib/fishplate/libmpi.so.12"),
    "Open MPI's ABI": (PROGRAM.with_name("openmpi_abi"), "lib/fishplate/libmpi.so.40"),
}


def counted(abi: str):
    def test(world):
        header, library = (world.prefix / part for part in ABIS[abi])
        name = library.name
        tool, program = world.work / f"count-{name}", world.work / f"calls-{name}"
        subprocess.run(["cc", "-Wall", f"-I{header}", "-shared", "-fPIC", HERE / "count_calls.c", "-o", tool], check=True)
        subprocess.run(["cc", "-Wall", f"-I{header}", HERE / "calls.c", library, "-o", program], check=True)
        for preloaded, wanted in [(str(tool), [COUNTS] * 2), ("", [])]:
            ran = harness.launch(world.prefix, 2, ["env", f"LD_PRELOAD={preloaded}", program], seconds=60)
            if ran.code != 0 or ran.out.splitlines() != wanted:
                raise Problem(f"exit status {ran.code}, and not {wanted}{harness.output(ran.out + ran.err)}")
    return Case(f"a tool of the profiling interface under {abi}", test)


def cases() -> list[Case]:
    return [counted(abi) for abi in ABIS]
