//! Times of messages of medium length, by which a receiver learns whether a sender's messages
//! arrive faster by reads or in packets.
//!
//! A time goes from the receiver's first sign of the message, or from the end of the message before
//! it, to the last byte. The first packet of a message took its sender a copy before that sign, for
//! which the mean time of a packet is added, as far as the receiver waited at all. Where messages
//! flow in both directions, the copy of one in the other direction is added instead ([`OwnSends`]).
//!
//! The times of a sender begin with the costs that the host's ranks have stored for the distance of
//! the two cores, and add to these. When the distance changes, they begin anew.
//!
//! Invariant: a preference changes only if the other path is better by a margin.

use channel::PeerTable;

use super::cost_classes::{CLASSES, MEDIUM_LENGTHS};
use super::host_costs::{Cost, HostCosts};
use super::own_sends::OwnSends;
use super::path_cost::{MARGIN, PathCost, TIMED_EACH, pause_by_loss};

/// The least number of messages by the preferred path between two trials of the other path.
const BETWEEN_TRIALS: u32 = 256;
/// The least number of messages in runs between two trials: a trial of reads may cost eight times
/// as much as packets.
const BETWEEN_TRIALS_IN_RUNS: u32 = 1024;
const _: () = assert!(BETWEEN_TRIALS.is_multiple_of(TIMED_EACH));
const _: () = assert!(BETWEEN_TRIALS_IN_RUNS.is_multiple_of(TIMED_EACH));

/// True if the costs that the host's ranks have stored show that messages of a class arrive faster
/// by reads. `None`: they do not show it. `is_near`: the two cores share a cache.
pub(super) fn stored_preference(shared: &HostCosts, class: usize, is_near: bool) -> Option<bool> {
    let cost = |reads| stored(shared, class, is_near, reads);
    Some(cost(true)? < cost(false)?)
}

fn stored(shared: &HostCosts, class: usize, is_near: bool, reads: bool) -> Option<u32> {
    let is_stored = class < MEDIUM_LENGTHS;
    shared
        .get(Cost::Medium(class, is_near, reads))
        .filter(|_| is_stored)
}

/// Number of messages of a class by the preferred path between two trials of the other one, so that
/// a trial loses little time as far as the host's ranks have stored what both paths cost.
pub(super) fn between_trials(shared: &HostCosts, class: usize, is_near: bool) -> u32 {
    let cost = |reads| stored(shared, class, is_near, reads).map(u64::from);
    let by_loss = match (cost(true), cost(false)) {
        (Some(one), Some(other)) => pause_by_loss(one.min(other), one.max(other)),
        _ => 0,
    };
    by_loss.max(least_between_trials(class))
}

/// The least number of messages between two trials of a class.
pub(super) fn least_between_trials(class: usize) -> u32 {
    match class < MEDIUM_LENGTHS {
        true => BETWEEN_TRIALS,
        false => BETWEEN_TRIALS_IN_RUNS,
    }
}

/// The times of the messages that arrive from all senders.
pub(super) struct PathTimes {
    /// The costs that the ranks of this host share.
    shared: HostCosts,
    /// By world rank and class.
    senders: PeerTable<Box<SenderTimes>>,
    /// The end of the last message that was timed, in nanoseconds.
    last_end: u64,
    pub(super) own: OwnSends,
}

/// The times of the messages that arrive from one sender, by class.
#[derive(Default)]
struct SenderTimes {
    /// True if its core and this rank's share a cache. `None`: not known yet.
    is_near: Option<bool>,
    classes: [ClassTimes; CLASSES],
}

/// The times of the messages of one sender and one class.
#[derive(Clone, Copy, Default)]
struct ClassTimes {
    reads: PathCost,
    packets: PathCost,
    prefers_reads: Option<bool>,
    /// Number of messages by the preferred path since the last one by the other.
    by_preference: u32,
}

impl ClassTimes {
    /// The times of a sender at a new distance: those that the host's ranks have stored.
    fn stored(shared: &HostCosts, class: usize, is_near: bool) -> ClassTimes {
        let mut times = ClassTimes::default();
        for (path, reads) in [(&mut times.reads, true), (&mut times.packets, false)] {
            path.begin(stored(shared, class, is_near, reads).unwrap_or(0), false);
        }
        times.prefers_reads = stored_preference(shared, class, is_near);
        times
    }
}

/// A message whose arrival is being timed.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    /// The time at which the message was first noticed, in nanoseconds.
    at: u64,
    class: usize,
    /// The price of the copy of a message in the other direction, in nanoseconds.
    other_way: u64,
    /// True if the time is recorded. Otherwise the end of the message is the beginning of the next.
    counts: bool,
}

/// A preference of this receiver for a sender's messages of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preference {
    pub(super) sender: usize,
    pub(super) class: usize,
    pub(super) reads: bool,
}

impl PathTimes {
    pub(super) fn new(ranks: usize, shared: HostCosts) -> PathTimes {
        PathTimes {
            shared,
            senders: PeerTable::new(ranks),
            last_end: 0,
            own: OwnSends::default(),
        }
    }

    /// Adds peers, so that they are the ranks 0 to `ranks` - 1.
    pub(super) fn grow(&mut self, ranks: usize) {
        self.senders.grow(ranks);
    }

    fn of(&mut self, sender: usize, class: usize) -> &mut ClassTimes {
        let times = self.senders.entry(sender).get_or_insert_default();
        &mut times.classes[class]
    }

    /// Records that the core of a sender and this rank's share a cache, or do not. If that is new,
    /// the times begin anew, and the result is this receiver's preferences.
    pub(super) fn set_distance(
        &mut self,
        sender: usize,
        is_near: bool,
    ) -> impl Iterator<Item = Preference> + use<> {
        let times = self.senders.entry(sender).get_or_insert_default();
        let is_new = times.is_near != Some(is_near);
        let mut new = Vec::new();
        if is_new {
            times.is_near = Some(is_near);
            for (class, times) in times.classes.iter_mut().enumerate() {
                *times = ClassTimes::stored(&self.shared, class, is_near);
                new.extend(times.prefers_reads.map(|reads| Preference {
                    sender,
                    class,
                    reads,
                }));
            }
        }
        new.into_iter()
    }

    /// False if a sender's longest contiguous messages, for which there is a preference, arrive
    /// faster by reads.
    pub(super) fn packets_may_win(&self, sender: usize) -> bool {
        let Some(times) = self.senders.get(sender) else {
            return true;
        };
        let mut known = times.classes[..MEDIUM_LENGTHS]
            .iter()
            .rev()
            .filter_map(|times| times.prefers_reads);
        !known.next().unwrap_or(false)
    }

    /// Begins to time a message of a class, if it should be timed. `is_read`: it arrives by a read.
    pub(super) fn begin(
        &mut self,
        sender: usize,
        (class, len): (Option<usize>, usize),
        is_read: bool,
    ) -> Option<Begun> {
        const BEFORE_LAST: u32 = TIMED_EACH - 1;
        let class = class?;
        let other_way = self.own.arrives(len, channel::now);
        let times = self.of(sender, class);
        let mut counts = true;
        if times.prefers_reads == Some(is_read) {
            times.by_preference = times.by_preference.wrapping_add(1);
            match times.by_preference % TIMED_EACH {
                0 => {}
                // Its end is needed, because the next message may be there already.
                BEFORE_LAST => counts = false,
                _ => return None,
            }
        } else {
            times.by_preference = 0;
        }
        let at = channel::now();
        Some(Begun {
            at,
            class,
            other_way,
            counts,
        })
    }

    /// Ends the time of a read. The result is a change of the preference.
    pub(super) fn read(&mut self, sender: usize, len: usize, begun: Begun) -> Option<Preference> {
        let now = channel::now();
        self.read_until(sender, len, begun, now)
    }

    fn read_until(
        &mut self,
        sender: usize,
        len: usize,
        begun: Begun,
        now: u64,
    ) -> Option<Preference> {
        let time = now.saturating_sub(begun.at.max(self.last_end));
        self.last_end = now;
        self.record(sender, len, begun, (time, true))
    }

    /// Ends the time of a message in `pieces` packets.
    pub(super) fn packets(
        &mut self,
        sender: usize,
        (len, pieces): (usize, usize),
        begun: Begun,
    ) -> Option<Preference> {
        let now = channel::now();
        self.packets_until(sender, (len, pieces), begun, now)
    }

    fn packets_until(
        &mut self,
        sender: usize,
        (len, pieces): (usize, usize),
        begun: Begun,
        now: u64,
    ) -> Option<Preference> {
        let from = begun.at.max(self.last_end);
        let (gap, time) = (from - self.last_end, now.saturating_sub(from));
        let time = time + begun.other_way.max(gap.min(time / pieces.max(1) as u64));
        self.last_end = now;
        self.record(sender, len, begun, (time, false))
    }

    fn record(
        &mut self,
        sender: usize,
        len: usize,
        begun: Begun,
        (time, is_read): (u64, bool),
    ) -> Option<Preference> {
        if !begun.counts {
            return None;
        }
        let class = begun.class;
        let times = self.of(sender, class);
        let ps = time.saturating_mul(1000) / len.max(1) as u64;
        let path = if is_read {
            &mut times.reads
        } else {
            &mut times.packets
        };
        path.record(u32::try_from(ps).unwrap_or(u32::MAX));
        let estimate = path.shared_estimate().filter(|_| class < MEDIUM_LENGTHS);
        let is_near = self.senders.get(sender).and_then(|times| times.is_near);
        if let (Some(ps), Some(is_near)) = (estimate, is_near) {
            self.shared.store(Cost::Medium(class, is_near, is_read), ps);
        }
        let times = self.of(sender, class);
        let (by_reads, by_packets) = (times.reads.estimate()?, times.packets.estimate()?);
        let better = |one: u64, other: u64| one + one / MARGIN < other;
        let reads = match times.prefers_reads {
            None => by_reads < by_packets,
            Some(true) => !better(by_packets, by_reads),
            Some(false) => better(by_reads, by_packets),
        };
        let is_new = times.prefers_reads != Some(reads);
        times.prefers_reads = Some(reads);
        is_new.then_some(Preference {
            sender,
            class,
            reads,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::path_cost::TO_SHARE;
    use super::*;

    const LEN: usize = 64 << 10;

    /// A message that is recorded.
    fn begun(at: u64) -> Begun {
        let counts = true;
        Begun {
            at,
            class: 1,
            other_way: 0,
            counts,
        }
    }

    #[test]
    fn the_faster_path_is_preferred_and_kept_within_the_margin() {
        let mut times = PathTimes::new(4, HostCosts::over(None));
        let mut now = 1_000_000;
        let mut send = |times: &mut PathTimes, reads: u64, packets: u64| {
            now += 100_000;
            let first = times.read_until(3, LEN, begun(now), now + reads);
            now += 100_000;
            first.or(times.packets_until(3, (LEN, 4), begun(now), now + packets))
        };
        let of = |reads| Preference {
            sender: 3,
            class: 1,
            reads,
        };
        let first = [4000; 2].map(|time| send(&mut times, time, time));
        assert_eq!(first, [None, Some(of(true))]);
        // With its first packet a message of 4000 ns took 5000: still within the margin.
        assert!((0..20).all(|_| send(&mut times, 5200, 4000).is_none()));
        assert!(!times.packets_may_win(3) && times.packets_may_win(2));
        assert!((0..20).any(|_| send(&mut times, 5400, 4000) == Some(of(false))));
        assert!(times.packets_may_win(3));
    }

    #[test]
    fn a_sender_begins_with_what_others_have_taught_about_its_distance() {
        let shared = HostCosts::over(None);
        let mut first = PathTimes::new(4, shared.clone());
        assert_eq!(first.set_distance(3, true).count(), 0);
        let mut now = 1_000_000;
        for _ in 0..TO_SHARE {
            now += 100_000;
            first.read_until(3, LEN, begun(now), now + 4000);
            now += 100_000;
            first.packets_until(3, (LEN, 4), begun(now), now + 8000);
        }
        assert_eq!(stored_preference(&shared, 1, true), Some(true));
        assert_eq!(stored_preference(&shared, 1, false), None);
        assert_eq!(stored_preference(&shared, CLASSES - 1, true), None);
        let mut second = PathTimes::new(4, shared);
        let of = Preference {
            sender: 2,
            class: 1,
            reads: true,
        };
        assert!(second.set_distance(2, true).eq([of]));
        assert_eq!(second.set_distance(2, true).count(), 0);
        assert_eq!(second.of(2, 1).prefers_reads, Some(true));
        // Its core has moved: nothing is known there.
        assert_eq!(second.set_distance(2, false).count(), 0);
        assert_eq!(second.of(2, 1).prefers_reads, None);
    }

    #[test]
    fn a_receiver_that_did_not_wait_adds_nothing() {
        let mut times = PathTimes::new(4, HostCosts::over(None));
        for _ in 0..4 {
            let end = times.last_end;
            times.packets_until(0, (LEN, 4), begun(end), end + 4000);
            let end = times.last_end;
            times.read_until(0, LEN, begun(end), end + 4100);
        }
        let of = times.of(0, 1);
        assert!(of.packets.estimate() < of.reads.estimate());
    }

    #[test]
    fn the_last_message_before_a_trial_is_timed() {
        let mut times = PathTimes::new(4, HostCosts::over(None));
        times.of(0, 1).prefers_reads = Some(true);
        assert!(
            times
                .begin(0, (Some(1), LEN), false)
                .is_some_and(|begun| begun.counts)
        );
        let timed: Vec<_> = (0..BETWEEN_TRIALS)
            .map(|_| times.begin(0, (Some(1), LEN), true))
            .collect();
        let recorded = |begun: &&Option<Begun>| begun.is_some_and(|begun| begun.counts);
        assert_eq!(timed.iter().filter(recorded).count(), 32);
        assert!(timed.iter().flatten().count() == 64 && recorded(&timed.last().unwrap()));
    }
}
