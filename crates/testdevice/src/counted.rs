//! A node whose devices are counted: what is asked of them, whatever they are, and how often they wake their rank. For tests.
//!
//! How often a rank is woken depends on how soon it sleeps again, unless it is always about to: a [`Counted::sleeper`] arms
//! its devices before it asks anything of them, and once it has been woken, and waits for nothing but their events. So each
//! thing that comes of what was asked for finds it armed, and counts. In virtual time, where there are no events, each wait
//! counts after which the first look finds a completion.

use std::cell::RefCell;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use device::{
    Access, Address, Attributes, Completed, Completion, Cq, Device, Ending, Node, Operation, Qp,
    QpWanted, ReceiveQueue, Region, Result, Slice, Srq, State, Work,
};

/// A completion can be seen a little before its event, in nanoseconds.
const EVENT_COMES: u64 = 20_000_000;

/// What all devices of a rank have been asked for. Nothing in it depends on when something happened, but `woken`, unless
/// the rank is a [`Counted::sleeper`]'s.
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
    /// Completions taken of what peers sent, or wrote with immediate.
    pub received: u64,
    pub registrations: u64,
    /// How often the devices have woken the rank.
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
            woken: self.woken - before.woken,
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
    waking: Waking,
}

/// How the rank waits.
enum Waking {
    /// As its node lets it. True: it has waited, and not looked since.
    ByNode(bool),
    ByEvents {
        events: OwnedFd,
        armed: bool,
        /// Whether it sleeps now.
        asleep: Arc<AtomicBool>,
    },
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
            waking: Waking::ByNode(false),
        }
    }

    /// A node that sleeps whenever its rank waits, and says so in `asleep`, if its devices have events.
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

    /// Arms the devices, if they have said something since they were.
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

    device::delegate_to_node!();
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
        self.arm_anew()?;
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
        let woken = match &mut self.waking {
            _ if taken == 0 => false,
            Waking::ByNode(waited) => std::mem::take(waited),
            // What was found before the rank slept would have woken it, unless it came before the devices were armed.
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

/// Whether that is so within some time.
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
