"""Shows Fishplate's libraries to the wheels of mpi4py where no launcher does: in Jupyter, under pytest, in `python program.py`.

These wheels have one module for each ABI, so Python itself does not find `mpi4py.MPI`. mpi4py finds it, by the ABI of the MPI library
that it has loaded. Just before that fishplate.pth calls `search`, as the finder that Python asks after its own. Other imports do not
get so far, or cost one comparison.
"""

import os
from pathlib import Path

# The site-packages of an environment lie three folders below it: lib/python3.11/site-packages.
ENVIRONMENT = Path(__file__).resolve().parents[3]
TREES = [ENVIRONMENT / "lib/fishplate", ENVIRONMENT.parent / "lib/fishplate"]


def search() -> None:
    """Adds our folders to those in which mpi4py searches, unless the user has chosen a library.

    A library of the environment's own `lib`, as of MPICH's wheel, precedes ours: the last launcher that was installed may be its.
    A library of the system precedes ours only if LD_LIBRARY_PATH leads to it.
    """
    try:
        from mpi4py import _mpiabi
        if _mpiabi.LIBMPI or _mpiabi.LIBMPI_PATH or os.environ.get("MPI4PY_LIBMPI"):
            return
        path = list(_mpiabi._dlopen_rpath())
    except (ImportError, AttributeError):
        # Another mpi4py, which has other means.
        return
    ours = [str(tree / folder) for tree in TREES for folder in ("lib", "lib/fishplate") if (tree / folder).is_dir()]
    # The system's libraries are those without a folder.
    place = path.index("") if "" in path and not chosen() else len(path)
    _mpiabi.LIBMPI_PATH = [*path[:place], *ours, *path[place:]]


def chosen() -> bool:
    """Whether LD_LIBRARY_PATH leads to an MPI library."""
    folders = [Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return any((folder / name).exists() for folder in folders for name in ("libmpi.so", "libmpi.so.12", "libmpi.so.40"))
