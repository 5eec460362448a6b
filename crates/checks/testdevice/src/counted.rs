//! A node that counts the requests to its devices, and the wake-ups of its rank.
//!
//! The number of wake-ups depends on how soon the rank sleeps again, unless it always sleeps: a
//! [`Counted::sleeper`] arms its devices before each request and after each wake-up, and waits for
//! their events only. Every effect of a request thus finds the devices armed, and is counted.
//! Virtual time has no events: there a wait is counted if the first poll after it finds a
//! completion.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use device::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Ending, Node, Operation, Qp,
    QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Work,
};

/// The longest delay of an event after its completion is visible, in nanoseconds, on a machine
/// whose processors also do other work.
const EVENT_COMES: u64 = 500_000_000;

/// The numbers of requests to all devices of a rank. None depends on timing, except `woken` of a
/// rank without a [`Counted::sleeper`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of RDMA writes without immediate.
    pub writes: u64,
    /// The number of RDMA writes with immediate.
    pub writes_with_immediate: u64,
    /// The number of RDMA reads.
    pub reads: u64,
    /// The number of sends.
    pub sends: u64,
    /// The number of atomics.
    pub atomics: u64,
    /// The payload of all requests, in bytes.
    pub bytes: u64,
    /// The number of signaled requests.
    pub signaled: u64,
    /// The number of receives posted.
    pub receives_posted: u64,
    /// The number of completions of receives.
    pub received: u64,
    /// The number of registrations of memory.
    pub registrations: u64,
    /// The number of wake-ups of the rank by its devices.
    pub woken: u64,
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

    /// The counts since an earlier state.
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
            woken: self.woken - before.woken,
        }
    }
}

/// The counts of a node so far, shared with the maker of its [`Counted`].
pub type Counter = Arc<Mutex<Counts>>;

/// A node that delegates to another node and counts requests.
pub struct Counted {
    node: RefCell<Box<dyn Node>>,
    /// The number of the rail of the current device.
    rail: usize,
    attributes: Vec<Attributes>,
    counter: Counter,
    waking: Waking,
}

/// The rank's means of waiting.
enum Waking {
    /// The wait of the node itself. True: the rank has waited and not polled since.
    ByNode(bool),
    ByEvents {
        events: OwnedFd,
        armed: bool,
        /// True while the rank sleeps.
        asleep: Arc<AtomicBool>,
    },
}

impl Counted {
    /// Counts the requests to the devices of `node`.
    pub fn new(node: Box<dyn Node>, counter: Counter) -> Counted {
        let mut node = node;
        let rails = 0..node.rails();
        let attributes = |rail| node.rail(rail).attributes().clone();
        Counted {
            attributes: rails.map(attributes).collect(),
            node: RefCell::new(node),
            rail: 0,
            counter,
            waking: Waking::ByNode(false),
        }
    }

    /// Counts like [`new`](Counted::new). If the devices have events, the rank sleeps in every
    /// wait, and sets `asleep` meanwhile.
    pub fn sleeper(
        node: Box<dyn Node>,
        counter: Counter,
        asleep: Arc<AtomicBool>,
    ) -> Result<Counted> {
        let mut counted = Counted::new(node, counter);
        if let Some(events) = counted.node().events()? {
            counted.waking = Waking::ByEvents {
                events,
                armed: false,
                asleep,
            };
        }
        Ok(counted)
    }

    /// Arms the devices, if they are not armed.
    fn arm_anew(&mut self) -> Result<()> {
        if let Waking::ByEvents { armed, .. } = &mut self.waking
            && !std::mem::replace(armed, true)
        {
            self.node().arm()?;
        }
        Ok(())
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

    fn wait(&mut self, nanos: u64) -> Result<()> {
        let (events, armed, asleep) = match &mut self.waking {
            Waking::ByNode(waited) => {
                *waited = true;
                return self.node().wait(nanos);
            }
            Waking::ByEvents { armed: false, .. } => return self.arm_anew(),
            Waking::ByEvents {
                events,
                armed,
                asleep,
            } => (events, armed, asleep),
        };
        asleep.store(true, Ordering::SeqCst);
        let woken = can_be_read(events, nanos);
        asleep.store(false, Ordering::SeqCst);
        *armed = !woken;
        self.count(|counts| counts.woken += u64::from(woken));
        Ok(())
    }

    fn wait_idle(&mut self, nanos: u64) -> Result<()> {
        match &mut self.waking {
            Waking::ByNode(waited) => {
                *waited = true;
                self.node().wait_idle(nanos)
            }
            _ => self.wait(nanos),
        }
    }

    device::delegate_to_node!();
}

impl Device for Counted {
    fn attributes(&self) -> &Attributes {
        &self.attributes[self.rail]
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        self.count(|counts| counts.registrations += 1);
        // SAFETY: the caller's promise.
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

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        self.device().is_drained(qp)
    }

    fn set_probing(&mut self, qp: Qp, probing: bool) -> Result<()> {
        self.device().set_probing(qp, probing)
    }

    fn cork(&mut self) {
        self.device().cork()
    }

    fn uncork(&mut self) {
        self.device().uncork()
    }

    fn is_corked(&self, qp: Qp) -> bool {
        self.node.borrow_mut().rail(self.rail).is_corked(qp)
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.device().modify(qp, to)
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        self.arm_anew()?;
        // SAFETY: the caller's promise.
        unsafe { self.device().post(qp, work)? };
        self.count(|counts| counts.posted(work));
        Ok(())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.device().post_receive(queue, id, into)? };
        self.count(|counts| counts.receives_posted += 1);
        Ok(())
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let taken = self.device().poll(cq, into)?;
        let of_peers =
            |one: &&Completion| matches!(one.of, Completed::Receive | Completed::ReceiveWrite);
        let received = into[..taken].iter().filter(of_peers).count();
        let woken = match &mut self.waking {
            _ if taken == 0 => false,
            Waking::ByNode(waited) => std::mem::take(waited),
            // A completion that was there before the rank slept would have ended the sleep, unless
            // it came before the devices were armed.
            Waking::ByEvents { events, armed, .. } => {
                let woken = *armed && can_be_read(events, EVENT_COMES);
                *armed &= !woken;
                woken
            }
        };
        self.count(|counts| {
            counts.received += received as u64;
            counts.woken += u64::from(woken);
        });
        Ok(taken)
    }
}

/// True if a descriptor becomes readable within `nanos` nanoseconds, at most a second.
fn can_be_read(file: &OwnedFd, nanos: u64) -> bool {
    let mut entry = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let millis = (nanos / 1_000_000).min(1000) as i32;
    // SAFETY: one entry.
    unsafe { libc::poll(&mut entry, 1, millis) == 1 }
}
