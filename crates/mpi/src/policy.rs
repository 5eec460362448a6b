//! When a waiter spins, gives way, or sleeps.
//!
//! Whether each rank has a core is known once all have shown which they may use, which may be after this one began to
//! wait: until then it takes itself for one of a crowd. What must always hold: the policy changes once at most.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use knobs::WaitMode;

/// Looks before the first thought of giving way.
const EAGER_LOOKS: u32 = 8;
/// The same to a device that this host's processors work: longer than an answer takes,
/// for whoever comes back from giving way just after it sees it late.
const PATIENT_LOOKS: u32 = 1024;
/// The same while it moves long messages, which takes so long that every look but the last is in its way.
const HASTY_LOOKS: u32 = 8;
/// And it sleeps so many times sooner, where processors move them.
const HASTE: u64 = 16;
/// Otherwise it sleeps so many times later there: to be woken takes longer than the usual time of looking, and two ranks that
/// talk to each other would both sleep before every message, each because the other has to be woken first.
const CALM: u64 = 16;
/// Looks between two readings of the clock.
const LOOKS: u32 = 64;

/// How long a waiter has been waiting.
#[derive(Default)]
pub struct Patience {
    pub looks: u32,
    /// When the clock was first read.
    pub since: Option<u64>,
    /// Nanoseconds waited when the launcher was last listened to.
    pub attended: u64,
    /// Long messages are being moved.
    pub hasty: bool,
}

/// How long a waiter does what, in nanoseconds since it began to wait.
#[derive(Debug)]
pub struct Policy {
    /// It is not known yet whether each rank has a core.
    open: AtomicBool,
    /// There are more ranks than cores, or there may be.
    crowded: AtomicBool,
    /// Looks before the first thought of giving way, where it is crowded. More than none: nobody has said what to do.
    eager_looks: AtomicU32,
    give_way: u64,
    /// The rank's node lets time pass.
    by_node: bool,
    /// A look is one at devices, too.
    asks_devices: bool,
    /// Nobody shares memory with this rank: whatever comes is a matter of its devices.
    only_devices: bool,
    /// This host's processors work its devices.
    by_processor: bool,
}

impl Policy {
    pub fn new(wait: WaitMode, spin: u64) -> Policy {
        let (crowded, eager_looks, give_way) = match wait {
            WaitMode::Spin => (false, 0, u64::MAX),
            WaitMode::Yield => (true, 0, u64::MAX),
            WaitMode::Sleep => (true, 0, 0),
            WaitMode::Auto => (true, EAGER_LOOKS, spin),
        };
        Policy {
            open: true.into(),
            crowded: crowded.into(),
            eager_looks: eager_looks.into(),
            give_way,
            by_node: false,
            asks_devices: false,
            only_devices: false,
            by_processor: false,
        }
    }

    /// Waits where the rank's node says, from the first look on that finds nothing.
    pub fn by_node() -> Policy {
        Policy {
            by_node: true,
            ..Policy::new(WaitMode::Yield, 0)
        }
    }

    /// For a rank with devices: are all its peers reached by them, and do processors work them?
    pub fn with_devices(self, only_devices: bool, by_processor: bool) -> Policy {
        Policy {
            asks_devices: true,
            only_devices,
            by_processor,
            ..self
        }
    }

    /// It is known now whether each rank here has a core, and whether it may spin there.
    pub fn decide(&self, core_each: bool, may_spin: bool) {
        self.open.store(false, Ordering::Relaxed);
        match self.eager_looks.load(Ordering::Relaxed) {
            0 => {}
            _ if may_spin => self.crowded.store(false, Ordering::Relaxed),
            // Devices need the cores now and then: look longer before giving way.
            _ if core_each => self.eager_looks.store(PATIENT_LOOKS, Ordering::Relaxed),
            _ => {}
        }
    }

    /// After so many looks it is time to think of doing something else.
    #[inline(always)]
    pub fn is_due(&self, patience: &Patience) -> bool {
        patience.looks.is_multiple_of(LOOKS) || self.is_crowded() && self.has_looked(patience)
    }

    /// It is time to give way, where it is crowded.
    #[inline(always)]
    pub fn has_looked(&self, patience: &Patience) -> bool {
        let hasty = if patience.hasty {
            HASTY_LOOKS
        } else {
            u32::MAX
        };
        patience.looks > self.eager_looks.load(Ordering::Relaxed).min(hasty)
    }

    /// After so many nanoseconds of waiting the core is this rank's still.
    pub fn spins(&self, waited: u64) -> bool {
        !self.is_crowded() && waited < self.give_way
    }

    /// Nanoseconds of looking before the rank sleeps.
    pub fn give_way(&self, patience: &Patience) -> u64 {
        match (self.by_processor, patience.hasty) {
            (false, _) => self.give_way,
            (true, true) => self.give_way / HASTE,
            (true, false) => self.give_way.saturating_mul(CALM),
        }
    }

    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn is_by_node(&self) -> bool {
        self.by_node
    }

    #[inline(always)]
    pub fn asks_devices(&self) -> bool {
        self.asks_devices
    }

    pub fn only_devices(&self) -> bool {
        self.only_devices
    }
}
