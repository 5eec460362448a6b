//! The simulated machine of strict devices, which all ranks share: its state behind a lock, and the
//! events that ranks wait for.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::setup::Setup;
use super::world::{Signs, World};

/// Makes the simulated machine behind the strict devices of `ranks` ranks.
pub(super) fn shared(ranks: usize, setup: &Setup) -> Arc<StrictMachine> {
    let signs = Arc::new(Signs::new(ranks, ranks * setup.rails));
    Arc::new(StrictMachine {
        rails: setup.rails,
        world: Mutex::new(World::new(ranks, setup, signs.clone())),
        signs,
        news: Condvar::new(),
        events: Mutex::default(),
        start: Instant::now(),
    })
}

pub(super) struct StrictMachine {
    /// The greatest number of rails of a rank.
    pub rails: usize,
    pub world: Mutex<World>,
    /// Counters and versions that a rank polls without the lock of the machine's state, so that its
    /// unsuccessful polls do not lock out others.
    pub signs: Arc<Signs>,
    /// Signaled when a change occurs for which a rank may wait.
    pub news: Condvar,
    /// The armed event descriptors of ranks that wait.
    pub events: Mutex<Vec<Armed>>,
    pub start: Instant,
}

/// An event descriptor of a rank, made readable once there is a change for the rank.
pub(super) struct Armed {
    pub file: Arc<OwnedFd>,
    pub rank: usize,
    /// The number of completions of the rank's devices when it armed the descriptor.
    pub completed: u64,
}

impl StrictMachine {
    /// The index of a rank's device among all devices of the machine.
    pub(super) fn index(&self, rank: usize, rail: usize) -> usize {
        rank * self.rails + rail
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Runs `call`, then executes the requests that are due.
    pub(super) fn with<R>(&self, call: impl FnOnce(&mut World) -> R) -> R {
        let mut world = self.lock();
        let before = world.version();
        world.now = self.start.elapsed().as_nanos() as u64;
        let answer = call(&mut world);
        world.pump();
        world.show_signs();
        if world.version() != before {
            self.news.notify_all();
            drop(world);
            self.raise();
        }
        answer
    }

    /// Signals the armed descriptors of the ranks for which there is a change.
    pub(super) fn raise(&self) {
        self.events().retain(|armed| {
            let something = self.has_news(armed);
            if something {
                signal(&armed.file);
            }
            !something
        });
    }

    /// True if a rank has a new completion, a message, a change of a port, or a delayed request,
    /// which proceeds only when polled.
    fn has_news(&self, armed: &Armed) -> bool {
        self.completed(armed.rank) != armed.completed
            || self.signs.words[armed.rank].load(Ordering::Acquire) > 0
            || self.signs.port_events[armed.rank].load(Ordering::Acquire) > 0
            || self.signs.due.load(Ordering::Acquire) > 0
    }

    pub(super) fn completed(&self, rank: usize) -> u64 {
        let devices = &self.signs.completed[self.index(rank, 0)..][..self.rails];
        devices
            .iter()
            .map(|sign| sign.load(Ordering::Acquire))
            .sum()
    }

    pub(super) fn events(&self) -> MutexGuard<'_, Vec<Armed>> {
        self.events
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}

pub(super) fn signal(file: &OwnedFd) {
    // A write fails only if the descriptor is readable already.
    let _ = rustix::io::write(file, &1u64.to_ne_bytes());
}
