//! Connections of iWARP. Its queue pairs live on TCP, and only the kernel's connection manager ties two of them: by
//! librdmacm, which is opened when the first such device is.
//!
//! Each queue pair has a *line*: it listens at a TCP port of its own from the beginning, and that is its [`Address`], with a
//! number in the upper half of `port` that nobody can guess. When both ends connect, the one with the lower address calls.
//! The other's *exchange*, a thread of each device, takes the call: whoever can say the whole address has it from the rank
//! itself. So nobody has to look at anything for a call to be made or taken, however long a rank computes; the manager's
//! patience with calls that nobody takes is some seconds.
//!
//! What must always hold: an event is handled before the manager is told so, and ends of connections go only outside of the
//! lock: whoever lets one go waits until its events have been handled, for which the exchange needs the lock.

use std::collections::HashMap;
use std::ffi::{CStr, c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, JoinHandle};

use super::connection::Way;
use super::events::nonblocking;
use super::internet::{socket_address, words};
use super::library::{check, functions, open, refused};
use super::office::secret;
use super::sys::*;
use crate::{Address, Error, Result, State};

/// How long finding the way to the other end may take, in milliseconds.
const PATIENCE: c_int = 10_000;
/// Calls that have come and have not been looked at.
const BACKLOG: c_int = 4;

functions! {
    Manager, "librdmacm":
    create_event_channel = c"rdma_create_event_channel": fn() -> *mut rdma_event_channel;
    destroy_event_channel = c"rdma_destroy_event_channel": fn(*mut rdma_event_channel) -> ();
    create_id = c"rdma_create_id": fn(*mut rdma_event_channel, *mut *mut rdma_cm_id, *mut c_void, rdma_port_space) -> c_int;
    destroy_id = c"rdma_destroy_id": fn(*mut rdma_cm_id) -> c_int;
    bind_addr = c"rdma_bind_addr": fn(*mut rdma_cm_id, *mut libc::sockaddr) -> c_int;
    listen = c"rdma_listen": fn(*mut rdma_cm_id, c_int) -> c_int;
    get_src_port = c"rdma_get_src_port": fn(*mut rdma_cm_id) -> u16;
    resolve_addr = c"rdma_resolve_addr": fn(*mut rdma_cm_id, *mut libc::sockaddr, *mut libc::sockaddr, c_int) -> c_int;
    resolve_route = c"rdma_resolve_route": fn(*mut rdma_cm_id, c_int) -> c_int;
    connect = c"rdma_connect": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    accept = c"rdma_accept": fn(*mut rdma_cm_id, *mut rdma_conn_param) -> c_int;
    reject = c"rdma_reject": fn(*mut rdma_cm_id, *const c_void, u8) -> c_int;
    get_cm_event = c"rdma_get_cm_event": fn(*mut rdma_event_channel, *mut *mut rdma_cm_event) -> c_int;
    ack_cm_event = c"rdma_ack_cm_event": fn(*mut rdma_cm_event) -> c_int;
    event_str = c"rdma_event_str": fn(rdma_cm_event_type) -> *const std::ffi::c_char;
}

fn manager() -> Result<&'static Manager> {
    static MANAGER: OnceLock<std::result::Result<Manager, String>> = OnceLock::new();
    let manager = MANAGER.get_or_init(|| {
        let advice = "Install it (Debian: librdmacm1); without it no iWARP device can be used";
        Manager::find(open(c"librdmacm.so.1", advice)?)
    });
    manager.as_ref().map_err(|why| Error::System(why.clone()))
}

/// What ties the queue pairs of a device to their peers'.
pub struct Exchange {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    manager: &'static Manager,
    device: String,
    channel: *mut rdma_event_channel,
    /// The thread is to end.
    end: OwnedFd,
    /// Readable once the state of a line has changed; and whether it has.
    news: OwnedFd,
    is_new: AtomicBool,
    lines: Mutex<HashMap<u32, Ends>>,
}

// SAFETY: the pointers are the manager's, whose functions may be called from any thread, and each is let go once.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// A line, by the number of its queue pair.
struct Ends {
    listener: *mut rdma_cm_id,
    /// Once there is a call, ours or a peer's.
    id: *mut rdma_cm_id,
    address: Address,
    way: (u8, u8),
    /// The other end: of a call of ours, or what a caller says of itself.
    peer: Option<Address>,
    phase: Phase,
}

#[derive(Clone, PartialEq)]
enum Phase {
    /// Nobody has called.
    Waiting,
    Calling,
    Tied,
    Failed(String),
}

/// One queue pair's line.
pub struct Line {
    shared: Arc<Shared>,
    number: u32,
    address: Address,
}

impl Exchange {
    pub fn open(device: &str) -> Result<Exchange> {
        let manager = manager()?;
        // SAFETY: no arguments.
        let channel = unsafe { (manager.create_event_channel)() };
        if channel.is_null() {
            return Err(refused(device, "opening /dev/infiniband/rdma_cm"));
        }
        let shared = Arc::new(Shared {
            manager,
            device: device.to_string(),
            channel,
            end: signal_file(device)?,
            news: signal_file(device)?,
            is_new: AtomicBool::new(false),
            lines: Mutex::default(),
        });
        // What can be read may be gone before it is: an event goes with what it is about.
        // SAFETY: a channel of ours.
        nonblocking(device, unsafe { (*channel).fd })?;
        let own = shared.clone();
        let thread = without_signals(|| {
            let builder = Builder::new().name("fishplate calls".into());
            builder.spawn(move || own.work())
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

    /// Waits for calls for the queue pair of this number, at a port of the host's address `ip`.
    pub fn listen(&self, number: u32, ip: u128, way: &Way) -> Result<Line> {
        let shared = &self.shared;
        let listener = shared.new_id()?;
        let bound = shared.bind(listener, ip);
        let port = match bound {
            Ok(port) => port,
            Err(why) => {
                // SAFETY: an id of ours that nobody knows of.
                unsafe { (shared.manager.destroy_id)(listener) };
                return Err(why);
            }
        };
        let address = Address {
            port: u128::from(secret()?) << 64 | ip,
            qp: port.into(),
        };
        let ends = Ends {
            listener,
            id: ptr::null_mut(),
            address,
            way: (way.asked, way.answered),
            peer: None,
            phase: Phase::Waiting,
        };
        shared.lines().insert(number, ends);
        Ok(Line {
            shared: shared.clone(),
            number,
            address,
        })
    }

    /// Readable when the state of a line has changed.
    pub fn fd(&self) -> RawFd {
        self.shared.news.as_raw_fd()
    }

    /// Has the state of a line changed since this was asked last?
    pub fn has_news(&self) -> bool {
        let is_new = self.shared.is_new.swap(false, Ordering::AcqRel);
        if is_new {
            let mut count = [0u8; 8];
            // SAFETY: a file of ours that does not block, and a place for eight bytes.
            unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
        }
        is_new
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        raise(&self.shared.end);
        if let Some(thread) = self.thread.take() {
            // Whatever it ended with, it is over.
            let _ = thread.join();
        }
        // SAFETY: no id is left, and nobody waits for events any more.
        unsafe { (self.shared.manager.destroy_event_channel)(self.shared.channel) };
    }
}

impl Line {
    pub fn address(&self) -> Address {
        self.address
    }

    /// Begins to tie the queue pair to a peer's, which has to be asked for the same.
    pub fn connect(&self, peer: Address) -> Result<()> {
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
                    "{device}: {words} has called for a queue pair that is to be tied to another"
                ));
            }
            None if key(self.address) < key(peer) => {
                ends.id = shared.new_id()?;
                ends.peer = Some(peer);
                ends.phase = Phase::Calling;
                shared.call(ends, peer)?;
            }
            _ => {}
        }
        Ok(())
    }

    pub fn state(&self) -> Result<State> {
        match self
            .shared
            .lines()
            .get(&self.number)
            .map(|ends| &ends.phase)
        {
            Some(Phase::Tied) => Ok(State::Rts),
            Some(Phase::Failed(why)) => Err(Error::System(why.clone())),
            _ => Ok(State::Tying),
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
        // SAFETY: a channel of ours, and a place for the answer.
        let answer = unsafe {
            (self.manager.create_id)(self.channel, &mut id, ptr::null_mut(), RDMA_PS_TCP)
        };
        self.check("making a connection's end", answer)?;
        Ok(id)
    }

    fn let_go(&self, id: *mut rdma_cm_id) {
        if !id.is_null() {
            // SAFETY: an id of ours that nothing names any more.
            unsafe { (self.manager.destroy_id)(id) };
        }
    }

    /// The port at which an id then listens.
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

    /// The first step of a call.
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

    /// What the thread does.
    fn work(&self) {
        let wait_for = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: a channel of ours.
        let calls = unsafe { (*self.channel).fd };
        let mut fds = [wait_for(calls), wait_for(self.end.as_raw_fd())];
        loop {
            // SAFETY: two entries.
            let ready = unsafe { libc::poll(fds.as_mut_ptr(), 2, -1) };
            if ready > 0 && fds[1].revents != 0 {
                return;
            }
            if ready > 0 && fds[0].revents != 0 {
                let mut event = ptr::null_mut();
                // SAFETY: a channel of ours, and a place for the answer.
                if unsafe { (self.manager.get_cm_event)(self.channel, &mut event) } != 0 {
                    continue;
                }
                // SAFETY: what has just been taken, and is given back below.
                let unwanted = self.handle(unsafe { &*event });
                // SAFETY: as above; nothing looks at it any more.
                unsafe { (self.manager.ack_cm_event)(event) };
                self.let_go(unwanted);
            }
        }
    }

    /// Something has happened. The answer is an id that is to go.
    fn handle(&self, event: &rdma_cm_event) -> *mut rdma_cm_id {
        let mut lines = self.lines();
        if event.event == RDMA_CM_EVENT_CONNECT_REQUEST {
            let mut all = lines.iter_mut();
            let called = all.find(|(_, ends)| ends.listener == event.listen_id);
            return match called.map(|(number, ends)| self.take_call(*number, ends, event)) {
                Some(true) => ptr::null_mut(),
                _ => {
                    // SAFETY: the caller's id.
                    unsafe { (self.manager.reject)(event.id, ptr::null(), 0) };
                    event.id
                }
            };
        }
        let mut all = lines.iter_mut();
        let Some((number, ends)) = all.find(|(_, ends)| ends.id == event.id) else {
            return ptr::null_mut();
        };
        let answer = match event.event {
            // SAFETY: an id of ours.
            RDMA_CM_EVENT_ADDR_RESOLVED => unsafe {
                (self.manager.resolve_route)(event.id, PATIENCE)
            },
            RDMA_CM_EVENT_ROUTE_RESOLVED => self.say_who_calls(*number, ends),
            RDMA_CM_EVENT_ESTABLISHED => {
                ends.phase = Phase::Tied;
                0
            }
            // What this means its queue pair says.
            _ if ends.phase == Phase::Tied => return ptr::null_mut(),
            _ => {
                ends.phase = Phase::Failed(self.what_failed(ends, event));
                0
            }
        };
        if answer != 0 {
            let what = ends.peer.map(|peer| format!("calling {}", words(peer)));
            let why = refused(&self.device, &what.unwrap_or_default());
            ends.phase = Phase::Failed(why.to_string());
        }
        if matches!(ends.phase, Phase::Tied | Phase::Failed(_)) {
            // In this order, or the file could stay readable.
            raise(&self.news);
            self.is_new.store(true, Ordering::Release);
        }
        ptr::null_mut()
    }

    /// False: it is nobody's whom this line is for.
    fn take_call(&self, number: u32, ends: &mut Ends, event: &rdma_cm_event) -> bool {
        // SAFETY: of a call this part of the union holds, with so many bytes of the caller's.
        let card = unsafe {
            let said = event.param.conn;
            match usize::from(said.private_data_len) >= size_of::<Card>() {
                true => (*said.private_data.cast::<Card>()).read(),
                false => return false,
            }
        };
        if card.1 != ends.address || !ends.id.is_null() {
            return false;
        }
        let mut wanted = parameters(number, ends.way);
        // SAFETY: the caller's id.
        if unsafe { (self.manager.accept)(event.id, &mut wanted) } != 0 {
            // It has been given up meanwhile.
            return false;
        }
        ends.id = event.id;
        ends.peer = Some(card.0);
        ends.phase = Phase::Calling;
        true
    }

    fn say_who_calls(&self, number: u32, ends: &Ends) -> c_int {
        let Some(peer) = ends.peer else { return 0 };
        let card = Card::of(ends.address, peer);
        let mut wanted = parameters(number, ends.way);
        wanted.private_data = (&raw const card).cast();
        wanted.private_data_len = size_of::<Card>() as u8;
        // SAFETY: an id of ours, and words that stay during the call.
        unsafe { (self.manager.connect)(ends.id, &mut wanted) }
    }

    fn what_failed(&self, ends: &Ends, event: &rdma_cm_event) -> String {
        // SAFETY: a string of the library's that stays.
        let name = unsafe { CStr::from_ptr((self.manager.event_str)(event.event)) };
        let why = match event.status {
            0 => String::new(),
            number => format!(": {}", io::Error::from_raw_os_error(number.abs())),
        };
        format!(
            "{}: tying a queue pair to {}: {}{why} (is the peer's host reachable, and does the peer still run?)",
            self.device,
            ends.peer.map_or("nobody".into(), words),
            name.to_string_lossy()
        )
    }
}

fn parameters(number: u32, (asked, answered): (u8, u8)) -> rdma_conn_param {
    // SAFETY: numbers and a pointer that may be null.
    let mut wanted: rdma_conn_param = unsafe { zeroed() };
    wanted.qp_num = number;
    wanted.initiator_depth = asked;
    wanted.responder_resources = answered;
    wanted
}

/// A caller's words: its own address, and the one that it calls.
#[repr(C)]
#[derive(Clone, Copy)]
struct Card([[u8; 20]; 2]);

impl Card {
    fn of(from: Address, to: Address) -> Card {
        Card([from, to].map(|address| {
            let mut bytes = [0; 20];
            bytes[..16].copy_from_slice(&address.port.to_be_bytes());
            bytes[16..].copy_from_slice(&address.qp.to_be_bytes());
            bytes
        }))
    }

    fn read(self) -> (Address, Address) {
        let [from, to] = self.0.map(|bytes| {
            let number = |bytes: &[u8]| {
                bytes
                    .iter()
                    .fold(0, |all, byte| all << 8 | u128::from(*byte))
            };
            Address {
                port: number(&bytes[..16]),
                qp: number(&bytes[16..]) as u32,
            }
        });
        (from, to)
    }
}

/// A file that can be made readable.
fn signal_file(device: &str) -> Result<OwnedFd> {
    // SAFETY: no arguments but numbers.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    match fd < 0 {
        true => Err(refused(device, "making an event file")),
        // SAFETY: just made, and ours alone.
        false => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

fn raise(file: &OwnedFd) {
    let one = 1u64.to_ne_bytes();
    // It can only be full of signals already.
    // SAFETY: a file of ours, and eight bytes.
    unsafe { libc::write(file.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

/// What is started here gets no signals of the program's.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals, and places for them.
    unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_says_who_it_is_and_whom_it_calls() {
        let address = |secret: u128, qp| Address {
            port: secret << 64 | u128::from(std::net::Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped()),
            qp,
        };
        let (from, to) = (address(5, 40_001), address(u64::MAX.into(), 2));
        assert_eq!(Card::of(from, to).read(), (from, to));
    }
}
