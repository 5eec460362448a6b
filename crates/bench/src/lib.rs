//! MPI benchmarks through any libmpi_abi.so.
