//! The channel: a FIFO of packets between two ranks, and bulk transfers beside it. Knows nothing of MPI.
