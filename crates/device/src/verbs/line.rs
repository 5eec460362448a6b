//! Connections of iWARP. Its queue pairs live on TCP, and only the kernel's connection manager ties two of them: by
//! librdmacm, which is opened when the first such device is.
//!
//! Each queue pair listens at a TCP port of its own from the beginning, and that is its [`Address`]. When both ends connect,
//! the one with the lower address calls and the other takes the call; who calls says which address is its own, so a call
//! from elsewhere is refused.

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ptr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use super::connection::Way;
use super::library::{check, functions, open, refused};
use super::sys::*;
use crate::{Address, Error, Result};

/// How long the other end may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// An address of ours as the caller's words.
const CARD: usize = 16 + 4;

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

/// One end of a connection, from before there is one.
pub struct Line {
    manager: &'static Manager,
    device: String,
    channel: *mut rdma_event_channel,
    listener: *mut rdma_cm_id,
    /// Once there is a connection.
    id: *mut rdma_cm_id,
    address: Address,
}

/// What has happened, copied out of the manager's memory.
struct Event {
    kind: rdma_cm_event_type,
    status: c_int,
    id: *mut rdma_cm_id,
    /// What a caller says of itself.
    caller: Option<Address>,
}

impl Line {
    /// Waits for calls at a port of this host.
    pub fn listen(device: &str, ip: u128) -> Result<Line> {
        let manager = manager()?;
        // SAFETY: no arguments.
        let channel = unsafe { (manager.create_event_channel)() };
        if channel.is_null() {
            return Err(refused(device, "opening /dev/infiniband/rdma_cm"));
        }
        let mut line = Line {
            manager,
            device: device.to_string(),
            channel,
            listener: ptr::null_mut(),
            id: ptr::null_mut(),
            address: Address { port: ip, qp: 0 },
        };
        line.listener = line.new_id()?;
        let mut own = socket_address(line.address)?;
        // SAFETY: an id of ours, and an IPv4 address.
        line.check("listening", unsafe {
            (manager.bind_addr)(line.listener, (&raw mut own).cast())
        })?;
        // SAFETY: as above.
        line.check("listening", unsafe { (manager.listen)(line.listener, 1) })?;
        // SAFETY: as above.
        let port = u16::from_be(unsafe { (manager.get_src_port)(line.listener) });
        line.address.qp = port.into();
        Ok(line)
    }

    pub fn address(&self) -> Address {
        self.address
    }

    /// Ties the queue pair of that number to a peer's, which has to be asked for the same within some seconds.
    pub fn connect(&mut self, number: u32, way: &Way, peer: Address) -> Result<()> {
        let key = |address: Address| (address.port, address.qp);
        let until = Instant::now() + PATIENCE;
        match key(self.address).cmp(&key(peer)) {
            std::cmp::Ordering::Less => self.call(number, way, peer, until),
            std::cmp::Ordering::Greater => self.take_call(number, way, peer, until),
            std::cmp::Ordering::Equal => Err(Error::Invalid(format!(
                "{}: a queue pair cannot be connected to itself",
                self.device
            ))),
        }
    }

    fn call(&mut self, number: u32, way: &Way, peer: Address, until: Instant) -> Result<()> {
        let id = self.new_id()?;
        self.id = id;
        let own = Address {
            qp: 0,
            ..self.address
        };
        let (mut from, mut to) = (socket_address(own)?, socket_address(peer)?);
        let what = format!("calling {}", words(peer));
        let millis = PATIENCE.as_millis() as c_int;
        // SAFETY: an id of ours, and IPv4 addresses.
        self.check(&what, unsafe {
            (self.manager.resolve_addr)(id, (&raw mut from).cast(), (&raw mut to).cast(), millis)
        })?;
        self.until(id, RDMA_CM_EVENT_ADDR_RESOLVED, until, &what)?;
        // SAFETY: an id of ours.
        self.check(&what, unsafe { (self.manager.resolve_route)(id, millis) })?;
        self.until(id, RDMA_CM_EVENT_ROUTE_RESOLVED, until, &what)?;
        let card = card(self.address);
        let mut wanted = parameters(number, way);
        wanted.private_data = card.as_ptr().cast();
        wanted.private_data_len = CARD as u8;
        // SAFETY: an id of ours, and words that stay during the call.
        self.check(&what, unsafe { (self.manager.connect)(id, &mut wanted) })?;
        self.until(id, RDMA_CM_EVENT_ESTABLISHED, until, &what)?;
        Ok(())
    }

    fn take_call(&mut self, number: u32, way: &Way, peer: Address, until: Instant) -> Result<()> {
        let what = format!("waiting for the call of {}", words(peer));
        loop {
            let event = self.next(until, &what)?;
            if event.kind != RDMA_CM_EVENT_CONNECT_REQUEST {
                // Of somebody who was refused.
                continue;
            }
            if event.caller != Some(peer) {
                // SAFETY: the caller's id, which is ours to destroy.
                unsafe {
                    (self.manager.reject)(event.id, ptr::null(), 0);
                    (self.manager.destroy_id)(event.id);
                }
                continue;
            }
            self.id = event.id;
            let mut wanted = parameters(number, way);
            // SAFETY: the caller's id.
            self.check(&what, unsafe {
                (self.manager.accept)(self.id, &mut wanted)
            })?;
            return self.until(self.id, RDMA_CM_EVENT_ESTABLISHED, until, &what);
        }
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

    fn check(&self, what: &str, answer: c_int) -> Result<()> {
        check(&self.device, what, answer)
    }

    /// Waits for this step of one connection.
    fn until(
        &self,
        id: *mut rdma_cm_id,
        wanted: rdma_cm_event_type,
        until: Instant,
        what: &str,
    ) -> Result<()> {
        loop {
            let event = self.next(until, what)?;
            if event.id != id {
                continue;
            }
            if event.kind == wanted {
                return Ok(());
            }
            // SAFETY: a string of the library's that stays.
            let name = unsafe { std::ffi::CStr::from_ptr((self.manager.event_str)(event.kind)) };
            let why = match event.status {
                0 => String::new(),
                number => format!(": {}", io::Error::from_raw_os_error(number.abs())),
            };
            return Err(Error::System(format!(
                "{}: {what}: {}{why} (is the peer's host reachable, and does the peer still run?)",
                self.device,
                name.to_string_lossy()
            )));
        }
    }

    /// The next that happens.
    fn next(&self, until: Instant, what: &str) -> Result<Event> {
        let left = until.saturating_duration_since(Instant::now());
        let mut entry = libc::pollfd {
            // SAFETY: a channel of ours.
            fd: unsafe { (*self.channel).fd },
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one entry.
        let ready = unsafe { libc::poll(&mut entry, 1, left.as_millis() as c_int) };
        if ready < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
            return self.next(until, what);
        }
        if ready == 0 {
            let seconds = PATIENCE.as_secs();
            return Err(Error::System(format!(
                "{}: {what}: nothing has come of it for {seconds} s",
                self.device
            )));
        }
        let mut event = ptr::null_mut();
        // SAFETY: a channel of ours, and a place for the answer.
        self.check(what, unsafe {
            (self.manager.get_cm_event)(self.channel, &mut event)
        })?;
        // SAFETY: what has just been taken, and is given back below.
        let seen = unsafe {
            let said = (*event).param.conn;
            let whole = (*event).event == RDMA_CM_EVENT_CONNECT_REQUEST
                && usize::from(said.private_data_len) >= CARD;
            Event {
                kind: (*event).event,
                status: (*event).status,
                id: (*event).id,
                caller: whole.then(|| read_card(&*said.private_data.cast::<[u8; CARD]>())),
            }
        };
        // SAFETY: as above.
        self.check(what, unsafe { (self.manager.ack_cm_event)(event) })?;
        Ok(seen)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        // SAFETY: ours, and each once; the channel goes last.
        unsafe {
            for id in [self.id, self.listener] {
                if !id.is_null() {
                    (self.manager.destroy_id)(id);
                }
            }
            (self.manager.destroy_event_channel)(self.channel);
        }
    }
}

fn parameters(number: u32, way: &Way) -> rdma_conn_param {
    // SAFETY: numbers and a pointer that may be null.
    let mut wanted: rdma_conn_param = unsafe { zeroed() };
    wanted.qp_num = number;
    wanted.initiator_depth = way.asked;
    wanted.responder_resources = way.answered;
    wanted
}

fn card(address: Address) -> [u8; CARD] {
    let mut card = [0; CARD];
    card[..16].copy_from_slice(&address.port.to_be_bytes());
    card[16..].copy_from_slice(&address.qp.to_be_bytes());
    card
}

fn read_card(card: &[u8; CARD]) -> Address {
    let (port, qp) = card.split_at(16);
    let number = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |all, byte| all << 8 | u128::from(*byte))
    };
    Address {
        port: number(port),
        qp: number(qp) as u32,
    }
}

fn words(address: Address) -> String {
    match ipv4(address) {
        Some(ip) => format!("{ip}, port {}", address.qp),
        None => format!("{}, port {}", Ipv6Addr::from(address.port), address.qp),
    }
}

fn ipv4(address: Address) -> Option<Ipv4Addr> {
    Ipv6Addr::from(address.port).to_ipv4_mapped()
}

fn socket_address(address: Address) -> Result<libc::sockaddr_in> {
    let port = u16::try_from(address.qp).ok();
    let (Some(ip), Some(port)) = (ipv4(address), port) else {
        let words = words(address);
        return Err(Error::Invalid(format!("{words} is no address of iWARP")));
    };
    Ok(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(ip).to_be(),
        },
        sin_zero: [0; 8],
    })
}

/// The network interface below an iWARP device, whose GID begins with that interface's hardware address, and its first IPv4
/// address as a mapped one.
pub fn below(gid: u128) -> Option<(String, u128)> {
    let hardware = gid.to_be_bytes();
    let all = interfaces();
    let (name, _) = all
        .iter()
        .find(|(_, address)| matches!(address, At::Hardware(bytes) if *bytes == hardware[..6]))?;
    all.iter().find_map(|(other, address)| match address {
        At::Internet(ip) if other == name => Some((name.clone(), ip.to_ipv6_mapped().into())),
        _ => None,
    })
}

enum At {
    Hardware([u8; 6]),
    Internet(Ipv4Addr),
}

/// The addresses of this host's network interfaces.
fn interfaces() -> Vec<(String, At)> {
    let mut first = ptr::null_mut();
    // SAFETY: a place for the answer.
    if unsafe { libc::getifaddrs(&mut first) } != 0 {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: an entry of a list that ends with null; the kind of an address says how it is laid out.
        unsafe {
            let entry = &*next;
            next = entry.ifa_next;
            let Some(address) = entry.ifa_addr.as_ref() else {
                continue;
            };
            let at = match i32::from(address.sa_family) {
                libc::AF_INET => {
                    let address = &*entry.ifa_addr.cast::<libc::sockaddr_in>();
                    At::Internet(Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)))
                }
                libc::AF_PACKET => {
                    let address = &*entry.ifa_addr.cast::<libc::sockaddr_ll>();
                    let mut bytes = [0; 6];
                    bytes.copy_from_slice(&address.sll_addr[..6]);
                    At::Hardware(bytes)
                }
                _ => continue,
            };
            let name = std::ffi::CStr::from_ptr(entry.ifa_name);
            found.push((name.to_string_lossy().into_owned(), at));
        }
    }
    // SAFETY: the list from above.
    unsafe { libc::freeifaddrs(first) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_says_who_it_is() {
        let address = Address {
            port: Ipv4Addr::new(10, 77, 0, 1).to_ipv6_mapped().into(),
            qp: 40_001,
        };
        assert_eq!(read_card(&card(address)), address);
        assert_eq!(words(address), "10.77.0.1, port 40001");
    }

    #[test]
    fn only_a_port_of_an_ipv4_address_is_an_address() {
        let port = Ipv4Addr::LOCALHOST.to_ipv6_mapped().into();
        let address = socket_address(Address { port, qp: 258 }).unwrap();
        assert_eq!(address.sin_port.to_ne_bytes(), [1, 2]);
        assert_eq!(address.sin_addr.s_addr.to_ne_bytes(), [127, 0, 0, 1]);
        assert!(socket_address(Address { port, qp: 1 << 16 }).is_err());
        assert!(socket_address(Address { port: 1, qp: 1 }).is_err());
    }
}
