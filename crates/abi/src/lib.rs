//! The C face of the library: the standard MPI ABI.
