//! Estimates of the costs of a message: the host's part and the device's part. Protocols and
//! algorithms are ranked by them. A modelled machine reports its own figures; real hosts and
//! devices have fixed usual figures, so that a limit computed from them is the same in every run.

/// The costs of a rank's host: processors, memory, and the library's work on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostCosts {
    /// Processor time of a send, from the call to the post of the work request, in nanoseconds.
    pub send_ns: u64,
    /// Processor time to handle an arrival, from its detection to the return to the program, in
    /// nanoseconds.
    pub receive_ns: u64,
    /// Time per byte of a copy by one processor, in picoseconds.
    pub copy_ps: u64,
    /// Time per byte for which a copy occupies the memory that all processors share, in
    /// picoseconds.
    pub memory_ps: u64,
    /// Time to prepare a buffer for a device that keeps registrations, in nanoseconds.
    pub register_ns: u64,
}

impl HostCosts {
    /// The costs of a server of the years since 2020: 12 GB/s for one copy, 100 GB/s for all
    /// together.
    pub const USUAL: HostCosts = HostCosts {
        send_ns: 85,
        receive_ns: 85,
        copy_ps: 83,
        memory_ps: 10,
        register_ns: 1000,
    };
}

/// The costs of a write to a rank of the same host where processors copy and no device takes part,
/// in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCosts {
    /// Processor time of the post, without the copy.
    pub post_ns: u64,
    /// Time from one core's store until another core can see it.
    pub handover_ns: u64,
    /// Processor time of the poll that finds an arrival.
    pub poll_ns: u64,
}

/// The costs of a work request, except latency and bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestCosts {
    /// Processor time of the post, in nanoseconds. The latency includes it.
    pub post_ns: u64,
    /// Processor time of the poll that finds an arrival, in nanoseconds. The latency includes it.
    pub poll_ns: u64,
    /// Time for each cache line of an inline payload after the first, in nanoseconds.
    pub line_ns: u64,
    /// Additional time of a payload that is not inline, in nanoseconds.
    pub fetch_ns: u64,
    /// Additional time per byte of the first packet, which buses store before they forward it, in
    /// picoseconds.
    pub store_ps: u64,
    /// Time from the post of a short read to its completion, in nanoseconds.
    pub read_ns: u64,
}

impl RequestCosts {
    /// The usual costs for a device with this latency in nanoseconds and this bandwidth in bytes
    /// per second.
    pub fn usual(latency_ns: u64, bandwidth: u64) -> RequestCosts {
        let byte_ps = (1_000_000_000_000 / bandwidth.max(1)).max(1);
        RequestCosts {
            post_ns: 70,
            poll_ns: 60,
            line_ns: 50,
            fetch_ns: 350,
            store_ps: 2 * byte_ps,
            read_ns: 2 * latency_ns,
        }
    }
}
