"""Debian's names of libmpi.so.12: a program that needs libmpich.so.12 or libmpichcxx.so.12 gets libmpi.so.12 through it."""

import re
import subprocess

import harness
from harness import Case, Problem
from libraries import PROGRAM

NAMES = ("libmpich.so.12", "libmpichcxx.so.12")


def needed(library: str):
    def test(world):
        ours = world.prefix / "lib/fishplate" / library
        if ours.stat().st_size > 20_000:
            raise Problem(f"{library} has {ours.stat().st_size} bytes, and should have nothing of its own")
        program, stub = world.work / f"abi-{library}", world.work / f"stub-{library}"
        # Debian's programs were linked with a library of this name that has the names itself.
        names = subprocess.run(["nm", "-D", "--defined-only", ours.with_name("libmpi.so.12")], check=True, capture_output=True, text=True).stdout
        text = "".join(f"{'void ' if kind == 'T' else 'void *'}{name}{'(void) {}' if kind == 'T' else ';'}\n" for _, kind, name in map(str.split, names.splitlines()))
        subprocess.run(["cc", "-w", "-x", "c", "-", "-shared", "-fPIC", f"-Wl,-soname,{library}", "-o", stub], input=text, text=True, check=True)
        subprocess.run(["cc", f"-I{PROGRAM}", PROGRAM / "abi.c", stub, "-o", program], check=True)
        entries = subprocess.run(["readelf", "-d", program], check=True, capture_output=True, text=True).stdout
        if re.findall(r"NEEDED.*\[(libmpi.*)\]", entries) != [library]:
            raise Problem(f"the program needs something else:\n{entries}")
        folders = f"{ours.parent}:{world.prefix}/lib"
        ran = harness.launch(world.prefix, 2, [program], seconds=60, env={"LD_LIBRARY_PATH": folders}, options=("--allow-other-mpi",))
        if ran.code != 0 or ran.out.count("passed") != 2:
            raise Problem(f"exit status {ran.code}{harness.output(ran.out + ran.err)}")
    return Case(f"a program that needs {library}", test)


def cases() -> list[Case]:
    return [needed(name) for name in NAMES]
