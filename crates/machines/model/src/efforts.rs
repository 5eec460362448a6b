//! The processor time of the steps of an MPI library.

use device::Effort;
use fabric::{Bytes, Costs, Nanos};
use sim::Time;

/// The processor time of a short call, in picoseconds: a poll that finds nothing, or a reading of
/// the clock. It has some dozens of instructions on cached data. Assumed; on hosts since Nehalem
/// such a call takes 10 to 30 ns.
pub const CALL: Time = 20_000;

/// The latency of an out-of-band message, in picoseconds: datagrams through the kernels of two
/// hosts take some 30 us. Assumed. The rails are the only networks between hosts: while none
/// carries anything, such a message waits.
pub const OOB_LATENCY: Time = 30_000_000;

/// The processor time of a kind of work of the library (`Effort`) on an idle machine.
pub fn effort(costs: &Costs, effort: Effort) -> Nanos {
    let software = &costs.system().software;
    match effort {
        Effort::Send => software.send,
        Effort::Receive => software.receive,
        Effort::Control => software.control,
        Effort::Call => Nanos::from_picos(CALL),
        Effort::Message(_) | Effort::BlockingMessage(_) => Nanos::ZERO,
        Effort::Copy(len) => {
            let parts = (0..len).step_by(SHARE).map(|from| {
                let part = Bytes((len - from).min(SHARE) as u64);
                let time = costs.copy(part);
                match part.0 <= SHORT as u64 {
                    true => time,
                    false => time.max(costs.memory_of_copy(part)),
                }
            });
            parts.sum()
        }
    }
}

/// The length of the pieces of a long copy, each of which shares the host's memory with its other
/// users, in bytes.
pub(crate) const SHARE: usize = 16 << 10;
/// The greatest length of a copy that other users of the memory do not slow down, in bytes.
pub(crate) const SHORT: usize = 1 << 10;
