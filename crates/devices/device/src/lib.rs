//! Verbs: the interface of RDMA devices (InfiniBand Architecture Specification, volume 1, chapters
//! 10 and 11).
//!
//! A [`Node`] connects a rank to a machine: its devices, one for each rail, its clock, and
//! out-of-band messages for the time before a connection exists. A [`Device`] registers memory,
//! manages queue pairs and completion queues, executes work requests and reports their completions.
//! Protocols use these two traits only. Crate `verbs` implements them for real devices, `model` for
//! a modelled machine, `testdevice` for tests.
//!
//! Never here: protocols, physics, time.

mod abilities;
mod accounting;
pub mod check;
mod costs;
mod delegate;
mod host;
mod immediates;
mod program_call;
mod signs;
mod types;
pub mod wr_table;

use std::os::fd::OwnedFd;

pub use abilities::Abilities;
pub use accounting::{Accounting, Charges, Effort, LocalCharge, Note, VirtualTime};
pub use costs::{HostCosts, RequestCosts, StoreCosts};
pub use host::{EventFds, HostDevice, Identity, InterfaceAddress, MOST_NOTES, network};
pub use immediates::with_immediates;
pub use program_call::ProgramCall;
pub use signs::Signs;
pub use types::*;

/// A rank's node: its devices, clock and out-of-band messages. It may move between threads with its
/// rank.
///
/// A rank waits for a completion as follows:
///
/// ```
/// use device::{Completion, Cq, Device, Node, Result};
///
/// fn next(node: &mut dyn Node, cq: Cq, into: &mut [Completion; 1]) -> Result<()> {
///     while node.rail(0).poll(cq, into)? == 0 {
///         node.wait(u64::MAX)?;
///     }
///     Ok(())
/// }
/// ```
pub trait Node: Send {
    /// The number of rails, each with a device: at least one.
    fn rails(&self) -> usize;

    /// The device of a rail.
    fn rail(&mut self, rail: usize) -> &mut dyn Device;

    /// The time since a moment that does not change, in nanoseconds.
    fn now(&mut self) -> u64;

    /// True if time is virtual: it advances as the model computes, and stands still while all ranks
    /// wait without an event that is due.
    fn is_virtual(&self) -> bool {
        false
    }

    /// The abilities of the rank's machine, apart from messages.
    fn abilities(&self) -> Abilities {
        match self.is_virtual() {
            true => Abilities::MODELLED,
            false => Abilities::REAL,
        }
    }

    /// An estimate of the costs of this rank's host.
    fn host_costs(&mut self) -> HostCosts {
        HostCosts::USUAL
    }

    /// The costs of a write to `peer`, if it is on this host and processors carry out writes there.
    /// `None`: a device carries them out.
    fn store_costs(&mut self, peer: usize) -> Option<StoreCosts> {
        let _ = peer;
        None
    }

    /// Makes all earlier writes of peers visible. Call it before reading memory that peers write
    /// to.
    fn sync_memory(&mut self);

    /// Appends the remote keys of the memory that peers have written to since the last call, and
    /// returns true. False: this is unknown, and any registered memory may have changed.
    fn written(&mut self, keys: &mut Vec<u32>) -> bool {
        let _ = keys;
        false
    }

    /// The account of this rank's processor time. Only a node whose time is virtual has one.
    fn accounting(&mut self) -> Option<&mut dyn Accounting> {
        None
    }

    /// Lets time pass until something may have changed (a write, a completion, an out-of-band
    /// message), for at most `nanos` nanoseconds (`u64::MAX`: without limit). It may return early.
    /// Between two calls the rank must poll everything that it waits for: the first call may only
    /// have armed the devices.
    fn wait(&mut self, nanos: u64) -> Result<()>;

    /// Waits like [`wait`](Node::wait) for at most `nanos` nanoseconds, but the end of this time
    /// does not count as progress: for a rank that then only tries a dead path again. In virtual
    /// time, if all ranks wait and nothing is due except the ends of such waits, probes
    /// ([`Device::set_probing`]) and port events, every wait ends with [`Error::Deadlock`].
    fn wait_idle(&mut self, nanos: u64) -> Result<()> {
        self.wait(nanos)
    }

    /// Arms the node: later completions and out-of-band messages raise an event. To sleep, a rank
    /// calls this, polls everything once more, and waits until [`events`](Node::events) is
    /// readable. A plain RDMA write of a peer raises no event.
    fn arm(&mut self) -> Result<()> {
        Ok(())
    }

    /// A descriptor on which another thread can wait: it is readable from an event until the next
    /// `arm`. `None` if the node has no events.
    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// Sends an out-of-band message to `peer`. It needs no connection; messages arrive in order,
    /// complete and once.
    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()>;

    /// Removes and returns the next out-of-band message: its sender and its bytes.
    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>>;

    /// Extends the job to ranks 0 to `ranks` - 1, more than before: out-of-band messages of the new
    /// ranks are received. An error: the machine has no room for this number.
    fn add_ranks(&mut self, ranks: usize) -> Result<()> {
        let _ = ranks;
        Ok(())
    }

    /// Removes and returns the devices' reports since the last call, such as of a port that went
    /// down. They explain the error of a failed request.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// Removes and returns the reports that the user should see although nothing has failed, with
    /// their rails.
    fn warnings(&mut self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// The number of connections that processes outside the job have made to the device of each
    /// rail. Rails at the end may be omitted if they have had none.
    fn strangers(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// Removes and returns the changes of ports since the last call, in their order.
    fn port_events(&mut self) -> Vec<PortEvent> {
        Vec::new()
    }

    /// True if the node detects, without a request, that no path to a peer works: [`Signs::cut`].
    /// This holds for a modelled machine with a plan of such faults.
    fn knows_cuts(&self) -> bool {
        false
    }

    /// Signs that `peer` is alive, and that the paths to it work. Each call may request further
    /// signs, which a later call returns: a rank calls this repeatedly while nothing reaches the
    /// peer.
    fn signs(&mut self, peer: usize) -> Signs {
        let _ = peer;
        Signs::default()
    }

    /// Stops the delivery of out-of-band messages to `peer`: they need not arrive from now on, and
    /// the end of the node does not wait for them.
    fn give_up(&mut self, peer: usize) {
        let _ = peer;
    }

    /// The location of `peer`, or of this rank itself, as text for the user: host and addresses.
    /// Empty: it is unknown.
    fn place_of(&mut self, peer: usize) -> String {
        let _ = peer;
        String::new()
    }
}

/// One port of an RDMA device.
///
/// A write of eight registered bytes to a peer, without a completion:
///
/// ```
/// use device::{Device, Operation, Qp, Region, Remote, Result, Slice, Work};
///
/// fn write(device: &mut dyn Device, qp: Qp, own: &Region, to: Remote) -> Result<()> {
///     let slice = Slice { address: own.address, len: 8, lkey: own.lkey };
///     let work = Work {
///         id: 1,
///         operation: Operation::Write { to, immediate: None },
///         local: &[slice],
///         inline: false,
///         signaled: false,
///         to: None,
///     };
///     // SAFETY: the region is registered and stays unchanged until the write is complete.
///     unsafe { device.post(qp, &work) }
/// }
/// ```
pub trait Device {
    /// The properties of the device.
    fn attributes(&self) -> &Attributes;

    /// Registers memory, so that the device can access it.
    ///
    /// # Safety
    /// The memory must stay valid until it is deregistered, and its other users must expect the
    /// device to change it.
    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region>;

    /// Ends the device's access to a region. Work requests that still use it fail.
    fn deregister(&mut self, region: Region) -> Result<()>;

    /// Creates a completion queue with room for `depth` completions.
    fn create_cq(&mut self, depth: usize) -> Result<Cq>;

    /// Creates a shared receive queue with room for `depth` receives.
    fn create_srq(&mut self, depth: usize) -> Result<Srq>;

    /// Creates a queue pair in the state RESET, to which receives may be posted. A datagram queue
    /// pair has its own receive queue.
    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp>;

    /// Destroys a queue pair. Its posted requests do not complete.
    fn destroy_qp(&mut self, qp: Qp) -> Result<()>;

    /// The address of a queue pair, for its peer.
    fn address(&self, qp: Qp) -> Result<Address>;

    /// Takes a queue pair from RESET to RTS (ready to send), connected to `peer` unless it is a
    /// datagram queue pair. Some devices need the peer's device for that: the state is then
    /// [`State::Connecting`] when this returns, and [`state`](Device::state) reports the result, or
    /// the error. The connection proceeds without further calls and raises an event at its end.
    ///
    /// To connect again after a reset, an end waits until the peer has been reset, too: a peer that
    /// has not been reset yet may mistake the new connection for the old one, and end it by its
    /// reset.
    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()>;

    /// The state of a queue pair.
    fn state(&self, qp: Qp) -> Result<State>;

    /// Takes a queue pair to ERROR (posted requests are flushed) or back to RESET (posted requests
    /// do not complete). Completions from before a reset are not reported after it, except those of
    /// a shared queue's receives.
    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()>;

    /// True if a queue pair in the state ERROR consumes no further receive of its shared receive
    /// queue: the device has reported Last WQE Reached (IBA 11.6.3.1), or needs no such report. The
    /// completions of the consumed receives are then in the completion queue.
    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        let _ = qp;
        Ok(true)
    }

    /// Marks the requests of a queue pair as probes of a path that may be dead, or ends that. In
    /// virtual time a probe does not count as progress: see [`Node::wait_idle`]. Elsewhere the mark
    /// has no effect.
    fn set_probing(&mut self, qp: Qp, probing: bool) -> Result<()> {
        let _ = (qp, probing);
        Ok(())
    }

    /// Corks the device: requests posted from now on leave together, at the latest at
    /// [`uncork`](Device::uncork) or the next poll. A device with cheap posts sends each request at
    /// once.
    fn cork(&mut self) {}

    /// Sends the corked requests. A device with costly posts also corks requests by itself if
    /// several are posted between two polls.
    fn uncork(&mut self) {}

    /// True if requests of a queue pair are corked.
    fn is_corked(&self, qp: Qp) -> bool {
        let _ = qp;
        false
    }

    /// Posts a work request to the send queue. An inline payload has been read when this returns.
    ///
    /// # Safety
    /// The local memory of the request must be registered, and must stay unchanged (writes, sends)
    /// or unused (reads, atomics) until the request is complete.
    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()>;

    /// Posts a buffer for a message of a peer. The payload of a datagram begins at the start of the
    /// buffer, and the completion counts only the payload: the 40 bytes of header that devices
    /// write before it are stored elsewhere.
    ///
    /// # Safety
    /// The memory must be registered, and must stay unused until the receive is complete.
    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()>;

    /// Removes available completions, as many as `into` can hold, and returns their number.
    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize>;

    /// Like [`Node::sync_memory`], for writes that arrive at this device. A device that works only
    /// while it is polled ([`Attributes::polled`]) processes arrivals here.
    fn sync_memory(&mut self) {}
}
