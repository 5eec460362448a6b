//! A strict device in memory: the ranks are threads of one process, and their requests are executed
//! at once, in its memory.
//!
//! It is strict where real devices fail late: a send queue holds exactly the requested number of
//! requests and has room again only after completions are polled; completion queues overflow; keys
//! and bounds are checked; a write to an unconnected queue pair fails. It can be made awkward:
//! requests are delayed at random, and bytes become visible in any order. Any rank that calls
//! executes all requests, so no rank needs its peers to call. Tests cut and slow down its cables
//! ([`Cables`]).

mod cables;
mod hosted;
mod memory;
mod queues;
mod setup;
mod states;
mod world;

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd};

pub use cables::{Cables, Cut};
use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, Error, Node, PortEvent, Qp,
    QpWanted, ReceiveQueue, Region, RequestCosts, Result, Slice, Srq, State, Work,
};
pub use hosted::hosted;
pub use setup::{RailSetup, Setup};
use world::{Signs, World};

const MTU: usize = 4096;
const LONGEST: u64 = 1 << 30;

/// Makes a node for each of `ranks` ranks.
pub fn nodes(ranks: usize, setup: &Setup) -> Vec<Box<dyn Node + Send>> {
    machine(ranks, setup).0
}

/// Makes a node for each of `ranks` ranks, and returns the cables between them too.
///
/// ```
/// use testdevice::strict::{Cut, Setup, machine};
///
/// let (nodes, cables) = machine(2, &Setup { rails: 2, ..Setup::default() });
/// assert_eq!(nodes[0].rails(), 2);
/// cables.cut(1, 0, Cut::Silent);
/// cables.mend(1, 0);
/// ```
pub fn machine(ranks: usize, setup: &Setup) -> (Vec<Box<dyn Node + Send>>, Cables) {
    let shared = shared(ranks, setup);
    let node = |rank| {
        Box::new(StrictNode {
            shared: shared.clone(),
            rank,
            seen: 0,
            events: None,
            devices: devices(&shared, rank, setup),
        }) as Box<dyn Node + Send>
    };
    let nodes = (0..ranks).map(node).collect();
    (nodes, Cables { shared })
}

/// The machine behind the devices of `ranks` ranks.
fn shared(ranks: usize, setup: &Setup) -> Arc<StrictMachine> {
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

fn devices(shared: &Arc<StrictMachine>, rank: usize, setup: &Setup) -> Vec<StrictDevice> {
    let device = |rail| StrictDevice {
        shared: shared.clone(),
        index: shared.index(rank, rail),
        attributes: attributes(setup, rank, rail),
        longest_region: setup.longest_region,
    };
    (0..setup.rails_of_rank(rank)).map(device).collect()
}

fn attributes(setup: &Setup, rank: usize, rail: usize) -> Attributes {
    let own = setup.of_rail(rail);
    Attributes {
        name: format!("instant{rank} rail {rail}"),
        mtu: MTU,
        inline: setup.inline,
        longest: LONGEST,
        placement: own.placement,
        immediates: own.immediates,
        datagrams: true,
        answered: setup.answered,
        by_processor: false,
        polled: false,
        resets: own.resets,
        link_layer: own.link_layer,
        subnet: own.subnet,
        bandwidth: own.bandwidth,
        latency_ns: own.latency_ns,
        request: RequestCosts::usual(own.latency_ns, own.bandwidth),
        card: own.card,
        domain: own.domain,
    }
}

struct StrictMachine {
    /// The most rails of a rank.
    rails: usize,
    world: Mutex<World>,
    /// A summary of the world, so that a rank's poll that finds nothing does not lock out others.
    signs: Arc<Signs>,
    /// Signaled when something has changed that a rank may wait for.
    news: Condvar,
    /// The armed descriptors that ranks wait for.
    events: Mutex<Vec<Armed>>,
    start: Instant,
}

/// A rank's events, raised once there is something new for it.
struct Armed {
    file: Arc<OwnedFd>,
    rank: usize,
    /// The number of its devices' completions when it was armed.
    completed: u64,
}

impl StrictMachine {
    /// The number of a rank's device among all.
    fn index(&self, rank: usize, rail: usize) -> usize {
        rank * self.rails + rail
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.world
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Runs `call`, then executes the requests that are due.
    fn with<R>(&self, call: impl FnOnce(&mut World) -> R) -> R {
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
    fn raise(&self) {
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

    fn completed(&self, rank: usize) -> u64 {
        let devices = &self.signs.completed[self.index(rank, 0)..][..self.rails];
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

struct StrictNode {
    shared: Arc<StrictMachine>,
    rank: usize,
    /// The version of the world that this rank has polled.
    seen: u64,
    /// Readable after an event, once the rank has asked for events.
    events: Option<Arc<OwnedFd>>,
    devices: Vec<StrictDevice>,
}

fn signal(file: &OwnedFd) {
    // A failure means that it is readable already.
    let _ = rustix::io::write(file, &1u64.to_ne_bytes());
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
        // Something may have arrived meanwhile.
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
                // It starts readable: something may have happened before.
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

struct StrictDevice {
    shared: Arc<StrictMachine>,
    index: usize,
    attributes: Attributes,
    longest_region: usize,
}

impl Drop for StrictDevice {
    fn drop(&mut self) {
        self.shared.with(|world| world.forget(self.index));
    }
}

impl Device for StrictDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    fn sync_memory(&mut self) {
        if self.shared.signs.due.load(Ordering::Acquire) > 0 {
            self.shared.with(|_| ());
        }
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        if len > self.longest_region {
            let words = format!("{len} bytes are more than can be registered");
            return Err(Error::Shortage(words));
        }
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

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        self.shared.with(|world| world.is_drained(self.index, qp))
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
