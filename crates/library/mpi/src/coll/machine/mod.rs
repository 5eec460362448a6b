//! Memory that the members of a communicator share for collective operations.

pub(crate) mod collective_buffers;
pub(crate) mod lanes;
