//! The time for which a rank polls and yields in a wait before it sleeps.
//!
//! A rank learns whether each rank of its host has a core once all of them have published their
//! cores. It may wait before that; until then it assumes that the cores are oversubscribed.
//! Invariant: the policy changes at most once for this reason, and once with the first devices of
//! the rank.

use knobs::Wait;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Number of polls before the first yield where ranks share cores.
const EAGER_POLLS: u32 = 2;
/// Number of polls before the first yield where processors of this host do the work of the devices.
/// They take longer than an answer, because a rank that returns from a yield just after the answer
/// sees it late.
const PATIENT_POLLS: u32 = 1024;
/// Number of polls before the first yield while devices move long messages, when more polls would
/// delay them.
const BULK_POLLS: u32 = 8;
/// The divisor of the spin time while processors move long messages.
const BULK_HASTE: u64 = 2;
/// Multiplier of the spin time where processors do the work of devices and no long messages move: a
/// wake-up takes longer than the normal spin, so without it both ranks of a ping-pong would sleep
/// before every message.
const SOFTWARE_CALM: u64 = 160;
/// Number of polls from one reading of the clock to the next.
const POLLS_PER_READING: u32 = 64;
/// Number of polls of a blocking receive before it becomes a request: they take a few microseconds.
const RECEIVE_POLLS: u32 = 1024;
/// Number of polls of a blocking receive where ranks share cores.
const CROWDED_RECEIVE_POLLS: u32 = 16;
/// Number of polls of a blocking receive from one call of progress to the next.
const POLLS_PER_ROUND: u32 = 64;

/// The settings of how a rank waits.
#[derive(Clone, Copy, Debug)]
pub struct WaitSettings {
    /// Wait mode of the rank.
    pub mode: Wait,
    /// The time for which a rank polls before it sleeps, in nanoseconds.
    pub spin_ns: u64,
}

/// Numbers of polls that a blocking receive makes before it becomes a request that progress
/// completes.
#[derive(Clone, Copy, Debug)]
pub struct Polls {
    /// The number of polls before the receive does anything else.
    pub first: u32,
    /// Number of polls from one call of progress to the next.
    pub per_round: u32,
    /// The total number of polls of the receive before it waits.
    pub all: u32,
}

/// The state of one wait, by which the policy decides on the next step.
#[derive(Default)]
pub(super) struct Patience {
    /// The number of polls in this wait that found nothing.
    pub polls: u32,
    /// The time of the first reading of the clock in this wait, in nanoseconds.
    pub since: Option<u64>,
    /// The duration of this wait, in nanoseconds, when the rank last answered the launcher.
    pub attended: u64,
    /// True if the rank's devices are moving long messages.
    pub moves_bulk: bool,
}

/// The waiting policy of a rank: whether it polls, yields or sleeps, by the time since its wait
/// began.
#[derive(Debug)]
pub(super) struct Policy {
    /// True until it is known to the rank whether each rank of its host has a core of its own.
    open: AtomicBool,
    /// True if the host has, or may have, more ranks than cores.
    crowded: AtomicBool,
    /// Number of polls before the first yield where cores are oversubscribed. Zero: the user has
    /// chosen a fixed mode.
    eager_polls: AtomicU32,
    /// Time of polling and yielding before the rank sleeps, in nanoseconds.
    spin_time: u64,
    /// True if the rank sleeps early where its polling would occupy a core that others need.
    gives_way: AtomicBool,
    /// True if the rank waits by a call of its node, as in virtual time.
    through_node: AtomicBool,
    /// True if polls of this rank include its devices.
    polls_devices: AtomicBool,
    /// True if devices reach all peers, so that no peer rings this rank's doorbell.
    only_devices: AtomicBool,
    /// True if processors of this host do the work of its devices, as with TCP.
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

    /// Adds the rank's devices. `only_devices`: they reach all peers. `by_processor`: processors of
    /// this host do their work.
    pub(super) fn add_devices(&self, only_devices: bool, by_processor: bool) {
        self.polls_devices.store(true, Ordering::Relaxed);
        self.only_devices.store(only_devices, Ordering::Relaxed);
        self.by_processor.store(by_processor, Ordering::Relaxed);
        // The processors that do the work of devices need the core for longer than peers do.
        self.gives_way.fetch_and(!by_processor, Ordering::Relaxed);
    }

    /// Makes the rank wait through its node (the modelled machine) from now on.
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
            // The devices' work needs the cores sometimes: poll longer before the first yield.
            _ if core_each => self.eager_polls.store(PATIENT_POLLS, Ordering::Relaxed),
            _ => {}
        }
    }

    /// True if the wait must do something other than the next poll.
    #[inline(always)]
    pub(super) fn is_due(&self, patience: &Patience) -> bool {
        patience.polls.is_multiple_of(POLLS_PER_READING)
            || self.is_crowded() && self.has_polled(patience)
    }

    /// True if it is time to yield, where cores are oversubscribed.
    #[inline(always)]
    pub(super) fn has_polled(&self, patience: &Patience) -> bool {
        let limit = if patience.moves_bulk {
            BULK_POLLS
        } else {
            u32::MAX
        };
        patience.polls > self.eager_polls.load(Ordering::Relaxed).min(limit)
    }

    /// True if a rank still spins that has waited for `waited` nanoseconds.
    pub(super) fn spins(&self, waited: u64) -> bool {
        !self.is_crowded() && waited < self.spin_time
    }

    /// Time of polling and yielding before the rank sleeps, in nanoseconds.
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

    /// True if the rank sleeps where it shares its core with a peer or where yields are costly.
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
