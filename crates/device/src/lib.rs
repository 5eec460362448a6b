//! Verbs: what an RDMA device does for a program (InfiniBand Architecture Specification, volume 1, chapters 10 and 11).
//!
//! A [`Node`] is a rank's place in a machine: its devices, one for each rail, its clock, and a slow way to tell a peer
//! something before there is a fast one. A [`Device`] registers memory, keeps queue pairs and completion queues, takes
//! work requests and reports what became of them. Protocols are written against these traits only.

mod accounting;
pub mod check;
mod delegate;
mod immediates;
mod types;
pub mod wr_table;

use std::os::fd::OwnedFd;

pub use accounting::{Accounting, Charges, Effort};
pub use immediates::with_immediates;
pub use types::*;

/// A rank's place in a machine. It goes where its rank goes, to another thread too.
pub trait Node: Send {
    /// How many devices there are: at least one, each a rail of its own.
    fn rails(&self) -> usize;

    fn rail(&mut self, rail: usize) -> &mut dyn Device;

    /// Nanoseconds since some fixed moment.
    fn now(&mut self) -> u64;

    /// Time is virtual: it passes by what the model says, and while all wait for nothing it stands still.
    fn is_virtual(&self) -> bool {
        false
    }

    /// Makes the writes of peers that have happened until now visible. To be called before a look at memory that peers
    /// write to.
    fn sync_memory(&mut self);

    /// Charges this rank's processor for the library's work. Only a node whose time is virtual has one.
    fn accounting(&mut self) -> Option<&mut dyn Accounting> {
        None
    }

    /// Nothing was found: lets time pass until something may have changed (a write, a completion, a word from a peer), at
    /// most so many nanoseconds (`u64::MAX`: however long that takes). It may return early. Between two calls the rank
    /// looks at all that it waits for, as the first may only have asked to be woken.
    fn wait(&mut self, nanos: u64) -> Result<()>;

    /// From now on what arrives with a completion, and what peers tell, raises an event. Whoever wants to sleep calls this,
    /// looks at everything once more, and sleeps until [`events`](Node::events) can be read. A plain write of a peer's
    /// raises none.
    fn arm(&mut self) -> Result<()> {
        Ok(())
    }

    /// What can be read once an event has been raised, for another thread to wait for: until the next `arm`. None if there
    /// are no events.
    fn events(&mut self) -> Result<Option<OwnedFd>> {
        Ok(None)
    }

    /// Tells a peer something by a slow way that needs no connection. It arrives in order, whole and once.
    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()>;

    /// The next that a peer has told: who, and what.
    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>>;

    /// What the devices have said of themselves since the last call, as that a port has gone down: for the error of a
    /// request that fails.
    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }
}

/// One RDMA device, one port of it.
pub trait Device {
    fn attributes(&self) -> &Attributes;

    /// Gives the device access to memory.
    ///
    /// # Safety
    /// The memory must stay until it is deregistered, and whoever shares it with the device must expect it to change.
    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region>;

    /// Takes the access back. Work requests that still need it fail.
    fn deregister(&mut self, region: Region) -> Result<()>;

    fn create_cq(&mut self, depth: usize) -> Result<Cq>;

    fn create_srq(&mut self, depth: usize) -> Result<Srq>;

    /// A queue pair in the state RESET. Receives may be posted to it. One for datagrams has receives of its own.
    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp>;

    fn destroy_qp(&mut self, qp: Qp) -> Result<()>;

    /// By what peers reach it.
    fn address(&self, qp: Qp) -> Result<Address>;

    /// Takes a queue pair from RESET to RTS (ready to send), tied to a peer's unless it is a datagram's. Some devices need
    /// the other end for that: then it is on its way when this returns, and [`state`](Device::state) says when it is done,
    /// or why it cannot be. It goes on by itself, whether this rank looks or not, and raises an event when it is done.
    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()>;

    fn state(&self, qp: Qp) -> Result<State>;

    /// To ERROR (what is posted is flushed) or back to RESET (what is posted is forgotten).
    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()>;

    /// Posts work to the send queue. Inline payloads have been read when this returns.
    ///
    /// # Safety
    /// The local memory of the request is registered, and as it must be until the request is complete.
    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()>;

    /// Posts a buffer for a message of a peer's. A datagram's payload begins where the buffer begins, and its completion
    /// counts the payload: the 40 bytes of header that devices write in front go elsewhere.
    ///
    /// # Safety
    /// As for `post`.
    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()>;

    /// Takes completions, as many as there are and fit; how many.
    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize>;
}
