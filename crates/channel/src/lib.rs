//! The channel: a FIFO of packets between two ranks, and bulk transfers beside it.
//!
//! The interface is that of MPICH2's RDMA channel (five functions) with bulk operations beside it:
//! `attach`, `connect` (on first use, inside `put`) and `detach` (`Drop`) manage; [`Channel::put`] and
//! [`Channel::get`] communicate; [`Channel::read`] moves a peer's exposed bytes without a copy in between.
//!
//! What must always hold:
//! - a packet is taken whole or not at all, and packets of one pair of ranks arrive in the order of `put`;
//! - `put` and `get` never block and never wait for the peer;
//! - a peer that writes nonsense is reported as [`Fault::Broken`], it never makes us read out of bounds;
//! - nothing here knows what a tag or a communicator is.

// Under loom only the ring and the doorbell are built, so some of what the rest uses stands idle.
#![cfg_attr(loom, allow(dead_code))]

mod doorbell;
#[cfg(not(loom))]
pub mod lock;
#[cfg(not(loom))]
mod loopback;
pub mod piece_counter;
#[cfg(not(loom))]
pub mod rdma;
mod ring;
#[cfg(not(loom))]
mod router;
#[cfg(not(loom))]
pub mod shm;
#[cfg(all(test, not(loom)))]
mod suite;
pub mod sync;

#[cfg(all(test, loom))]
mod loom_tests;

use piece_counter::PieceCounter;
#[cfg(not(loom))]
pub use router::Channels;

/// What the layer above says of a packet: three words that the channel carries and does not read.
pub type Head = [u64; 3];

/// The answer of [`Channel::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// The packet is on its way; the body's memory may be reused.
    Accepted,
    /// The same, and as many packets as the peer has room for have gone since this was last said: a sender that has not
    /// looked at what came for it since then should do so, for the peer may have asked it to stop.
    AcceptedPollNow,
    /// There is no room at present, or the connection to the peer is not ready yet. Nothing was
    /// taken; try again after a `get`.
    Full,
}

/// Whether a handler of packets wants another one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    Wanted,
    Enough,
}

/// What a look at the first packet found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum First<T> {
    /// One that was wanted; it has been taken.
    Taken(T),
    /// Another one; it is still there.
    Other,
    /// None, where this look goes.
    Nothing,
}

/// Which end of a message this rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

/// The answer of [`Channel::read`] and [`Channel::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum CopyResult {
    /// The bytes are here.
    Done,
    /// This machine does not let us read that peer's memory: send the bytes as packets.
    Refused,
}

/// What went wrong. One word, so that a result travels in registers.
#[derive(Debug)]
pub struct Error(Box<Fault>);

#[derive(Debug)]
pub enum Fault {
    /// A call of the operating system failed: what was tried, and why it failed.
    System(&'static str, std::io::Error),
    /// The peer wrote something that the protocol does not allow.
    Broken { peer: usize, what: String },
    /// Ranks of one job disagree about the shape of the channel.
    Mismatch(String),
    /// A device could not do what it was asked for.
    Device(device::Error),
    /// No connection with a peer could be made.
    Unreachable { peer: usize, why: device::Error },
    /// A device could not reach a peer: what it says, and what to look at.
    Lost {
        peer: usize,
        device: String,
        status: &'static str,
        check: &'static str,
    },
}

impl Error {
    pub fn fault(&self) -> &Fault {
        &self.0
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        Error(Box::new(fault))
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.0 {
            Fault::System(what, why) => write!(f, "{what}: {why}"),
            Fault::Broken { peer, what } => {
                write!(f, "rank {peer} broke the protocol of the channel: {what}")
            }
            Fault::Mismatch(what) => f.write_str(what),
            Fault::Device(what) => write!(f, "{what}"),
            Fault::Unreachable { peer, why } => {
                write!(f, "no connection with rank {peer} could be made: {why}")
            }
            Fault::Lost {
                peer,
                device,
                status,
                check,
            } => write!(
                f,
                "the connection to rank {peer} by {device} is lost ({status}): {check}"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl From<device::Error> for Error {
    #[cold]
    fn from(error: device::Error) -> Error {
        Fault::Device(error).into()
    }
}

pub type Result<T> = std::result::Result<T, Error>;

/// A way to carry packets between this rank and its peers, peers named by their rank in the job.
pub trait Channel {
    /// The longest body that one packet to `peer` can carry, in bytes.
    fn max_body(&self, peer: usize) -> usize;

    /// Appends a packet with a body of `len` bytes, which `fill` writes in place.
    /// `len` must not be above `max_body`.
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put>;

    /// Hands packets that have arrived (a bounded number a call) to `handler`: peer, head, body. The handler says
    /// whether it wants the next one of that peer too. The answer is how many there were.
    fn get(&mut self, handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize>;

    /// Reads `into.len()` bytes at `address` of the peer's memory, which the peer keeps exposed meanwhile.
    fn read(&mut self, peer: usize, address: u64, into: &mut [u8]) -> Result<CopyResult>;

    /// The other way round: writes `from` to `address` of the peer's memory, which the peer has exposed for it.
    fn write(&mut self, peer: usize, address: u64, from: &[u8]) -> Result<CopyResult>;

    /// What this rank and a peer share to move one long message together; none if there is nothing to share.
    fn share(&self, peer: usize, end: End) -> Option<&PieceCounter>;

    /// May `read` be tried on this peer? Found out once for each peer.
    fn can_read(&mut self, peer: usize) -> bool;
}

/// Transfers between exposed memory of two ranks, by devices that do them on their own.
pub trait OneSided {
    /// Gives the device access to memory: the caller keeps it until `retract`, and does not use it meanwhile except as
    /// the exposure says.
    fn expose(&mut self, address: u64, len: usize, exposed: Exposed) -> Result<Exposure>;

    /// Takes the access back. No transfer may need it any more.
    fn retract(&mut self, exposure: Exposure) -> Result<()>;

    /// Begins to read from a peer's memory to the beginning of ours. The peer must have a connection with this rank.
    fn start_read(
        &mut self,
        peer: usize,
        from: Place,
        to: &Exposure,
        len: usize,
        token: Head,
    ) -> Result<()>;

    /// Begins to write from the beginning of our memory to a peer's. The peer, who has said by what number it expects
    /// this, hears of it when all is there.
    fn start_write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: Place,
        len: usize,
        token: Head,
        notice: u32,
    ) -> Result<()>;

    /// A number by which a peer is to tell, once, that it has written to memory of ours; `done` then gives the token.
    /// None: so many are expected already that no more can be told of now.
    fn expect(&mut self, peer: usize, token: Head) -> Result<Option<u32>>;

    /// The peer will not tell by this number.
    fn forget(&mut self, notice: u32);

    /// The next transfer that is done. `get` takes note of them.
    fn done(&mut self) -> Option<Done>;
}

/// What a device may do with memory of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exposed {
    /// Bytes leave it: a peer reads it, or we write it to a peer.
    ToRead,
    /// Bytes come to it.
    ToWrite,
}

/// Memory of ours that the device has access to.
#[derive(Debug)]
pub struct Exposure {
    address: u64,
    len: u64,
    lkey: u32,
    rkey: u32,
    exposed: Exposed,
}

impl Exposure {
    /// What a peer has to know to reach it.
    pub fn place(&self) -> Place {
        Place {
            address: self.address,
            key: self.rkey,
        }
    }
}

/// A place in a peer's exposed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub address: u64,
    pub key: u32,
}

/// A transfer that is done, ours or one that we expected of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub peer: usize,
    pub token: Head,
}
