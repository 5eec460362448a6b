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

/// The head of a packet: three integers of the layer above, which transports carry but do not read.
pub type Head = [u64; 3];

/// The result of [`Transport::put`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// The packet is accepted and leaves at once; the body's memory may be reused.
    Accepted,
    /// The packet is accepted, and leaves together with packets behind it: at the latest at
    /// [`uncork`](Transport::uncork). The body's memory may be reused.
    Corked,
    /// The packet is accepted, and the ring has been full once since the last result of this kind.
    /// The sender should poll now, because the peer may have asked it to stop.
    AcceptedPollNow,
    /// The packet is not accepted: there is no room, or the connection is being made. Retry after a
    /// poll.
    Full,
}

/// The result of a packet handler: whether it accepts another packet of the same peer now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// The handler accepts another packet.
    Wanted,
    /// The handler takes no further packet: the next one must stay in the ring.
    Enough,
}

/// The result of a peek at the first packet of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum First<T> {
    /// The first packet was accepted, and has been consumed: the result of its handler.
    Taken(T),
    /// The first packet was not accepted; it stays in the ring.
    Other,
    /// There is no packet in the rings that were checked.
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
    /// The name of the transport in reports.
    pub transport: &'static str,
    /// The longest body that one packet can have, in bytes.
    pub longest_packet: usize,
    /// Length of the pieces of a message that is sent in several packets, in bytes.
    pub piece: usize,
    /// True if the peer copies one piece out while this rank copies the next one in, so that a
    /// message in pieces takes the time of one copy.
    pub pipelined: bool,
    /// The kinds of transfer between exposed memory of both ranks; `None` if this pair has none.
    pub zero_copy: Option<ZeroCopyCapabilities>,
    /// True if both ranks can copy one message together
    /// ([`MappedMemory::cooperation`](crate::MappedMemory::cooperation)).
    pub cooperative: bool,
    /// True if pieces of a cooperative copy are faster through the ring than by a single copy.
    pub push: bool,
    /// True if packets of long messages to this peer have reached their full speed: the memory for
    /// their bodies does not change any more, and has been written to before.
    pub settled: bool,
    /// Number of rails between the two ranks; 1 without rails.
    pub rails: usize,
    /// The costs of the path, among them the longest message that is sent eagerly unless the user
    /// sets a limit. That length is fixed for a machine.
    pub cost: PathCosts,
}

/// The kinds of zero-copy transfer between a pair of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroCopyCapabilities {
    /// True if the receiver can read the sender's memory.
    pub read: bool,
    /// True if the sender can write to the receiver's memory, and the receiver is notified of the
    /// end ([`NotifiedWrite`](crate::NotifiedWrite)).
    pub notified_write: bool,
    /// True if the completion of a write shows that its bytes are in the peer's memory. Otherwise
    /// only a notice shows that, or a later message.
    pub acknowledged: bool,
    /// True if a transfer occupies the calling rank and is complete when the call returns.
    /// Otherwise a device performs it.
    pub synchronous: bool,
    /// True if local memory may be noncontiguous; otherwise it must be contiguous.
    pub scattered: bool,
    /// True if the peer's process has no part in a transfer: its device or its kernel serves it.
    pub unattended: bool,
}

impl ZeroCopyCapabilities {
    /// Synchronous transfers by the calling rank, from and to noncontiguous local memory.
    pub(crate) const READ: ZeroCopyCapabilities = ZeroCopyCapabilities {
        read: true,
        notified_write: false,
        acknowledged: true,
        synchronous: true,
        scattered: true,
        unattended: true,
    };
}

/// A transport: it exchanges packets with peers, which are named by their world ranks.
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

    /// Length of the pieces of a message to `peer` that is sent in several packets, in bytes.
    fn piece(&self, peer: usize) -> usize {
        self.longest_packet(peer)
    }

    /// The capabilities for `peer`. The first call for a peer may have to probe them.
    fn capabilities(&mut self, peer: usize) -> Capabilities;

    /// Sends a packet with a body of `len` bytes, which `fill` writes directly into the transport's
    /// memory. `len` must not exceed [`longest_packet`](Transport::longest_packet).
    fn put(
        &mut self,
        peer: usize,
        head: Head,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Put>;

    /// Passes a bounded number of arrived packets to `handler` as (peer, head, body), and returns
    /// their number.
    fn poll(&mut self, handler: impl FnMut(usize, Head, &[u8]) -> More) -> Result<usize>;

    /// Sends the packets that were accepted and have not left ([`Put::Corked`]). A caller that has
    /// polled calls this before it does anything else: between a poll that found packets and this
    /// call, a transport may cork all packets. The default is for transports without a high cost
    /// per packet.
    fn uncork(&mut self) -> Result<()> {
        Ok(())
    }

    /// Informs the transport that this rank waits for `peer` and has nothing to send to it, so that
    /// a dead path is detected nevertheless. The default is for transports whose paths do not fail.
    fn contact(&mut self, peer: usize) -> Result<()> {
        let _ = peer;
        Ok(())
    }

    /// Ends the exchange with `peer`, which is lost. The default is for transports that lose no
    /// peer.
    fn give_up(&mut self, peer: usize) {
        let _ = peer;
    }

    /// Ends the connections. Call this until it returns true; only then may this rank end. The
    /// default is for transports without connections.
    fn close(&mut self) -> Result<bool> {
        Ok(true)
    }
}
