//! The state of both hosts that their ranks share.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use device::{Address, Result, Transport};
use fabric::{Kernel, System};
use model::ModelNode;

use crate::frame;
use crate::rings::{ReceiveRing, SendRing};
use crate::tcp::Connection;
use crate::udp::Socket;

/// The mode of an interface of IP over InfiniBand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each packet is an unreliable datagram.
    Datagram,
    /// Each packet is a message of a reliable connection.
    Connected,
}

/// The part of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A process of a host: the numbers of both.
    Process(usize, usize),
    /// The core that takes the interrupts of a host.
    Interrupts(usize),
}

/// Two hosts with IP over InfiniBand between them, with a TCP connection and a UDP socket each.
#[derive(Clone)]
pub struct Network(Rc<Shared>);

struct Shared {
    kernel: Kernel,
    mode: Mode,
    /// Processes of each host.
    processes: usize,
    mtu: usize,
    hosts: [RefCell<Host>; 2],
    /// Arrivals of ranks at barriers, over all barriers so far.
    met: Cell<usize>,
    /// Processes that have not left.
    present: Cell<usize>,
}

/// The kernel's state on a host.
pub(crate) struct Host {
    pub(crate) tcp: Connection,
    pub(crate) udp: Socket,
    pub(crate) driver: Option<Driver>,
    /// Addresses of its rings, of sends and of receives.
    addresses: Option<[Address; 2]>,
    /// A processor is sending segments of TCP.
    pub(crate) sending: bool,
    /// Ranks of processes that wait: for bytes or datagrams, for room in the connection, and for
    /// room in the ring.
    pub(crate) readers: Vec<u32>,
    pub(crate) writers: Vec<u32>,
    pub(crate) stopped: Vec<u32>,
}

/// The interface's driver.
pub(crate) struct Driver {
    pub(crate) send: SendRing,
    pub(crate) receive: ReceiveRing,
}

impl Network {
    /// The network of a machine whose hosts have this number of processes each. Rank *n* belongs to
    /// host *n* mod 2.
    pub fn new(system: &System, mode: Mode, processes: usize) -> Network {
        let kernel = system.kernel;
        let mtu = match mode {
            // The encapsulation has 4 bytes.
            Mode::Datagram => kernel.datagram_mtu.0.min(system.rail(0).hca.mtu.0 - 4),
            Mode::Connected => kernel.connected_mtu.0,
        } as usize;
        let host = || {
            let window = kernel.window.0 as usize;
            RefCell::new(Host {
                tcp: Connection::new(frame::segment_payload(mtu), window, false),
                udp: Socket::new(frame::fragment_payload(mtu), kernel.udp_buffer.0 as usize),
                driver: None,
                addresses: None,
                sending: false,
                readers: Vec::new(),
                writers: Vec::new(),
                stopped: Vec::new(),
            })
        };
        Network(Rc::new(Shared {
            kernel,
            mode,
            processes,
            mtu,
            hosts: [host(), host()],
            met: Cell::new(0),
            present: Cell::new(2 * processes),
        }))
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        2 * (self.0.processes + 1)
    }

    /// The part of a rank.
    pub fn place(&self, rank: usize) -> Place {
        match (rank % 2, rank / 2) {
            (host, process) if process < self.0.processes => Place::Process(host, process),
            (host, _) => Place::Interrupts(host),
        }
    }

    /// The rank that takes a host's interrupts.
    pub(crate) fn interrupts_of(&self, host: usize) -> u32 {
        (2 * self.0.processes + host) as u32
    }

    /// The largest IP packet.
    pub fn mtu(&self) -> usize {
        self.0.mtu
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    /// True if the HCA computes checksums and cuts segments.
    pub(crate) fn offloads(&self) -> bool {
        self.0.mode == Mode::Datagram && self.0.kernel.offload
    }

    pub(crate) fn transport(&self) -> Transport {
        match self.0.mode {
            Mode::Datagram => Transport::Ud,
            Mode::Connected => Transport::Rc,
        }
    }

    pub(crate) fn host(&self, host: usize) -> RefMut<'_, Host> {
        self.0.hosts[host].borrow_mut()
    }

    /// Makes the driver of a host, and connects it with the other one.
    pub(crate) fn open(&self, node: &mut ModelNode, host: usize) -> Result<()> {
        let (kernel, transport) = (&self.0.kernel, self.transport());
        let len = frame::longest(self.0.mtu);
        let device = node.modelled_rail(0);
        let mut driver = Driver {
            send: SendRing::new(device, transport, kernel.send_ring as usize, len)?,
            receive: ReceiveRing::new(device, transport, kernel.receive_ring as usize, len)?,
        };
        let addresses = [
            driver.send.address(device)?,
            driver.receive.address(device)?,
        ];
        self.host(host).addresses = Some(addresses);
        self.meet(node)?;
        let theirs = self.host(1 - host).addresses;
        if let Some([sends, receives]) = theirs {
            let device = node.modelled_rail(0);
            driver.send.connect(device, transport, receives)?;
            driver.receive.connect(device, transport, sends)?;
        }
        self.host(host).driver = Some(driver);
        self.meet(node)
    }

    /// Waits until all ranks have called this.
    pub(crate) fn meet(&self, node: &mut ModelNode) -> Result<()> {
        node.turn().settle().map_err(|_| device::Error::Deadlock)?;
        let (met, all) = (self.0.met.get() + 1, self.ranks());
        self.0.met.set(met);
        if met.is_multiple_of(all) {
            node.turn()
                .with(|_, clock| (0..all as u32).for_each(|rank| clock.wake(rank)));
            return Ok(());
        }
        let until = met.next_multiple_of(all);
        while self.0.met.get() < until {
            device::Node::wait(node, u64::MAX)?;
        }
        Ok(())
    }

    /// True if all processes of both hosts have left.
    pub(crate) fn is_over(&self) -> bool {
        self.0.present.get() == 0
    }

    /// A process leaves; the last one ends the work of the interrupts' ranks.
    pub(crate) fn leave(&self, node: &mut ModelNode) {
        node.turn().settle().ok();
        self.0.present.set(self.0.present.get() - 1);
        if self.is_over() {
            let both = [0, 1].map(|host| self.interrupts_of(host));
            node.turn()
                .with(|_, clock| both.into_iter().for_each(|rank| clock.wake(rank)));
        }
    }
}
