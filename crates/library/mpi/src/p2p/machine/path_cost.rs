//! The cost of one path for one class of messages: the last times of this rank, and what the ranks
//! of its host had stored before.

pub(super) use crate::algorithms::contest::MARGIN;

/// Number of measured times that are kept for each path.
pub(super) const KEPT: usize = 8;
/// Up to this number of kept times, those of one trial, half of them may have been interrupted.
const FEW: usize = TRIED as usize;
/// Number of consecutive messages of a trial. The first of them finds caches as another path has
/// left them, as no later one would.
pub(super) const TRIED: u32 = 4;
/// Number of times of a path after which its cost is stored for the host's ranks.
pub(super) const TO_SHARE: u32 = TRIED;
/// The share 1 / `LOSS` of their time that messages may lose by trials: half of the margin, because
/// where messages flow in both directions the trials of two ranks delay both.
pub(super) const LOSS: u64 = 2 * MARGIN;

/// Number of messages by a path of cost `known` after which a trial of one of cost `other` loses
/// the share 1 / [`LOSS`] of their time.
pub(super) fn pause_by_loss(known: u64, other: u64) -> u32 {
    let lost = other.saturating_sub(known).saturating_mul(TRIED.into());
    let pause = lost.saturating_mul(LOSS) / known.max(1);
    u32::try_from(pause).unwrap_or(u32::MAX)
}

/// Of this number of messages by the preferred path one is recorded, because two readings of the
/// clock cost some hundredths of the time of a short message. The last one before a trial is among
/// them.
pub(super) const TIMED_EACH: u32 = 8;

/// The recent times of one path, in picoseconds per byte.
#[derive(Clone, Copy, Default)]
pub(super) struct PathCost {
    times: [u32; KEPT],
    next: usize,
    recorded: u32,
    pub(super) tried: u32,
    /// The cost that the host's ranks had stored before this rank's first time; 0 if none.
    pub(super) stored: u32,
    /// True if other messages wait behind these.
    is_queued: bool,
}

impl PathCost {
    /// Begins with a stored cost, or 0. `is_queued`: other messages wait behind these.
    pub(super) fn begin(&mut self, ps_per_byte: u32, is_queued: bool) {
        (self.stored, self.is_queued) = (ps_per_byte, is_queued);
    }

    /// The number of times that have been recorded for the path.
    pub(super) fn recorded(&self) -> u32 {
        self.recorded
    }

    pub(super) fn record(&mut self, ps_per_byte: u32) {
        // The oldest time is replaced; the order of the kept ones does not matter.
        self.times[self.next] = ps_per_byte;
        self.next = (self.next + 1) % KEPT;
        self.recorded = self.recorded.saturating_add(1);
    }

    /// The estimate for other ranks of the host, which is due only from time to time.
    pub(super) fn shared_estimate(&self) -> Option<u32> {
        let recorded = self.recorded as usize;
        let is_due = match self.stored {
            0 => recorded > 0 && self.recorded.is_multiple_of(TO_SHARE),
            // The first estimate without the stored cost may contradict it.
            _ => recorded > FEW && (recorded == FEW + 1 || self.recorded.is_multiple_of(TO_SHARE)),
        };
        let ps = self.estimate().filter(|_| is_due)?;
        Some(u32::try_from(ps).unwrap_or(u32::MAX))
    }

    /// The typical one of the last times. If there are few, it is the less of it and the stored
    /// cost, because half of them may have been interrupted. `None`: there are less than two, and
    /// no stored cost.
    pub(super) fn estimate(&self) -> Option<u64> {
        let known = (self.recorded as usize).min(KEPT);
        let mut times = self.times;
        let times = &mut times[..known];
        times.sort_unstable();
        let stored = (self.stored > 0).then_some(u64::from(self.stored));
        match known {
            0 => stored,
            1 => stored.map(|stored| stored.min(times[0].into())),
            2..=FEW => stored.into_iter().chain([self.typical(times)]).min(),
            _ => Some(self.typical(times)),
        }
    }

    /// The typical one of two or more times, in their order.
    ///
    /// Of messages that wait for each other it is the mean of all but the greatest: several of them
    /// may end in one burst, and the rank may have worked for the other direction before. Of others
    /// it is the second least, or the least of few: interrupted copies and late senders are above
    /// it, and one lucky time is below.
    fn typical(&self, times: &[u32]) -> u64 {
        if self.is_queued {
            let but_greatest = &times[..times.len() - 1];
            let sum: u64 = but_greatest.iter().map(|time| u64::from(*time)).sum();
            return sum / but_greatest.len() as u64;
        }
        times[usize::from(times.len() > FEW)].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(times: &[u32], stored: u32, is_queued: bool) -> Option<u64> {
        let mut cost = PathCost::default();
        cost.begin(stored, is_queued);
        times.iter().for_each(|time| cost.record(*time));
        cost.estimate()
    }

    #[test]
    fn interruptions_and_one_lucky_time_are_left_out() {
        assert_eq!(estimate(&[90, 5, 90, 100, 4000, 92], 0, false), Some(90));
        assert_eq!(estimate(&[4000, 90], 0, false), Some(90));
        assert_eq!(
            (estimate(&[90], 0, false), estimate(&[], 0, true)),
            (None, None)
        );
    }

    #[test]
    fn bursts_of_messages_that_wait_are_not_their_cost() {
        let times = [10, 10, 200, 10, 10, 200, 10, 9000];
        assert_eq!(estimate(&times, 0, false), Some(10));
        assert_eq!(estimate(&times, 0, true), Some(450 / 7));
    }

    #[test]
    fn a_stored_cost_holds_until_there_are_more_than_few_times() {
        assert_eq!(estimate(&[], 70, false), Some(70));
        assert_eq!(estimate(&[4000], 70, true), Some(70));
        assert_eq!(estimate(&[300, 310, 320, 330], 70, false), Some(70));
        assert_eq!(estimate(&[300, 310, 320, 330, 340], 70, false), Some(310));
        assert_eq!(estimate(&[300, 60], 70, false), Some(60));
    }
}
