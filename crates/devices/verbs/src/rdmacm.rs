//! Connections of iWARP. Its queue pairs run over TCP, and only the kernel's connection manager can
//! connect two of them. It is used through librdmacm, which is opened with the first iWARP device.
//!
//! Each queue pair has a *line*: from its creation it listens at a TCP port of its own. That port,
//! with a random number in the upper half of `port`, is its [`Address`]. When both ends connect,
//! the end with the lower address *calls*: it sends a connection request. The *exchange* of the
//! other end, one thread for each device, accepts a call if the caller proves that it knows the
//! job's secret and the complete address. So calls are made and accepted while the ranks do not
//! poll, however long they compute; the manager drops a call that is not accepted within some
//! seconds. Call and answer carry codes made with the job's secret (`card`), so that neither end is
//! connected to a stranger.
//!
//! Invariants: an event is handled before it is acknowledged to the manager; and an id is destroyed
//! only outside the lock, because its destruction waits until its events have been handled, for
//! which the exchange needs the lock.

mod attend;
mod calls;
mod card;
mod manager;

use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, JoinHandle};

use attend::{attend, raise, signal_file, without_signals};
use card::Card;
use manager::{Manager, manager};

use super::connection::PortPath;
use super::internet::{socket_address, words};
use super::keys::Keys;
use super::library::{check, refused};
use super::open_device::nonblocking;
use super::sys::*;
use device::{Address, Error, Result, State};
use secret::codes::Codes;

/// The time limit for the resolution of an address or a route, in milliseconds.
const PATIENCE: c_int = 10_000;
/// The greatest number of calls to a queue pair that wait for acceptance.
const BACKLOG: c_int = 4;

/// Makes and accepts the connections of an iWARP device's queue pairs, by a thread of its own.
pub(crate) struct Exchange {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    manager: &'static Manager,
    device: String,
    /// The codes that authenticate calls and their answers.
    codes: Codes,
    channel: *mut rdma_event_channel,
    /// An eventfd that is readable when the thread must end.
    end: OwnedFd,
    /// An eventfd that is readable once the state of a line has changed.
    news: OwnedFd,
    /// True if the state of a line has changed since the last call of `has_news`.
    is_new: AtomicBool,
    lines: Mutex<HashMap<u32, Ends>>,
    /// The reason why the manager reports no more events, once it is known. Set under the lock.
    ended: OnceLock<String>,
}

// SAFETY: the pointers belong to the manager, whose functions may be called from any thread, and
// each object is destroyed once.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// The state of a line (the connection of a queue pair, or the listening for one), with its ids of
/// the connection manager.
struct Ends {
    listener: *mut rdma_cm_id,
    /// The identifier of the call, ours or a peer's; null: there is no call.
    id: *mut rdma_cm_id,
    address: Address,
    /// The greatest numbers of reads and atomics in flight: of this end, and of the peer.
    path: (u8, u8),
    /// The other end of the call: the called one, or the one that the caller claims to be.
    peer: Option<Address>,
    /// True if this end makes the call.
    is_caller: bool,
    phase: Phase,
}

#[derive(Clone, PartialEq)]
enum Phase {
    /// No call has been made or accepted.
    Waiting,
    Calling,
    Connected,
    Failed(String),
}

impl Ends {
    /// The card of our own call; `None`: there is no call, or a peer's.
    fn card(&self) -> Option<Card> {
        let to = self.peer.filter(|_| self.is_caller)?;
        Some(Card {
            from: self.address,
            to,
        })
    }
}

/// The line of one queue pair: its connection, or the listening for one. Dropped with the queue
/// pair.
pub(crate) struct Line {
    shared: Arc<Shared>,
    number: u32,
    address: Address,
}

impl Exchange {
    pub(crate) fn open(device: &str, keys: &Keys) -> Result<Exchange> {
        let manager = manager()?;
        // SAFETY: the function has no arguments.
        let channel = unsafe { (manager.create_event_channel)() };
        if channel.is_null() {
            return Err(refused(device, "opening /dev/infiniband/rdma_cm"));
        }
        let shared = Arc::new(Shared {
            manager,
            device: device.to_string(),
            codes: keys.calls.clone(),
            channel,
            end: signal_file(device)?,
            news: signal_file(device)?,
            is_new: AtomicBool::new(false),
            lines: Mutex::default(),
            ended: OnceLock::new(),
        });
        // A read of the channel may find nothing: an event disappears with its id.
        // SAFETY: a channel of ours.
        let calls = unsafe { (*channel).fd };
        nonblocking(device, calls)?;
        let own = shared.clone();
        let thread = without_signals(|| {
            let builder = Builder::new().name("fishplate calls".into());
            builder.spawn(move || own.work(calls))
        });
        match thread {
            Ok(thread) => Ok(Exchange {
                shared,
                thread: Some(thread),
            }),
            Err(why) => Err(Error::System(format!(
                "{device}: a thread for calls: {why}"
            ))),
        }
    }

    /// Listens for calls to queue pair `number`, at a port of the host's address `ip`.
    pub(crate) fn listen(&self, number: u32, ip: u128, path: &PortPath) -> Result<Line> {
        let shared = &self.shared;
        let nonce = secret::nonce().map_err(|why| {
            let device = &shared.device;
            Error::System(format!("{device}: the system gives no random bytes: {why}"))
        })?;
        let listener = shared.new_id()?;
        let bound = shared.bind(listener, ip);
        let port = match bound {
            Ok(port) => port,
            Err(why) => {
                // SAFETY: our own id, to which nothing refers.
                unsafe { (shared.manager.destroy_id)(listener) };
                return Err(why);
            }
        };
        let address = Address {
            port: u128::from(nonce) << 64 | ip,
            qp: port.into(),
        };
        let ends = Ends {
            listener,
            id: ptr::null_mut(),
            address,
            path: (path.asked, path.answered),
            peer: None,
            is_caller: false,
            phase: Phase::Waiting,
        };
        let line = Line {
            shared: shared.clone(),
            number,
            address,
        };
        let mut lines = shared.lines();
        lines.insert(number, ends);
        let ended = shared.ended.get().cloned();
        drop(lines);
        match ended {
            Some(why) => Err(Error::System(why)),
            None => Ok(line),
        }
    }

    /// A descriptor that is readable once the state of a line has changed.
    pub(crate) fn fd(&self) -> RawFd {
        self.shared.news.as_raw_fd()
    }

    /// True if the state of a line has changed since the last call.
    pub(crate) fn has_news(&self) -> bool {
        let is_new = self.shared.is_new.swap(false, Ordering::AcqRel);
        if is_new {
            let mut count = [0u8; 8];
            // SAFETY: our own nonblocking descriptor, and memory for eight bytes.
            unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
        }
        is_new
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        raise(&self.shared.end);
        if let Some(thread) = self.thread.take() {
            // The thread's result does not matter.
            let _ = thread.join();
        }
        // SAFETY: no id is left, and no thread waits for events.
        unsafe { (self.shared.manager.destroy_event_channel)(self.shared.channel) };
    }
}

impl Line {
    pub(crate) fn address(&self) -> Address {
        self.address
    }

    /// Starts the connection to a peer's queue pair, whose owner must call this, too.
    pub(crate) fn connect(&self, peer: Address) -> Result<()> {
        let key = |address: Address| (address.port as u64, address.qp);
        let shared = &self.shared;
        if key(self.address) == key(peer) {
            let device = &shared.device;
            return Err(Error::Invalid(format!(
                "{device}: a queue pair cannot be connected to itself"
            )));
        }
        let mut lines = shared.lines();
        let Some(ends) = lines.get_mut(&self.number) else {
            return Ok(());
        };
        match ends.peer {
            Some(caller) if caller != peer => {
                let (device, words) = (&shared.device, words(caller));
                ends.phase = Phase::Failed(format!(
                    "{device}: {words} has called a queue pair that is connected to another"
                ));
            }
            None if ends.phase == Phase::Waiting && key(self.address) < key(peer) => {
                ends.id = shared.new_id()?;
                ends.peer = Some(peer);
                ends.is_caller = true;
                ends.phase = Phase::Calling;
                shared.call(ends, peer)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> Result<State> {
        match self
            .shared
            .lines()
            .get(&self.number)
            .map(|ends| &ends.phase)
        {
            Some(Phase::Connected) => Ok(State::Rts),
            Some(Phase::Failed(why)) => Err(Error::System(why.clone())),
            _ => Ok(State::Connecting),
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let gone = self.shared.lines().remove(&self.number);
        for id in gone.into_iter().flat_map(|ends| [ends.id, ends.listener]) {
            self.shared.let_go(id);
        }
    }
}

impl Shared {
    fn lines(&self) -> MutexGuard<'_, HashMap<u32, Ends>> {
        self.lines
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    fn check(&self, what: &str, answer: c_int) -> Result<()> {
        check(&self.device, what, answer)
    }

    fn new_id(&self) -> Result<*mut rdma_cm_id> {
        let mut id = ptr::null_mut();
        // SAFETY: a channel of ours, and memory for the result.
        let answer = unsafe {
            (self.manager.create_id)(self.channel, &mut id, ptr::null_mut(), RDMA_PS_TCP)
        };
        self.check("creating a connection's end", answer)?;
        Ok(id)
    }

    fn let_go(&self, id: *mut rdma_cm_id) {
        if !id.is_null() {
            // SAFETY: our own id, to which nothing refers any more.
            unsafe { (self.manager.destroy_id)(id) };
        }
    }

    /// Makes an id listen at the IPv4 address `ip`, and returns its port.
    fn bind(&self, listener: *mut rdma_cm_id, ip: u128) -> Result<u16> {
        let mut own = socket_address(Address { port: ip, qp: 0 })?;
        // SAFETY: an id of ours, and an IPv4 address.
        self.check("listening", unsafe {
            (self.manager.bind_addr)(listener, (&raw mut own).cast())
        })?;
        // SAFETY: as above.
        self.check("listening", unsafe {
            (self.manager.listen)(listener, BACKLOG)
        })?;
        // SAFETY: as above.
        Ok(u16::from_be(unsafe {
            (self.manager.get_src_port)(listener)
        }))
    }

    /// Starts a call to `peer` with the resolution of its address.
    fn call(&self, ends: &Ends, peer: Address) -> Result<()> {
        let own = Address {
            qp: 0,
            ..ends.address
        };
        let (mut from, mut to) = (socket_address(own)?, socket_address(peer)?);
        // SAFETY: an id of ours, and IPv4 addresses.
        let answer = unsafe {
            let (from, to) = ((&raw mut from).cast(), (&raw mut to).cast());
            (self.manager.resolve_addr)(ends.id, from, to, PATIENCE)
        };
        self.check(&format!("calling {}", words(peer)), answer)
    }

    /// The body of the exchange's thread.
    fn work(&self, calls: RawFd) {
        if let Err(why) = attend(calls, &self.end, || self.take_event()) {
            self.give_up(&why);
        }
    }

    /// Signals to the owner that the state of a line has changed.
    fn signal_news(&self) {
        // In this order, because otherwise the descriptor could stay readable.
        raise(&self.news);
        self.is_new.store(true, Ordering::Release);
    }
}
