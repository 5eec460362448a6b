//! The times of waiting: how long a rank polls, yields and sleeps.
//!
//! A rank learns whether each rank of its host has a core once all of them have shown their cores.
//! It may wait before that; until then it assumes that the cores are oversubscribed. Invariant: the
//! policy changes at most once for this reason, and once with the first devices of the rank.

use knobs::Wait;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Polls before the first yield, where ranks share cores.
const EAGER_POLLS: u32 = 2;
/// Polls before the first yield where this host's processors work the devices: longer than an
/// answer takes, because a rank that returns from a yield just after the answer sees it late.
const PATIENT_POLLS: u32 = 1024;
/// Polls before the first yield while the devices move long messages, when all polls but the last
/// delay them.
const BULK_POLLS: u32 = 8;
/// Divisor of the spin time while processors move long messages.
const BULK_HASTE: u64 = 2;
/// Multiplier of the spin time for devices that processors work, without long messages: a wake-up
/// takes longer than the normal spin, so without it both ranks of a ping-pong would sleep before
/// every message.
const SOFTWARE_CALM: u64 = 160;
/// Polls between two readings of the clock.
const POLLS_PER_READING: u32 = 64;
/// Polls of a blocking receive before it becomes a request: a few microseconds.
const RECEIVE_POLLS: u32 = 1024;
/// Polls of a blocking receive where ranks share cores.
const CROWDED_RECEIVE_POLLS: u32 = 16;
/// Polls between two rounds of progress in a blocking receive.
const POLLS_PER_ROUND: u32 = 64;

/// The settings of waiting.
#[derive(Clone, Copy, Debug)]
pub struct WaitSettings {
    /// Wait mode of the rank.
    pub mode: Wait,
    /// Time of polling before a sleep, in nanoseconds.
    pub spin_ns: u64,
}

/// Numbers of polls that a blocking receive makes before it becomes a request.
#[derive(Clone, Copy, Debug)]
pub struct Polls {
    /// Polls before anything else.
    pub first: u32,
    /// Polls between two rounds of progress.
    pub per_round: u32,
    /// Polls in all.
    pub all: u32,
}

/// The progress of one wait.
#[derive(Default)]
pub(super) struct Patience {
    /// Fruitless polls.
    pub polls: u32,
    /// Time of the first reading of the clock.
    pub since: Option<u64>,
    /// Nanoseconds waited at the last answer to the launcher.
    pub attended: u64,
    /// The rank's devices move long messages.
    pub moves_bulk: bool,
}

/// Waiting policy of a rank: it polls, yields or sleeps by the nanoseconds since its wait began.
#[derive(Debug)]
pub(super) struct Policy {
    /// It is not known yet whether each rank has a core.
    open: AtomicBool,
    /// There are more ranks than cores, or there may be.
    crowded: AtomicBool,
    /// Polls before the first yield, where cores are oversubscribed. Zero: the user has chosen the
    /// mode.
    eager_polls: AtomicU32,
    spin_time: u64,
    /// The rank sleeps early where it would keep others from a core.
    gives_way: AtomicBool,
    /// The rank's node lets time pass.
    through_node: AtomicBool,
    /// A poll is one of devices, too.
    polls_devices: AtomicBool,
    /// Devices reach all peers.
    only_devices: AtomicBool,
    /// This host's processors work its devices.
    by_processor: AtomicBool,
}

impl Policy {
    pub(super) fn new(settings: &WaitSettings) -> Policy {
        let (crowded, eager_polls, spin_time) = match settings.mode {
            Wait::Spin => (false, 0, u64::MAX),
            Wait::Yield => (true, 0, u64::MAX),
            Wait::Sleep => (true, 0, 0),
            Wait::Auto => (true, EAGER_POLLS, settings.spin_ns),
        };
        Policy {
            open: true.into(),
            crowded: crowded.into(),
            eager_polls: eager_polls.into(),
            spin_time,
            gives_way: (settings.mode == Wait::Auto).into(),
            through_node: false.into(),
            polls_devices: false.into(),
            only_devices: false.into(),
            by_processor: false.into(),
        }
    }

    /// The policy of a rank that waits through its node from the first fruitless poll on.
    pub(super) fn through_node() -> Policy {
        let (mode, spin_ns) = (Wait::Yield, 0);
        Policy {
            through_node: true.into(),
            ..Policy::new(&WaitSettings { mode, spin_ns })
        }
    }

    /// The rank has devices: do they reach all peers, and do processors work them?
    pub(super) fn add_devices(&self, only_devices: bool, by_processor: bool) {
        self.polls_devices.store(true, Ordering::Relaxed);
        self.only_devices.store(only_devices, Ordering::Relaxed);
        self.by_processor.store(by_processor, Ordering::Relaxed);
        // Processors that work devices need the core for longer than peers do.
        self.gives_way.fetch_and(!by_processor, Ordering::Relaxed);
    }

    /// The rank waits through its node from now on.
    pub(super) fn wait_through_node(&self) {
        self.through_node.store(true, Ordering::Relaxed);
    }

    pub(super) fn polls(&self) -> Polls {
        let (first, all) = match self.is_crowded() {
            true => (1, CROWDED_RECEIVE_POLLS),
            false => (POLLS_PER_ROUND, RECEIVE_POLLS),
        };
        Polls {
            first,
            per_round: POLLS_PER_ROUND,
            all,
        }
    }

    /// Records whether each rank of this host has a core, and whether this rank may spin on it.
    pub(super) fn decide(&self, core_each: bool, may_spin: bool) {
        self.open.store(false, Ordering::Relaxed);
        match self.eager_polls.load(Ordering::Relaxed) {
            0 => {}
            _ if may_spin => self.crowded.store(false, Ordering::Relaxed),
            // Devices need the cores now and then: poll longer before the first yield.
            _ if core_each => self.eager_polls.store(PATIENT_POLLS, Ordering::Relaxed),
            _ => {}
        }
    }

    /// It is time to consider something else than the next poll.
    #[inline(always)]
    pub(super) fn is_due(&self, patience: &Patience) -> bool {
        patience.polls.is_multiple_of(POLLS_PER_READING)
            || self.is_crowded() && self.has_polled(patience)
    }

    /// It is time to yield, where cores are oversubscribed.
    #[inline(always)]
    pub(super) fn has_polled(&self, patience: &Patience) -> bool {
        let limit = if patience.moves_bulk {
            BULK_POLLS
        } else {
            u32::MAX
        };
        patience.polls > self.eager_polls.load(Ordering::Relaxed).min(limit)
    }

    /// After this many nanoseconds the rank still spins.
    pub(super) fn spins(&self, waited: u64) -> bool {
        !self.is_crowded() && waited < self.spin_time
    }

    /// Nanoseconds of polling and yielding before the rank sleeps.
    pub(super) fn spin_time(&self, patience: &Patience) -> u64 {
        let by_processor = self.by_processor.load(Ordering::Relaxed);
        match (by_processor, patience.moves_bulk) {
            (false, _) => self.spin_time,
            (true, true) => self.spin_time / BULK_HASTE,
            (true, false) => self.spin_time.saturating_mul(SOFTWARE_CALM),
        }
    }

    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn is_through_node(&self) -> bool {
        self.through_node.load(Ordering::Relaxed)
    }

    /// The rank sleeps where it shares its core with a peer or where yields are costly.
    #[inline(always)]
    pub(super) fn gives_way(&self) -> bool {
        self.gives_way.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn polls_devices(&self) -> bool {
        self.polls_devices.load(Ordering::Relaxed)
    }

    pub(super) fn only_devices(&self) -> bool {
        self.only_devices.load(Ordering::Relaxed)
    }
}
