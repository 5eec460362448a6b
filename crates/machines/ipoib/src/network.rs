//! The network of two modelled hosts: the state of their kernels, which the ranks share.

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
    /// Each IP packet is one unreliable datagram.
    Datagram,
    /// Each IP packet is a message of a reliable connection.
    Connected,
}

/// The part that a rank plays in the modelled network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A process: the number of its host, and its own number on the host.
    Process(usize, usize),
    /// The core that takes the interrupts of the host with this number.
    Interrupts(usize),
}

/// Two hosts with IP over InfiniBand between them, with a TCP connection and a UDP socket each.
#[derive(Clone)]
pub struct Network(Rc<Shared>);

struct Shared {
    kernel: Kernel,
    mode: Mode,
    /// The number of processes that run on each host.
    processes: usize,
    mtu: usize,
    hosts: [RefCell<Host>; 2],
    /// The number of calls of the barrier by all ranks so far.
    met: Cell<usize>,
    /// The number of processes that have not left the network.
    present: Cell<usize>,
}

/// The state of the kernel on one host.
pub(crate) struct Host {
    pub(crate) tcp: Connection,
    pub(crate) udp: Socket,
    pub(crate) driver: Option<Driver>,
    /// The addresses of the host's queue pairs: that of the send ring and that of the receive ring.
    addresses: Option<[Address; 2]>,
    /// True while a processor of the host is sending segments of TCP.
    pub(crate) sending: bool,
    /// The ranks of processes that wait for bytes or datagrams.
    pub(crate) readers: Vec<u32>,
    /// The ranks of processes that wait for room in the connection's send buffer.
    pub(crate) writers: Vec<u32>,
    /// The ranks of processes that wait for room in the send ring.
    pub(crate) stopped: Vec<u32>,
}

/// The driver of a host's network interface: its two rings.
pub(crate) struct Driver {
    pub(crate) send: SendRing,
    pub(crate) receive: ReceiveRing,
}

impl Network {
    /// The network of a machine whose two hosts have `processes` processes each. Rank *n* belongs
    /// to host *n* mod 2.
    pub fn new(system: &System, mode: Mode, processes: usize) -> Network {
        let kernel = system.kernel;
        let mtu = match mode {
            // The encapsulation header has 4 bytes.
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

    /// The number of ranks: the processes, and one for the interrupts of each host.
    pub fn ranks(&self) -> usize {
        2 * (self.0.processes + 1)
    }

    /// The part in the network that the rank with this number plays.
    pub fn place(&self, rank: usize) -> Place {
        match (rank % 2, rank / 2) {
            (host, process) if process < self.0.processes => Place::Process(host, process),
            (host, _) => Place::Interrupts(host),
        }
    }

    /// The number of the rank that takes a host's interrupts.
    pub(crate) fn interrupts_of(&self, host: usize) -> u32 {
        (2 * self.0.processes + host) as u32
    }

    /// The length of the largest IP packet of the interface, in bytes.
    pub fn mtu(&self) -> usize {
        self.0.mtu
    }

    pub(crate) fn kernel(&self) -> &Kernel {
        &self.0.kernel
    }

    /// True if the HCA computes checksums and cuts segments into packets.
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

    /// Makes the driver of a host, and connects it with that of the other host. All ranks must take
    /// part in its two barriers.
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
        self.synchronise(node)?;
        let theirs = self.host(1 - host).addresses;
        if let Some([sends, receives]) = theirs {
            let device = node.modelled_rail(0);
            driver.send.connect(device, transport, receives)?;
            driver.receive.connect(device, transport, sends)?;
        }
        self.host(host).driver = Some(driver);
        self.synchronise(node)
    }

    /// A barrier: waits until all ranks have called it.
    pub(crate) fn synchronise(&self, node: &mut ModelNode) -> Result<()> {
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

    /// Records that a process leaves. The last one wakes the ranks that take interrupts, so that
    /// they end.
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
