//! The interface of every transport: packets in order, and the capabilities for one peer.
//!
//! Invariants:
//! - a packet is accepted whole or not at all, and the packets of one pair of ranks arrive in the
//!   order of `put`;
//! - `put` and `poll` never block and never wait for the peer;
//! - a peer that writes nonsense is reported as [`Fault::Broken`](crate::Fault::Broken); it never
//!   causes an access out of bounds;
//! - no transport knows tags or communicators.

use crate::Result;
use crate::costs::PathCosts;

/// The head of a packet: three words of the layer above, which transports carry and do not read.
pub type Head = [u64; 3];

/// The answer of [`Transport::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// The packet is on its way; the body's memory may be reused.
    Accepted,
    /// Accepted, and it leaves together with packets behind it: with
    /// [`uncork`](Transport::uncork), at the latest. The body's memory may be reused.
    Corked,
    /// Accepted, and the ring has been filled once since the last answer of this kind. The sender
    /// should poll now, because the peer may have asked it to stop.
    AcceptedPollNow,
    /// Not accepted: no room, or the connection is still being made. Retry after a poll.
    Full,
}

/// The answer of a packet handler: whether it takes another packet of the same peer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Another packet is welcome.
    Wanted,
    /// The next packet should stay in the ring.
    Enough,
}

/// The result of a peek at the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum First<T> {
    /// The packet was wanted, and has been taken.
    Taken(T),
    /// Another packet is first; it stays in the ring.
    Other,
    /// No packet in the polled rings.
    Nothing,
}

/// The role of this rank in the transfer of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The rank sends the message.
    Sender,
    /// The rank receives the message.
    Receiver,
}

/// Capabilities of a transport towards one peer. Protocols are chosen by these values alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Name of the transport, for reports.
    pub transport: &'static str,
    /// Longest body of one packet, in bytes.
    pub longest_packet: usize,
    /// Length of the pieces of a message that is sent in several packets, in bytes.
    pub piece: usize,
    /// The peer copies one piece out while the next is copied in, so a message in pieces costs one
    /// copy of time.
    pub pipelined: bool,
    /// Transfers between exposed memory of both ranks; `None` if this pair has none.
    pub zero_copy: Option<ZeroCopyCapabilities>,
    /// Both ranks can copy one message together
    /// ([`MappedMemory::cooperation`](crate::MappedMemory::cooperation)).
    pub cooperative: bool,
    /// Pieces of a cooperative copy are faster through the ring than by a single copy.
    pub push: bool,
    /// Packets of long messages to this peer go as fast as they will: memory that they need is not
    /// new any more.
    pub settled: bool,
    /// Number of rails between the two ranks; 1 without rails.
    pub rails: usize,
    /// The costs of the path. They have the longest message that is worth sending at once, unless
    /// the user sets a limit: a fixed number of the machine.
    pub cost: PathCosts,
}

/// The kinds of zero-copy transfer between a pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyCapabilities {
    /// The receiver can read the sender's memory.
    pub read: bool,
    /// The sender can write to the receiver's memory, and the receiver is notified of the end
    /// ([`NotifiedWrite`](crate::NotifiedWrite)).
    pub notified_write: bool,
    /// The end of a write shows that its bytes are in the peer's memory. Otherwise only a notice
    /// does, or a later message.
    pub acknowledged: bool,
    /// A transfer occupies the calling rank and is complete when the call returns. Otherwise a
    /// device performs it.
    pub synchronous: bool,
    /// Local memory may be scattered; otherwise it must be one run of bytes.
    pub scattered: bool,
    /// The peer's process has no part in a transfer: its device or its kernel serves it.
    pub unattended: bool,
}

impl ZeroCopyCapabilities {
    /// Reads by the calling rank, from and to any memory.
    pub(crate) const READ: ZeroCopyCapabilities = ZeroCopyCapabilities {
        read: true,
        notified_write: false,
        acknowledged: true,
        synchronous: true,
        scattered: true,
        unattended: true,
    };
}

/// A means to exchange packets with peers, which are named by their world ranks.
///
/// ```
/// use channel::{Head, Loopback, More, Put, Transport};
///
/// let mut transport = Loopback::of(0);
/// let put = transport.put(0, [7, 0, 0], 2, |body| body.copy_from_slice(b"hi"))?;
/// assert_eq!(put, Put::Accepted);
/// let packets = transport.poll(|peer, head: Head, body| {
///     assert_eq!((peer, head[0], body), (0, 7, &b"hi"[..]));
///     More::Wanted
/// })?;
/// assert_eq!(packets, 1);
/// # Ok::<(), channel::Error>(())
/// ```
pub trait Transport {
    /// Longest body of one packet to `peer`, in bytes.
    fn longest_packet(&self, peer: usize) -> usize;

    /// Length of the pieces of a message to `peer` that goes in several packets, in bytes.
    fn piece(&self, peer: usize) -> usize {
        self.longest_packet(peer)
    }

    /// The capabilities for `peer`, which may be found out at the first call for it.
    fn capabilities(&mut self, peer: usize) -> Capabilities;

    /// Appends a packet whose body has `len` bytes, which `fill` writes in place. `len` must not
    /// exceed [`longest_packet`](Transport::longest_packet).
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put>;

    /// Hands arrived packets, a bounded number, to `handler` as (peer, head, body), and returns
    /// their number.
    fn poll(&mut self, handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize>;

    /// Sends the packets that were accepted and have not left ([`Put::Corked`]). A caller that has
    /// polled does so before it turns to anything else: between a poll that found packets and this
    /// call, a transport may let all packets wait for each other. The default is for transports to
    /// which each packet costs little.
    fn uncork(&mut self) -> Result<()> {
        Ok(())
    }

    /// This rank waits for `peer`, and has nothing to send to it: a dead path is to be noticed all
    /// the same. The default is for transports whose paths do not fail.
    fn contact(&mut self, peer: usize) -> Result<()> {
        let _ = peer;
        Ok(())
    }

    /// Nothing is exchanged with `peer` from now on: it is lost. The default is for transports that
    /// lose no peer.
    fn give_up(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Ends the connections. To be called until it returns true; only then may this rank go away.
    /// The default is for transports without connections.
    fn close(&mut self) -> Result<bool> {
        Ok(true)
    }
}
