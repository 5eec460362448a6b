//! A node whose devices are counted: what is asked of them, whatever they are. For tests.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use crate::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Effort, Ending, Node,
    Operation, Qp, QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Work,
};

/// What all devices of a rank have been asked for. Nothing in it depends on when something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub writes: u64,
    pub writes_with_immediate: u64,
    pub reads: u64,
    pub sends: u64,
    pub atomics: u64,
    /// Of all of these: their payload, in bytes, and those that ask for a completion.
    pub bytes: u64,
    pub signaled: u64,
    pub receives_posted: u64,
    /// Completions taken of what peers sent, or wrote with immediate: each is one that wakes a rank that sleeps.
    pub received: u64,
    pub registrations: u64,
}

impl Counts {
    fn posted(&mut self, work: &Work) {
        *match work.operation {
            Operation::Write {
                immediate: None, ..
            } => &mut self.writes,
            Operation::Write { .. } => &mut self.writes_with_immediate,
            Operation::Read { .. } => &mut self.reads,
            Operation::Send { .. } => &mut self.sends,
            Operation::CompareAndSwap { .. } | Operation::FetchAndAdd { .. } => &mut self.atomics,
        } += 1;
        self.bytes += work
            .local
            .iter()
            .map(|slice| u64::from(slice.len))
            .sum::<u64>();
        self.signaled += u64::from(work.signaled);
    }

    /// What has come since.
    pub fn since(&self, before: &Counts) -> Counts {
        Counts {
            writes: self.writes - before.writes,
            writes_with_immediate: self.writes_with_immediate - before.writes_with_immediate,
            reads: self.reads - before.reads,
            sends: self.sends - before.sends,
            atomics: self.atomics - before.atomics,
            bytes: self.bytes - before.bytes,
            signaled: self.signaled - before.signaled,
            receives_posted: self.receives_posted - before.receives_posted,
            received: self.received - before.received,
            registrations: self.registrations - before.registrations,
        }
    }
}

/// What a node's devices have been asked for until now: read by whoever made it [`Counted`].
pub type Counter = Arc<Mutex<Counts>>;

/// Hands everything on to a node.
pub struct Counted {
    node: RefCell<Box<dyn Node>>,
    /// The device that is in use, and what each is.
    rail: usize,
    attributes: Vec<Attributes>,
    counter: Counter,
}

impl Counted {
    pub fn new(node: Box<dyn Node>, counter: Counter) -> Counted {
        let mut node = node;
        let rails = 0..node.rails();
        let attributes = |rail| node.rail(rail).attributes().clone();
        Counted {
            attributes: rails.map(attributes).collect(),
            node: RefCell::new(node),
            rail: 0,
            counter,
        }
    }

    fn node(&mut self) -> &mut dyn Node {
        &mut **self.node.get_mut()
    }

    fn device(&mut self) -> &mut dyn Device {
        let rail = self.rail;
        self.node().rail(rail)
    }

    fn count(&self, what: impl FnOnce(&mut Counts)) {
        what(
            &mut self
                .counter
                .lock()
                .unwrap_or_else(|broken| broken.into_inner()),
        );
    }
}

impl Node for Counted {
    fn rails(&self) -> usize {
        self.attributes.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        self.rail = rail;
        self
    }

    fn now(&mut self) -> u64 {
        self.node().now()
    }

    fn is_virtual(&self) -> bool {
        self.node.borrow().is_virtual()
    }

    fn look(&mut self) {
        self.node().look()
    }

    fn spend(&mut self, effort: Effort) {
        self.node().spend(effort)
    }

    fn enter(&mut self, call: &'static str, computed: u64) {
        self.node().enter(call, computed)
    }

    fn leave(&mut self) {
        self.node().leave()
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.node().wait(nanos)
    }

    fn arm(&mut self) -> Result<()> {
        self.node().arm()
    }

    fn events(&mut self) -> Result<Option<OwnedFd>> {
        self.node().events()
    }

    fn tell(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.node().tell(peer, words)
    }

    fn told(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        self.node().told()
    }

    fn notes(&mut self) -> Vec<String> {
        self.node().notes()
    }
}

impl Device for Counted {
    fn attributes(&self) -> &Attributes {
        &self.attributes[self.rail]
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        self.count(|counts| counts.registrations += 1);
        // SAFETY: what the caller has promised.
        unsafe { self.device().register(address, len, access) }
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        self.device().deregister(region)
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.device().create_cq(depth)
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        self.device().create_srq(depth)
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        self.device().create_qp(wanted)
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.device().destroy_qp(qp)
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        self.node.borrow_mut().rail(self.rail).address(qp)
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.device().connect(qp, peer)
    }

    fn state(&self, qp: Qp) -> Result<State> {
        self.node.borrow_mut().rail(self.rail).state(qp)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.device().modify(qp, to)
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        // SAFETY: what the caller has promised.
        unsafe { self.device().post(qp, work)? };
        self.count(|counts| counts.posted(work));
        Ok(())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        // SAFETY: what the caller has promised.
        unsafe { self.device().post_receive(queue, id, into)? };
        self.count(|counts| counts.receives_posted += 1);
        Ok(())
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let taken = self.device().poll(cq, into)?;
        let of_peers =
            |one: &&Completion| matches!(one.of, Completed::Receive | Completed::ReceiveWrite);
        let received = into[..taken].iter().filter(of_peers).count();
        self.count(|counts| counts.received += received as u64);
        Ok(taken)
    }
}
