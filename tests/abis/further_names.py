"""Debian's names of libmpi.so.12: a program that needs libmpich.so.12 or libmpichcxx.so.12 gets libmpi.so.12 through it."""

import re
import subprocess
from pathlib import Path

import harness
from harness import Case, Problem
from libraries import PROGRAM

NAMES = ("libmpich.so.12", "libmpichcxx.so.12")


def stub(world, library: str, ours: str) -> Path:
    """A library of this name that has the names of ours itself, as Debian's has with which its programs were linked."""
    made, text = world.work / f"stub-{library}", []
    names = subprocess.run(["nm", "-D", "-S", "--defined-only", world.prefix / "lib/fishplate" / ours], check=True, capture_output=True, text=True).stdout
    for symbol, kind, *size in (line.split()[::-1] for line in names.splitlines()):
        if kind in "TW":
            text.append(f".text\n.globl {symbol}\n.type {symbol}, @function\n{symbol}: ret\n")
        else:
            size = int(size[0], 16)
            text.append(f".data\n.globl {symbol}\n.type {symbol}, @object\n.size {symbol}, {size}\n{symbol}: .zero {size}\n")
    subprocess.run(["cc", "-shared", "-nostdlib", "-x", "assembler", "-", f"-Wl,-soname,{library}", "-o", made], input="".join(text), text=True, check=True)
    return made


def needed(library: str):
    def test(world):
        ours = world.prefix / "lib/fishplate" / library
        if ours.stat().st_size > 20_000:
            raise Problem(f"{library} has {ours.stat().st_size} bytes, and should have nothing of its own")
        program = world.work / f"abi-{library}"
        subprocess.run(["cc", f"-I{PROGRAM}", PROGRAM / "abi.c", stub(world, library, "libmpi.so.12"), "-o", program], check=True)
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
