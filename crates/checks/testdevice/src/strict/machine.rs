//! The machine that all ranks share: its world behind a lock, and the events that ranks wait for.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use super::setup::Setup;
use super::world::{Signs, World};

/// The machine behind the devices of `ranks` ranks.
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
    /// The most rails of a rank.
    pub rails: usize,
    pub world: Mutex<World>,
    /// A summary of the world, so that a rank's poll that finds nothing does not lock out others.
    pub signs: Arc<Signs>,
    /// Signaled when something has changed that a rank may wait for.
    pub news: Condvar,
    /// The armed descriptors that ranks wait for.
    pub events: Mutex<Vec<Armed>>,
    pub start: Instant,
}

/// A rank's events, raised once there is something new for it.
pub(super) struct Armed {
    pub file: Arc<OwnedFd>,
    pub rank: usize,
    /// The number of its devices' completions when it was armed.
    pub completed: u64,
}

impl StrictMachine {
    /// The number of a rank's device among all.
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

    /// Raises the events of ranks with something new.
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
    // A failure means that it is readable already.
    let _ = rustix::io::write(file, &1u64.to_ne_bytes());
}
