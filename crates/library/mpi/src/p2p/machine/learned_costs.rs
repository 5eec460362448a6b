//! Costs of the paths by which messages come to this rank within its host, learned from messages
//! that move anyway.
//!
//! Where processors copy, no constant costs hold: the fastest path depends on the caches between
//! the two cores, on the processor's string moves, and on the other load of the ranks. So the
//! receiver measures, and compares paths within one *class* ([`Class`]): length, whether the
//! message is announced and others wait behind it, whether the cores share a cache, and the mean
//! length of the runs of the send buffer. For announced messages the receiver chooses the path; of
//! messages that leave at once it publishes its preference to each sender.
//!
//! The time of a fetch goes from its decision, or from the end of the message before it, to the
//! last byte, which leaves out the wait for a late sender. Several fetches by packets are in
//! progress at a time, so their times include what this rank copies for the other direction; those
//! of reads are the times of their steps. That is right where messages flow in both directions:
//! packets cost their sender a copy, too, and each rank is the sender of the other.
//!
//! The time of a message that leaves at once goes from its first sign. The first packet took its
//! sender a copy before that sign, for which the mean time of a packet is added, as far as the
//! receiver waited at all. Where messages flow in both directions, the copy of one in the other
//! direction is added instead ([`OwnSends`]).
//!
//! A class begins with the costs that the host's ranks have stored ([`HostCosts`]), and stores what
//! it measures.
//!
//! The ring of a pair grows with its traffic, so its first messages by packets are slow. Where
//! packets may win, one run of fetches in four takes packets until the sender's ring is settled,
//! and nothing is learned from these. Where stored costs say that packets win, all do.

use channel::{PeerTable, Preferred};

use super::cost_classes::{CLASSES, Class, Company, LENGTHS, PACKETS, PATHS, READ, SHAPES};
use super::host_costs::{Cost, HostCosts};
use super::own_sends::OwnSends;
use super::path_choice::PathChoice;
use super::protocol::Protocol;
use crate::packet::RunClass;

/// The greatest number of fetches by packets that are measured at a time.
const MOST_OPEN: usize = 64;

/// The state of the ring through which a fetched message's sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    /// The ring is as fast as it will become; or packets will not win however fast it becomes,
    /// because shorter messages arrive faster by reads.
    Settled,
    /// The ring becomes faster with its traffic.
    Grows,
}

/// The costs of messages that a rank has learned from their times.
pub(super) struct LearnedCosts {
    /// The costs that the ranks of this host share.
    shared: HostCosts,
    /// The choices for fetches by class.
    fetches: Choices,
    /// The senders by world rank.
    senders: PeerTable<Box<Sender>>,
    /// Fetches by packets in progress: the receive, and the measurement to record at its end.
    open: Vec<(u32, Measured)>,
    /// The end of the last message that was measured, in nanoseconds.
    last_end: u64,
    pub(super) own: OwnSends,
    clock: Clock,
}

/// The choices by the number or the shape of their class, of those that have been met.
type Choices = Vec<Option<Box<PathChoice>>>;

/// A sender whose messages leave at once. Their times depend on it: where several senders send at a
/// time, the messages of the last one seem short.
struct Sender {
    /// True if its core and this rank's share a cache.
    is_near: bool,
    /// By [`Class::shape`].
    choices: Choices,
    /// The published preferences, by [`Class::shape`].
    published: [Option<Preferred>; SHAPES],
}

/// A change of the preference of this receiver for a sender's messages of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preference {
    pub(super) sender: usize,
    /// The class by its [`Class::shape`].
    pub(super) shape: usize,
    pub(super) preferred: Option<Preferred>,
}

/// The clock by which messages are timed; tests set its time.
#[derive(Default)]
struct Clock {
    #[cfg(test)]
    set: Option<u64>,
}

impl Clock {
    fn now(&self) -> u64 {
        #[cfg(test)]
        if let Some(now) = self.set {
            return now;
        }
        channel::now()
    }
}

/// A message whose time is being measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// The sender of a message that leaves at once. `None`: this rank fetches the message.
    sender: Option<usize>,
    class: Class,
    /// The index of the path in [`PATHS`].
    path: usize,
    begun: u64,
    /// The end of the last step, while the fetch is between two steps.
    paused: Option<u64>,
    len: usize,
    /// Number of bytes in the other direction that this rank copies for it.
    paired: usize,
    /// True if the time is to be recorded. It is not if a fetch takes packets only to settle the
    /// ring, or if the end of the message is the beginning of the next.
    counts: bool,
}

impl LearnedCosts {
    /// The costs of a rank with peers 0 to `ranks` - 1, whose host's ranks share `shared`.
    pub(super) fn new(ranks: usize, shared: HostCosts) -> LearnedCosts {
        LearnedCosts {
            shared,
            fetches: Vec::new(),
            senders: PeerTable::new(ranks),
            open: Vec::new(),
            last_end: 0,
            own: OwnSends::default(),
            clock: Clock::default(),
        }
    }

    /// Adds peers, so that they are the ranks 0 to `ranks` - 1.
    pub(super) fn grow(&mut self, ranks: usize) {
        self.senders.grow(ranks);
    }

    /// The choice for fetches of a class.
    fn of_fetches(&mut self, class: Class) -> &mut PathChoice {
        met(
            &mut self.fetches,
            [class.number(), CLASSES],
            class,
            &self.shared,
        )
    }

    /// The choice for messages of a sender that leave at once. `None`: its distance is not known.
    fn of_sender(&mut self, sender: usize, class: Class) -> Option<&mut PathChoice> {
        let choices = &mut self.senders.get_mut(sender)?.choices;
        Some(met(choices, [class.shape(), SHAPES], class, &self.shared))
    }

    /// Records that the core of a sender and this rank's share a cache, or do not. If that is new,
    /// the choices begin anew.
    pub(super) fn set_distance(&mut self, sender: usize, is_near: bool) {
        let new = || {
            Box::new(Sender {
                is_near,
                choices: Vec::new(),
                published: [None; SHAPES],
            })
        };
        let sender = self.senders.entry(sender).get_or_insert_with(new);
        if sender.is_near != is_near {
            sender.is_near = is_near;
            sender.choices.clear();
        }
    }

    /// False if a sender's longest contiguous messages that leave at once, and for which there is a
    /// preference, arrive faster by reads.
    pub(super) fn packets_may_win(&self, sender: usize) -> bool {
        let choices = self.senders.get(sender).map(|sender| &sender.choices);
        let of_one_run = choices.into_iter().flatten().take(LENGTHS);
        let known = of_one_run.filter_map(|choice| choice.as_ref()?.preferred);
        !known.last().is_some_and(|preferred| preferred.reads)
    }

    /// A preference for a sender's messages of a class that is to be published.
    pub(super) fn news(&mut self, sender: usize, class: Class) -> Option<Preference> {
        let preferred = self.of_sender(sender, class)?.preferred;
        let published = &mut self.senders.get_mut(sender)?.published[class.shape()];
        let is_new = std::mem::replace(published, preferred) != preferred;
        is_new.then_some(Preference {
            sender,
            shape: class.shape(),
            preferred,
        })
    }

    /// The class of a message that leaves at once. `None`: there is nothing to learn from it, or
    /// the distance of its sender is not known.
    pub(super) fn class_of(&self, sender: usize, len: usize, runs: RunClass) -> Option<Class> {
        let is_near = self.senders.get(sender)?.is_near;
        Class::at_once(len, is_near, runs)
    }

    /// Begins to time a message of `len` bytes that leaves at once, if it should be timed.
    /// `is_read`: it arrives by a read. `is_read_later`: a message of this rank waits to be read.
    pub(super) fn arrives(
        &mut self,
        sender: usize,
        class: Class,
        len: usize,
        [is_read, is_read_later]: [bool; 2],
    ) -> Option<Measured> {
        let clock = &self.clock;
        let paired = self.own.arrives(len, is_read_later, || clock.now());
        let (path, paired) = match is_read {
            true => (READ, 0),
            false => (PACKETS, paired),
        };
        let counts = self.of_sender(sender, class)?.timing(path)?;
        Some(Measured {
            sender: Some(sender),
            class,
            path,
            begun: self.clock.now(),
            paused: None,
            len,
            paired,
            counts,
        })
    }

    /// Chooses the path of a fetch of `len` bytes among those for which `is_possible` is true, and
    /// begins to measure the fetch. `expected`: the path that estimates choose.
    pub(super) fn choose(
        &mut self,
        class: Class,
        len: usize,
        ring: Ring,
        expected: Protocol,
        is_possible: impl Fn(Protocol) -> bool,
    ) -> Measured {
        let mut possible = PATHS.map(is_possible);
        let choice = self.of_fetches(class);
        let grows = ring == Ring::Grows && possible[PACKETS];
        let are_best = grows && choice.best(possible) == Some(PACKETS);
        let settles = grows && (are_best || choice.settles());
        let has_others = (0..PATHS.len()).any(|path| possible[path] && path != PACKETS);
        if grows && has_others {
            possible[PACKETS] = false;
        }
        let path = match settles {
            true => PACKETS,
            false => {
                let expected = PATHS.iter().position(|path| *path == expected);
                let expected = expected.filter(|path| possible[*path]);
                let first = possible.iter().position(|possible| *possible);
                choice.choose(possible, expected.or(first).unwrap_or(PACKETS))
            }
        };
        Measured {
            sender: None,
            class,
            path,
            begun: self.clock.now(),
            paused: None,
            len,
            paired: 0,
            counts: !grows || path != PACKETS,
        }
    }

    /// Counts a copy for the other direction with a fetch if `is_both`: messages of this rank wait
    /// to be read. Where both ranks use packets, their times include these copies; in a trial they
    /// do not.
    pub(super) fn pair(&self, measured: &mut Measured, is_both: bool) {
        let is_chosen = |choice: &PathChoice| choice.chosen() == Some(PACKETS);
        let is_usual = self.met_fetches(measured.class).is_some_and(is_chosen);
        if is_both && measured.path == PACKETS && !is_usual {
            measured.paired = measured.len;
        }
    }

    /// Begins a step of a read in several steps. The time since the step before does not count.
    pub(super) fn step_begins(&mut self, measured: &mut Option<Measured>) {
        if let Some(measured) = measured
            && let Some(paused) = measured.paused.take()
        {
            measured.begun += self.clock.now().saturating_sub(paused);
        }
    }

    /// Ends the measurement of a step of a read that is not the last one.
    pub(super) fn step_ends(&mut self, measured: &mut Option<Measured>) {
        // Without other fetches there is nothing to do between the steps.
        if let Some(measured) = measured
            .as_mut()
            .filter(|it| it.class.company() == Company::Queued)
        {
            measured.paused = Some(self.clock.now());
        }
    }

    /// Adds a fetch by packets that is being measured. It ends when this receive completes.
    pub(super) fn by_packets(&mut self, receive: u32, measured: Measured) {
        if self.open.len() < MOST_OPEN {
            self.open.push((receive, measured));
        }
    }

    /// True if some fetch by packets is being measured.
    #[inline(always)]
    pub(super) fn measures_packets(&self) -> bool {
        !self.open.is_empty()
    }

    /// Records that a message in packets is complete, if it is a fetch that is being measured.
    #[cold]
    #[inline(never)]
    pub(super) fn packets_ended(&mut self, receive: u32) {
        let at = self.open.iter().position(|(open, _)| *open == receive);
        if let Some(at) = at {
            let (_, measured) = self.open.swap_remove(at);
            self.ended(measured);
        }
    }

    /// Stops measuring the fetches by packets, because receives have failed.
    pub(super) fn forget_open(&mut self) {
        self.open.clear();
    }

    /// Records the time of a measured message that has ended.
    pub(super) fn ended(&mut self, measured: Measured) {
        self.ended_in_pieces(measured, usize::MAX);
    }

    /// Records the time of a measured message whose last one of `pieces` packets has arrived.
    pub(super) fn ended_in_pieces(&mut self, measured: Measured, pieces: usize) {
        let now = self.clock.now();
        let Measured { class, path, .. } = measured;
        let begun = measured.begun.max(self.last_end);
        let (waited, time) = (begun - self.last_end, now.saturating_sub(begun));
        let first = waited.min(time / pieces.max(1) as u64);
        let copy = self.own.copy(measured.paired, (measured.len, time));
        let time = time + copy.max(first);
        self.last_end = now;
        if !measured.counts {
            return;
        }
        let ps_per_byte = time.saturating_mul(1000) / measured.len.max(1) as u64;
        let ps_per_byte = u32::try_from(ps_per_byte).unwrap_or(u32::MAX);
        let choice = match measured.sender {
            None => Some(self.of_fetches(class)),
            Some(sender) => self.of_sender(sender, class),
        };
        let to_store = choice.and_then(|choice| choice.record(path, ps_per_byte));
        if let Some(ps) = to_store.filter(|_| class.is_of_one_run()) {
            self.shared.store(Cost::Message(class, path), ps);
        }
    }

    /// The one of two classes that has more recorded times.
    pub(super) fn busier(&self, [one, other]: [Class; 2]) -> Class {
        let seen = |class| self.met_fetches(class).map_or(0, PathChoice::recorded);
        if seen(other) > seen(one) { other } else { one }
    }

    /// The learned times of a class, one for each path: protocol, picoseconds per byte, and true if
    /// the path is chosen.
    pub(super) fn times(&self, class: Class) -> impl Iterator<Item = (Protocol, u64, bool)> {
        let times = self
            .met_fetches(class)
            .into_iter()
            .flat_map(PathChoice::times);
        times.map(|(at, ps, is_chosen)| (PATHS[at], ps, is_chosen))
    }

    fn met_fetches(&self, class: Class) -> Option<&PathChoice> {
        self.fetches.get(class.number())?.as_deref()
    }
}

/// The choice with a number among `count` ones; it begins when it is first met.
fn met<'a>(
    choices: &'a mut Choices,
    [number, count]: [usize; 2],
    class: Class,
    shared: &HostCosts,
) -> &'a mut PathChoice {
    if choices.is_empty() {
        choices.resize_with(count, || None);
    }
    let begin = || Box::new(PathChoice::begin(class, shared));
    choices[number].get_or_insert_with(begin)
}

impl Measured {
    /// The path that was chosen for the message.
    pub(super) fn path(&self) -> Protocol {
        PATHS[self.path]
    }

    /// The length of the message in bytes.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn class(&self) -> Class {
        self.class
    }
}

#[cfg(test)]
mod tests;
