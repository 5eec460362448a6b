//! The times at which bytes of a message, which a queue pair writes to the memory of its rank,
//! become visible to the rank.

use sim::Time;

use super::event::Clocked;
use super::inbox::Arrival;
use super::queue_pairs::QueuePairs;
use device::Slice;

/// The memory to which a message's bytes are written.
#[derive(Clone, Copy)]
pub(crate) enum Destination {
    Region { address: u64, key: u32 },
    Receive { receive: u32 },
    Slices,
}

/// Bytes of a message that a queue pair writes to memory.
pub(crate) struct Placed {
    pub message: u32,
    pub from: u32,
    pub len: u32,
    pub into: Destination,
    /// True if the bytes wake a waiting rank.
    pub wakes: bool,
}

/// Announces that bytes which queue pair `q` writes to memory become visible at `at`.
pub(crate) fn announce(
    qps: &mut QueuePairs,
    q: u32,
    placed: Placed,
    at: Time,
    clock: &mut Clocked,
) {
    let Placed {
        message,
        from,
        len,
        into,
        wakes,
    } = placed;
    if len == 0 {
        return;
    }
    let rank = qps[q].rank;
    if let Destination::Region { address, key } = into {
        let to = address + u64::from(from);
        let what = Arrival::Bytes {
            message,
            from,
            len,
            key,
            to,
        };
        let (run, ranks) = (&mut qps.run, &mut qps.ranks);
        return ranks.announce_bytes(run, rank, at, (what, wakes), clock);
    }
    // For each slice, the part into which these bytes fall.
    let (mut index, mut passed) = (0, 0);
    let (start, end) = (from, from + len);
    while passed < end {
        let slices: &[Slice] = match into {
            Destination::Receive { receive } => &qps.receives.get(receive).slices,
            _ => &qps.run.messages[message].slices,
        };
        let Some(&slice) = slices.get(index) else {
            return;
        };
        let (low, high) = (start.max(passed), end.min(passed + slice.len));
        if low < high {
            let what = Arrival::Bytes {
                message,
                from: low,
                len: high - low,
                key: slice.lkey,
                to: slice.address + u64::from(low - passed),
            };
            let wakes = wakes && high == end;
            let (run, ranks) = (&mut qps.run, &mut qps.ranks);
            ranks.announce_bytes(run, rank, at, (what, wakes), clock);
        }
        passed += slice.len;
        index += 1;
    }
}
