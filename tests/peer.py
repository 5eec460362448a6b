#!/usr/bin/env python3
"""Make a prefix of another MPI library, laid out as ours is, so that the tests can be tested.

    peer.py DIR      unpack MPICH's wheel from PyPI into DIR and print DIR

The prefix has bin/{mpicc,mpicxx,mpiexec}, include/mpi.h and lib/libmpi_abi.so.1, all of the
standard ABI. A test that fails on our library and passes on this prefix is right; one that
fails on both is to be read again. Nothing is installed outside DIR.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

WHEEL = "mpich==5.0.2"


def make(prefix: Path) -> Path:
    """Fill `prefix` if it is not there yet. A half-made prefix is never left under that name."""
    if (prefix / "bin" / "mpicc").exists():
        return prefix
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=prefix.parent) as work:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", work, WHEEL],
            check=True,
        )
        wheel = next(Path(work).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(work)
        data = next(Path(work).glob("*.data/data"))
        for tool in (data / "bin").iterdir():
            tool.chmod(0o755)
        # The names without `_abi` belong to MPICH's own ABI; here they mean the standard one.
        for tool in ("mpicc", "mpicxx"):
            real = data / "bin" / f"{tool}_abi"
            (data / "bin" / tool).write_text(
                f'#!/bin/sh\nexec "$(dirname "$(readlink -f "$0")")/{real.name}" "$@"\n'
            )
        shutil.copy(data / "include" / "mpi_abi.h", data / "include" / "mpi.h")
        os.rename(data, prefix)
    return prefix


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(make(Path(sys.argv[1]).resolve()))
