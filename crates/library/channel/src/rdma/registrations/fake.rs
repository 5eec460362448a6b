//! Fake memory, devices and a fake watch for tests. The devices pin pages, as real ones do: a
//! region knows the pages that were mapped when it was registered.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};

use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, Error, LinkLayer, Node, Placement,
    Qp, QpWanted, ReceiveQueue, Region, RequestCosts, Result, Slice, Srq, State, Work,
};

use super::watch::{Changes, PAGE, Watch, pages};

/// A region that a fake device of tests has registered.
#[derive(Clone, Debug)]
pub(super) struct Pinned {
    pub rail: usize,
    pub range: Range<u64>,
    pub access: Access,
    /// For each page of the region: the number of the mapping that it had at registration.
    frames: Vec<u64>,
}

/// The mapped pages, the watched pages and the registered regions of a test.
pub(super) struct Memory {
    /// For each page, the number of mappings that it has had.
    mappings: HashMap<u64, u64>,
    pub watched: BTreeSet<u64>,
    changes: Changes,
    /// The regions that are registered now, by key.
    pub live: HashMap<u32, Pinned>,
    last_key: u32,
    pub registered: usize,
    pub deregistered: usize,
    /// The most bytes that may be registered.
    pub limit: u64,
    pub attempts: usize,
}

impl Memory {
    fn frames(&self, range: &Range<u64>) -> Vec<u64> {
        let frame = |at| self.mappings.get(&(at * PAGE)).copied().unwrap_or(0);
        (range.start / PAGE..range.end.div_ceil(PAGE))
            .map(frame)
            .collect()
    }

    /// True if the region's pages are those that the program has mapped now.
    pub(super) fn is_fresh(&self, pinned: &Pinned) -> bool {
        pinned.frames == self.frames(&pinned.range)
    }

    /// The number of bytes that are registered.
    pub(super) fn bytes(&self) -> u64 {
        let len = |pinned: &Pinned| pinned.range.end - pinned.range.start;
        self.live.values().map(len).sum()
    }

    /// Maps other pages at these addresses. A new mapping is not watched.
    pub(super) fn map_anew(&mut self, range: Range<u64>) {
        for page in range.step_by(PAGE as usize) {
            *self.mappings.entry(page).or_default() += 1;
            if self.watched.remove(&page) {
                self.changes.add(page, page + PAGE);
            }
        }
    }

    /// Discards the pages of a mapping, as `madvise` of the program does.
    pub(super) fn discard(&mut self, range: Range<u64>) {
        for page in range.step_by(PAGE as usize) {
            *self.mappings.entry(page).or_default() += 1;
            if self.watched.contains(&page) {
                self.changes.add(page, page + PAGE);
            }
        }
    }
}

/// Memory that a test shares with its devices and its watch.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Memory>>);

impl Shared {
    pub(super) fn new() -> Shared {
        Shared(Arc::new(Mutex::new(Memory {
            mappings: HashMap::new(),
            watched: BTreeSet::new(),
            changes: Changes::NONE,
            live: HashMap::new(),
            last_key: 0,
            registered: 0,
            deregistered: 0,
            limit: u64::MAX,
            attempts: 0,
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap()
    }
}

/// The watch of a test, which reports the changes that the test makes.
pub(super) struct FakeWatch(pub Shared);

impl Watch for FakeWatch {
    fn watch(&mut self, pages: Range<u64>) -> bool {
        assert!(pages.start.is_multiple_of(PAGE) && pages.end.is_multiple_of(PAGE));
        self.0.lock().watched.extend(pages.step_by(PAGE as usize));
        true
    }

    fn unwatch(&mut self, pages: Range<u64>) {
        let mut memory = self.0.lock();
        for page in pages.step_by(PAGE as usize) {
            memory.watched.remove(&page);
        }
    }

    fn take_changes(&mut self) -> Option<Changes> {
        let changes = std::mem::replace(&mut self.0.lock().changes, Changes::NONE);
        (!changes.is_empty()).then_some(changes)
    }
}

/// A node with one device for each entry of `domains`, in the protection domain of that number.
pub(super) struct FakeNode {
    devices: Vec<FakeDevice>,
}

struct FakeDevice {
    rail: usize,
    attributes: Attributes,
    memory: Shared,
}

impl FakeNode {
    pub(super) fn new(domains: &[usize], memory: &Shared) -> FakeNode {
        let device = |(rail, &domain): (usize, &usize)| FakeDevice {
            rail,
            attributes: Attributes {
                name: format!("fake{rail}"),
                mtu: 4096,
                inline: 0,
                longest: 1 << 30,
                placement: Placement::Ordered,
                immediates: true,
                datagrams: true,
                answered: true,
                by_processor: false,
                polled: false,
                resets: true,
                link_layer: LinkLayer::InfiniBand,
                subnet: 0,
                bandwidth: 1_000_000_000,
                latency_ns: 1000,
                request: RequestCosts::usual(1000, 1_000_000_000),
                card: rail,
                domain,
            },
            memory: memory.clone(),
        };
        FakeNode {
            devices: domains.iter().enumerate().map(device).collect(),
        }
    }
}

impl Node for FakeNode {
    fn rails(&self) -> usize {
        self.devices.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut self.devices[rail]
    }

    fn now(&mut self) -> u64 {
        0
    }

    fn sync_memory(&mut self) {}

    fn wait(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn oob_send(&mut self, _: usize, _: &[u8]) -> Result<()> {
        unreachable!("a node without peers")
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        Ok(None)
    }
}

impl Device for FakeDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        let mut memory = self.memory.lock();
        memory.attempts += 1;
        if memory.bytes() + len as u64 > memory.limit {
            let words = format!("attempt {}: too much locked memory", memory.attempts);
            return Err(Error::Shortage(words));
        }
        let range = address as u64..address as u64 + len as u64;
        let pinned = Pinned {
            rail: self.rail,
            frames: memory.frames(&range),
            range,
            access,
        };
        memory.last_key += 1;
        memory.registered += 1;
        let key = memory.last_key;
        memory.live.insert(key, pinned);
        Ok(Region {
            address: address as u64,
            len: len as u64,
            lkey: key,
            rkey: key,
        })
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        let mut memory = self.memory.lock();
        memory.deregistered += 1;
        let gone = memory.live.remove(&region.lkey);
        let gone = gone.expect("a region is deregistered once");
        assert_eq!(gone.rail, self.rail, "by the device that registered it");
        assert_eq!(gone.range, region.address..region.address + region.len);
        Ok(())
    }

    fn create_cq(&mut self, _: usize) -> Result<Cq> {
        unreachable!("a device without queues")
    }

    fn create_srq(&mut self, _: usize) -> Result<Srq> {
        unreachable!("a device without queues")
    }

    fn create_qp(&mut self, _: &QpWanted) -> Result<Qp> {
        unreachable!("a device without queues")
    }

    fn destroy_qp(&mut self, _: Qp) -> Result<()> {
        unreachable!("a device without queues")
    }

    fn address(&self, _: Qp) -> Result<Address> {
        unreachable!("a device without queues")
    }

    fn connect(&mut self, _: Qp, _: Option<Address>) -> Result<()> {
        unreachable!("a device without queues")
    }

    fn state(&self, _: Qp) -> Result<State> {
        unreachable!("a device without queues")
    }

    fn modify(&mut self, _: Qp, _: Ending) -> Result<()> {
        unreachable!("a device without queues")
    }

    unsafe fn post(&mut self, _: Qp, _: &Work) -> Result<()> {
        unreachable!("a device without queues")
    }

    unsafe fn post_receive(&mut self, _: ReceiveQueue, _: u64, _: &[Slice]) -> Result<()> {
        unreachable!("a device without queues")
    }

    fn poll(&mut self, _: Cq, _: &mut [Completion]) -> Result<usize> {
        unreachable!("a device without queues")
    }
}

/// The address of each page of a region.
pub(super) fn each_page(pinned: &Pinned) -> impl Iterator<Item = u64> {
    let len = (pinned.range.end - pinned.range.start) as usize;
    pages(pinned.range.start, len).step_by(PAGE as usize)
}
