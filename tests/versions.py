"""Versions of the software of others that several suites use."""

MPI4PY = "4.1.2"
