//! Pairs of hosts, one rank each, that saturate their links: in one direction,
//! in both with one partner, in both with two partners.

use trace::Trace;

use super::calls::{self, program};

/// The messages between two marks: as many that the first does not count.
const MESSAGES: usize = 8;

/// The messages of a pattern of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Half of the ranks send, each to one of the other half.
    Send,
    /// Pairs of ranks exchange messages.
    SendrecvSame,
    /// Each rank sends to the next one and receives from the one before.
    SendrecvDiff,
}

/// The program of an even number of ranks.
pub(super) fn trace(ranks: usize, bytes: u64, pairs: Pairs) -> Trace {
    let half = ranks / 2;
    program(ranks, |calls| {
        let rank = calls.rank;
        calls.timed(|calls| {
            for _ in 0..MESSAGES {
                match pairs {
                    Pairs::Send if rank < half => calls.send(rank + half, bytes),
                    Pairs::Send => calls.receive(rank - half, bytes),
                    Pairs::SendrecvSame => calls.exchange(rank ^ 1, rank ^ 1, bytes),
                    Pairs::SendrecvDiff => {
                        calls.exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks, bytes);
                    }
                }
            }
        });
    })
}

/// The bytes that a sender sends each second, in the mean of senders.
pub(super) fn rate(outcome: &fast::Outcome, bytes: u64, pairs: Pairs) -> f64 {
    let times = calls::times(outcome, 0);
    let senders = match pairs {
        Pairs::Send => times.len() / 2,
        _ => times.len(),
    };
    let seconds: f64 = times[..senders].iter().sum();
    (bytes * (senders * MESSAGES) as u64) as f64 / seconds
}
