//! The memory and the queues of one end, as its machine uses them.

use device::{Completed, Slice, Status};

/// A right of access to registered memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// This end reads for its own requests.
    LocalRead,
    /// This end writes the payloads of receives and of answers.
    LocalWrite,
    /// The peer writes.
    RemoteWrite,
    /// The peer reads.
    RemoteRead,
    /// The peer executes an atomic operation.
    RemoteAtomic,
}

/// A change of one word by an atomic operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// Adds this number.
    Add(u64),
    /// A compare-and-swap: writes the second number if the word equals the first.
    Swap(u64, u64),
}

/// The most slices of a receive.
pub(crate) const RECEIVE_SLICES: usize = 3;

/// A receive that has been posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receive {
    pub id: u64,
    pub into: [Slice; RECEIVE_SLICES],
    pub slices: usize,
    pub is_shared: bool,
}

impl Receive {
    pub(super) fn len(&self) -> u64 {
        let slices = &self.into[..self.slices];
        slices.iter().map(|slice| u64::from(slice.len)).sum()
    }
}

/// The end of a request or a receive, for its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub id: u64,
    pub of: Completed,
    pub status: Status,
    pub bytes: u32,
    pub immediate: Option<u32>,
    /// The number of requests that this completion retires, its own included; 0 for a receive.
    pub retires: u32,
}

impl Done {
    pub(super) fn of_receive(
        receive: &Receive,
        of: Completed,
        status: Status,
        bytes: u32,
        immediate: Option<u32>,
    ) -> Done {
        Done {
            id: receive.id,
            of,
            status,
            bytes,
            immediate,
            retires: 0,
        }
    }
}

/// The memory and the queues that one end of a connection uses.
pub(crate) trait Host {
    /// True if the region with this key allows the access to all these bytes.
    fn allows(&self, key: u32, address: u64, len: u64, right: Right) -> bool;
    /// Writes bytes to memory that has been checked.
    fn place(&mut self, address: u64, bytes: &[u8]);
    /// Copies bytes of the owner's memory, which need not be registered.
    fn copy(&self, address: u64, len: usize, into: &mut Vec<u8>);
    /// Changes a word of memory that has been checked; returns its old value.
    fn change(&mut self, address: u64, change: Change) -> u64;
    /// Takes the next receive. `None`: none is posted.
    fn receive(&mut self) -> Option<Receive>;
    /// Records that a write of the peer to the region with this key is complete.
    fn wrote(&mut self, key: u32);
    /// Reports the end of a request or a receive.
    fn complete(&mut self, done: Done, is_shared: bool);
}

/// The reason why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// The peer's bytes are no frames of this protocol.
    Protocol(&'static str),
    /// A request of the peer is invalid. A frame reports this to the peer.
    Refuse(Status),
    /// The peer has refused a request.
    Refused(Status),
    /// A request of this end cannot be executed.
    Local(Status),
    /// The peer cannot be reached any more.
    Lost,
    /// The owner ends the connection.
    Ended,
}
