//! The node of a rank whose devices are strict ones: simulated in memory, and failing at once where
//! real devices fail late.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use super::machine::{Armed, StrictMachine, signal};
use super::rail::StrictDevice;
use super::world::World;
use device::{Device, Error, Node, PortEvent, Result};

pub(super) struct StrictNode {
    pub shared: Arc<StrictMachine>,
    pub rank: usize,
    /// The version of the machine's state at the rank's latest poll.
    pub seen: u64,
    /// The descriptor that is readable after an event; `None` until the rank requests events.
    pub events: Option<Arc<OwnedFd>>,
    pub devices: Vec<StrictDevice>,
}

impl Node for StrictNode {
    fn rails(&self) -> usize {
        self.devices.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut self.devices[rail]
    }

    fn now(&mut self) -> u64 {
        self.shared.start.elapsed().as_nanos() as u64
    }

    fn sync_memory(&mut self) {
        if self.shared.signs.due.load(Ordering::Acquire) == 0 {
            self.seen = self.shared.signs.version.load(Ordering::Acquire);
            return;
        }
        self.seen = self.shared.with(|world| world.version());
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        let longest = Duration::from_nanos(nanos.min(200_000));
        self.sync_memory();
        let world = self.shared.lock();
        if world.version() == self.seen {
            drop(self.shared.news.wait_timeout(world, longest));
        }
        Ok(())
    }

    fn arm(&mut self) -> Result<()> {
        let Some(file) = &self.events else {
            return Ok(());
        };
        let _ = rustix::io::read(file, &mut [0u8; 8]);
        let armed = Armed {
            file: file.clone(),
            rank: self.rank,
            completed: self.shared.completed(self.rank),
        };
        let mut events = self.shared.events();
        events.retain(|armed| armed.rank != self.rank);
        events.push(armed);
        drop(events);
        // An event may have happened since the last poll.
        self.shared.raise();
        Ok(())
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        let system = |why: std::io::Error| Error::System(why.to_string());
        let file = match &self.events {
            Some(file) => file,
            None => {
                let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
                let file = eventfd(0, flags).map_err(|why| system(why.into()))?;
                // The descriptor is readable at first: an event may have happened before.
                signal(&file);
                self.events.insert(Arc::new(file))
            }
        };
        file.try_clone().map(Some).map_err(system)
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        let from = self.rank;
        self.shared.with(|world| world.oob_send(from, peer, words))
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        if self.shared.signs.words[self.rank].load(Ordering::Acquire) == 0 {
            return Ok(None);
        }
        Ok(self.shared.with(|world| world.oob_recv(self.rank)))
    }

    fn port_events(&mut self) -> Vec<PortEvent> {
        if self.shared.signs.port_events[self.rank].load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let take = |world: &mut World| std::mem::take(&mut world.port_events[self.rank]);
        self.shared.with(take)
    }
}
