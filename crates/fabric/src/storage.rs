//! The storage of a machine, which all its hosts share.

use crate::components::part;
use crate::units::{GbPerSec, Nanos};

part! {
    /// A storage: one server that all hosts share, and that moves the bytes of one request after
    /// the other. Reads and writes cost alike.
    Storage "storage" {
        value bandwidth: GbPerSec, "Rate of all reads and writes together.";
        value latency: Nanos, "Time of a request to the storage beyond that of its bytes.";
    }
    check |_| Ok(())
}
