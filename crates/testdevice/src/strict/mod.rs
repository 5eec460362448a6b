//! A device for tests: ranks of one process, whose work requests are carried out at once, in this process's memory.
//!
//! It is strict where real devices punish late: a send queue holds what was asked for and gives room back only when
//! completions are polled, completion queues overflow, keys and bounds are checked, a write to a queue pair that is not
//! connected fails. It can be made awkward: requests that wait for a while, by a seed, and bytes that become visible
//! in any order. Requests are carried out by whichever rank calls, so no rank has to be there for its peers.

mod memory;
mod queues;
mod world;

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, Error, Node, Placement, Qp,
    QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Work,
};
use world::{Signs, World};

const MTU: usize = 4096;
const LONGEST: u64 = 1 << 30;

/// What the devices are like.
#[derive(Clone, Debug)]
pub struct Setup {
    pub rails: usize,
    pub placement: Placement,
    /// The largest payload that may stand in a work request, in bytes.
    pub inline: usize,
    /// Requests wait for a while, and which of several queue pairs goes on first is a matter of chance.
    pub delays: bool,
    /// What needs a receive of the peer's waits for one; else it fails at once if there is none.
    pub patient: bool,
    pub immediates: bool,
    /// It says that requests fail where nobody answers. They do in any case.
    pub answered: bool,
    /// A connection stands only once both ends have asked for it.
    pub ties_both: bool,
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            rails: 1,
            placement: Placement::Ordered,
            inline: 64,
            delays: false,
            patient: true,
            immediates: true,
            answered: true,
            ties_both: false,
            seed: 1,
        }
    }
}

/// A node for each of so many ranks.
pub fn nodes(ranks: usize, setup: &Setup) -> Vec<Box<dyn Node + Send>> {
    let signs = Arc::new(Signs::new(ranks, ranks * setup.rails));
    let shared = Arc::new(Shared {
        world: Mutex::new(World::new(ranks, setup, signs.clone())),
        signs: signs.clone(),
        news: Condvar::new(),
        events: Mutex::default(),
        start: Instant::now(),
    });
    let node = |rank| {
        let device = |rail| InstantDevice {
            shared: shared.clone(),
            index: rank * setup.rails + rail,
            attributes: Attributes {
                name: format!("instant{rank} rail {rail}"),
                mtu: MTU,
                inline: setup.inline,
                longest: LONGEST,
                placement: setup.placement,
                immediates: setup.immediates,
                datagrams: true,
                answered: setup.answered,
                by_processor: false,
            },
        };
        Box::new(InstantNode {
            shared: shared.clone(),
            rank,
            seen: 0,
            events: None,
            devices: (0..setup.rails).map(device).collect(),
        }) as Box<dyn Node + Send>
    };
    (0..ranks).map(node).collect()
}

struct Shared {
    world: Mutex<World>,
    /// What of it there is to look at, so that a rank that finds nothing does not keep others from it.
    signs: Arc<Signs>,
    /// Something has changed that somebody may wait for.
    news: Condvar,
    /// Those who wait for a file, and have armed it.
    events: Mutex<Vec<Armed>>,
    start: Instant,
}

/// A rank's events, which are to be raised once there is something for it that was not there before.
struct Armed {
    file: Arc<OwnedFd>,
    rank: usize,
    /// Completions of its devices until then.
    completed: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Carries out what is due, after `call`.
    fn with<R>(&self, call: impl FnOnce(&mut World) -> R) -> R {
        let mut world = self.lock();
        let before = world.version();
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

    /// Raises the events of those for whom there is something.
    fn raise(&self) {
        self.events().retain(|armed| {
            let something = self.has_news(armed);
            if something {
                signal(&armed.file);
            }
            !something
        });
    }

    /// A completion, words, or what is delayed: that goes on when somebody looks.
    fn has_news(&self, armed: &Armed) -> bool {
        self.completed(armed.rank) != armed.completed
            || self.signs.words[armed.rank].load(Ordering::Acquire) > 0
            || self.signs.due.load(Ordering::Acquire) > 0
    }

    fn completed(&self, rank: usize) -> u64 {
        let rails = self.signs.completed.len() / self.signs.words.len();
        let devices = &self.signs.completed[rank * rails..][..rails];
        devices
            .iter()
            .map(|sign| sign.load(Ordering::Acquire))
            .sum()
    }

    fn events(&self) -> MutexGuard<'_, Vec<Armed>> {
        self.events
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}

struct InstantNode {
    shared: Arc<Shared>,
    rank: usize,
    /// The state of the world that this rank has looked at.
    seen: u64,
    /// Readable once something has happened, if somebody has asked for that.
    events: Option<Arc<OwnedFd>>,
    devices: Vec<InstantDevice>,
}

fn signal(file: &OwnedFd) {
    // It can only be full of signals already.
    let _ = rustix::io::write(file, &1u64.to_ne_bytes());
}

impl Node for InstantNode {
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
        // Something may have come meanwhile.
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
                // It begins raised: something may have happened before.
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
}

impl Drop for InstantNode {
    fn drop(&mut self) {
        for device in &self.devices {
            self.shared.with(|world| world.forget(device.index));
        }
    }
}

struct InstantDevice {
    shared: Arc<Shared>,
    index: usize,
    attributes: Attributes,
}

impl Device for InstantDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        self.shared.with(|world| {
            world
                .device(self.index)
                .register(address as u64, len, access)
        })
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).deregister(region))
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.shared
            .with(|world| world.device(self.index).create_cq(depth))
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        Ok(self
            .shared
            .with(|world| world.device(self.index).create_srq(depth)))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        if wanted.inline > self.attributes.inline {
            return Err(Error::Invalid(format!(
                "{} bytes inline are more than {} can take",
                wanted.inline, self.attributes.name
            )));
        }
        self.shared
            .with(|world| world.device(self.index).create_qp(wanted))
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).destroy_qp(qp))
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        Ok(Address {
            port: self.index as u128,
            qp: qp.0,
        })
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.shared
            .with(|world| world.connect(self.index, qp, peer))
    }

    fn state(&self, qp: Qp) -> Result<State> {
        self.shared
            .with(|world| Ok(world.device(self.index).qp(qp)?.state))
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.shared.with(|world| world.modify(self.index, qp, to))
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        self.shared.with(|world| world.post(self.index, qp, work))
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        self.shared
            .with(|world| world.device(self.index).post_receive(queue, id, into))
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let signs = &self.shared.signs;
        if signs.due.load(Ordering::Acquire) == 0
            && signs.completions[self.index].load(Ordering::Acquire) == 0
        {
            return Ok(0);
        }
        self.shared
            .with(|world| world.device(self.index).poll(cq, into))
    }
}
