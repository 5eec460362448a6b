//! Zero copy: transfers between exposed memory of two ranks, without a copy through packets.
//!
//! A rank exposes a buffer and sends its [`RemoteKey`] to the peer in a packet; with that key the
//! peer reads or writes the buffer.
//!
//! Invariants:
//! - a transport accesses memory of this rank only between `expose` and `retract`; the exposure
//!   keeps the buffer, and thereby the promise that its memory stays valid;
//! - a remote key is opaque: its receiver passes it on and does not interpret it;
//! - no transfer accesses bytes outside of those that its key and its exposure name.

use std::ops::Range;

use datatype::Buffer;

use crate::run_list::RunList;
use crate::{Error, Result};

/// Error text: the transfer of a peer or caller exceeds the memory of its key.
pub(crate) const BEYOND: &str = "a transfer beyond the memory that its key names";

/// The greatest number of rails that a remote key can name.
pub(crate) const MOST_RAILS: usize = 8;

/// Opaque name of exposed memory of a peer, or of a part of it. One key is valid on all rails of
/// its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RemoteKey {
    /// The address of the memory, for devices; otherwise the number that its owner has given to it.
    pub(crate) address: u64,
    /// The offset of the key's bytes in the exposed memory.
    offset: u64,
    /// The number of bytes that the key names.
    len: u64,
    rails: u8,
    keys: [u32; MOST_RAILS],
}

impl RemoteKey {
    /// The key that names no memory.
    pub const NONE: RemoteKey = RemoteKey {
        address: 0,
        offset: 0,
        len: 0,
        rails: 0,
        keys: [0; MOST_RAILS],
    };
    /// The longest encoding of a remote key, in bytes.
    pub const MOST_BYTES: usize = 8 + 4 * MOST_RAILS;

    /// The key of `len` bytes of exposed memory; `keys` has one key for each rail.
    pub(crate) fn new(address: u64, len: usize, keys: &[u32]) -> RemoteKey {
        let mut key = RemoteKey {
            address,
            len: len as u64,
            rails: keys.len() as u8,
            ..RemoteKey::NONE
        };
        key.keys[..keys.len()].copy_from_slice(keys);
        key
    }

    /// True if the key names no memory.
    pub fn is_none(&self) -> bool {
        self.address == 0
    }

    /// True if the key lets a device of the peer access the memory.
    pub fn opens_to_device(&self) -> bool {
        self.rails > 0
    }

    /// The memory key for one rail; `None` if the memory is not registered there.
    pub(crate) fn rail(&self, rail: usize) -> Option<u32> {
        self.keys[..usize::from(self.rails)].get(rail).copied()
    }

    /// Number of bytes that the key names.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The key of bytes `range` of the named bytes. `None`: the range exceeds them.
    pub fn part(&self, range: Range<usize>) -> Option<RemoteKey> {
        let (start, end) = (range.start as u64, range.end as u64);
        (start <= end && end <= self.len).then(|| RemoteKey {
            offset: self.offset + start,
            len: end - start,
            ..*self
        })
    }

    /// The key of bytes `range` of the named bytes, for a transfer with `peer`.
    ///
    /// # Errors
    /// The range exceeds the named bytes: `peer` is at fault.
    pub(crate) fn part_for(&self, peer: usize, range: &Range<usize>) -> Result<RemoteKey> {
        let part = self.part(range.clone());
        part.ok_or_else(|| Error::broken(peer, BEYOND))
    }

    /// The offset behind the last named byte in the exposed memory; `None` if it overflows.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.len)
    }

    /// The offset of the key's bytes in the exposed memory.
    pub(crate) fn offset(&self) -> usize {
        self.offset as usize
    }

    /// The address of the named byte at offset `at`, where a device accesses the memory.
    pub(crate) fn address_at(&self, at: u64) -> u64 {
        self.address.wrapping_add(self.offset).wrapping_add(at)
    }

    /// Appends the encoding of the key of a whole exposure: 8 bytes, and 4 for each rail. The
    /// length of the memory is not included, because the messages that carry keys contain it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.address.to_ne_bytes());
        for key in &self.keys[..usize::from(self.rails)] {
            to.extend(key.to_ne_bytes());
        }
    }

    /// The key of `len` bytes that has this encoding; `None` if the encoding is invalid.
    pub fn decode(bytes: &[u8], len: u64) -> Option<RemoteKey> {
        let (address, keys) = bytes.split_first_chunk()?;
        let (keys, []) = keys.as_chunks::<4>() else {
            return None;
        };
        if keys.len() > MOST_RAILS {
            return None;
        }
        let address = u64::from_ne_bytes(*address);
        let len = if address == 0 { 0 } else { len };
        let mut key = RemoteKey {
            address,
            len,
            ..RemoteKey::NONE
        };
        key.rails = keys.len() as u8;
        for (to, from) in key.keys.iter_mut().zip(keys) {
            *to = u32::from_ne_bytes(*from);
        }
        Some(key)
    }
}

/// The access to exposed memory that an exposure grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exposed {
    /// Bytes leave the buffer: a peer reads it, or this rank writes from it to a peer.
    ToRead,
    /// Bytes enter the buffer: a peer writes to it, or this rank reads a peer's memory into it.
    ToWrite,
    /// Peers read the buffer and write to it.
    ToBoth,
}

impl Exposed {
    /// True if an exposure of this kind grants `access`.
    pub(crate) fn grants(self, access: Exposed) -> bool {
        self == access || self == Exposed::ToBoth
    }
}

/// The kinds of operations of the layer above that use zero copy. Each gets its own completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// The family of point-to-point messages.
    Messages,
    /// Collective operations. A group exposes at most two buffers of a rank at a time for each
    /// collective buffer that the rank has.
    Collectives,
    /// The family of operations on windows, each window with one exposure of a rank.
    Windows,
}

impl Family {
    /// The number of families of operations.
    pub(crate) const COUNT: usize = 3;
}

/// The identification of an operation; a completion returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The family whose caller receives the completion.
    pub family: Family,
    /// A number that the caller chose, unique among the family's operations in flight.
    pub id: u64,
}

impl Token {
    /// The token of operation `id` of a family.
    pub fn new(family: Family, id: u64) -> Token {
        Token { family, id }
    }
}

/// Memory of this rank that a transport may access until it is retracted.
#[derive(Debug)]
pub struct Exposure {
    pub(crate) buffer: Buffer,
    pub(crate) len: usize,
    pub(crate) exposed: Exposed,
    pub(crate) key: RemoteKey,
    pub(crate) origin: Origin,
    /// The list that readers of the buffer copy, if it is exposed as several runs.
    pub(crate) _runs: Option<RunList>,
}

/// The transport over which an exposure was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Loopback,
    Shm,
    Rdma,
}

impl Exposure {
    /// The exposure of the first `len` bytes of `buffer` by the transport `origin` under `key`.
    pub(crate) fn new(
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        key: RemoteKey,
        origin: Origin,
    ) -> Exposure {
        Exposure {
            buffer: buffer.clone(),
            len,
            exposed,
            key,
            origin,
            _runs: None,
        }
    }

    /// The key that a peer needs for access. An exposure by `prepare` may have none.
    pub fn key(&self) -> RemoteKey {
        self.key
    }

    /// Checks that a transfer of `range` stays within the exposed bytes.
    pub(crate) fn check(&self, peer: usize, range: &Range<usize>) -> Result<()> {
        match range.start <= range.end && range.end <= self.len {
            true => Ok(()),
            false => Err(Error::broken(peer, BEYOND)),
        }
    }

    /// True if the transport holds a resource for the exposure, which must then be retracted;
    /// otherwise it may be dropped.
    pub fn is_held(&self) -> bool {
        !self.key.is_none()
    }
}

/// The result of a request for a zero-copy transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Transfer {
    /// A device performs the transfer; [`ZeroCopy::done`] will report its end.
    Started,
    /// The bytes have been moved.
    Done,
    /// The operating system refused access to the peer's memory: use packets.
    Refused,
}

/// A completed transfer: one that this rank has started, or a notified write that it expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// World rank of the peer.
    pub peer: usize,
    /// The token that was given when the transfer was started or expected.
    pub token: Token,
}

/// Transfers between exposed memory of this rank and of a peer.
///
/// ```
/// use channel::{Exposed, Family, Loopback, Token, Transfer, ZeroCopy};
/// use datatype::Buffer;
///
/// let (mut from, mut to) = (*b"hello", [0; 5]);
/// // SAFETY: both arrays stay in place until the last use below; nothing else uses them meanwhile.
/// let sent = unsafe { Buffer::dense(from.as_mut_ptr(), 5) };
/// // SAFETY: as above.
/// let received = unsafe { Buffer::dense(to.as_mut_ptr(), 5) };
/// let mut transport = Loopback::of(0);
/// let source = transport.expose(0, &sent, 5, Exposed::ToRead, Family::Messages)?.unwrap();
/// let target = transport.prepare(0, &received, 5, Exposed::ToWrite)?.unwrap();
/// let read = transport.read(0, &source.key(), &target, 0..5, Token::new(Family::Messages, 0))?;
/// assert_eq!((read, &to), (Transfer::Done, b"hello"));
/// transport.retract(source)?;
/// transport.retract(target)?;
/// # Ok::<(), channel::Error>(())
/// ```
pub trait ZeroCopy {
    /// Grants access to the first `len` bytes of `buffer` for transfers with `peer`, for operations
    /// of a family. `None`: this memory cannot be exposed (noncontiguous where that is not
    /// supported, refused by the device, or no room for the key), so its bytes must be copied.
    fn expose(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        family: Family,
    ) -> Result<Option<Exposure>>;

    /// Like [`expose`](ZeroCopy::expose), for this rank's own end of transfers that it starts
    /// itself: no peer gets a key.
    fn prepare(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>>;

    /// Ends the access to an exposure. No transfer may use it any more.
    fn retract(&mut self, exposure: Exposure) -> Result<()>;

    /// Reads bytes `range` of the peer's memory into `to`, at equal offsets. To copy to a different
    /// offset, use a part of the key ([`RemoteKey::part`]) or expose a slice.
    ///
    /// # Errors
    /// The range exceeds the memory of the key or of the exposure, or the peer does not expose what
    /// the key names.
    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer>;

    /// Writes bytes `range` of `from` to the peer's memory, at equal offsets.
    ///
    /// # Errors
    /// As [`read`](ZeroCopy::read).
    fn write(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer>;

    /// True if a transfer with `peer` can start. A needed connection is made by the first packet.
    /// The default is for transports without connections.
    fn can_start(&self, peer: usize) -> bool {
        let _ = peer;
        true
    }

    /// Removes and returns the next completed transfer of a family that a device performed;
    /// [`Transport::poll`](crate::Transport::poll) detects completions. The default is for
    /// transports without devices.
    fn done(&mut self, family: Family) -> Option<Done> {
        let _ = family;
        None
    }
}

/// Writes with a notice: the peer is notified of the end, by a number that it has chosen.
///
/// ```
/// use channel::{Exposure, Family, NotifiedWrite, RemoteKey, Result, Token, Transfer};
///
/// /// The receiver's part: the number goes to the sender with the key of the receiver's memory.
/// fn announce<T: NotifiedWrite>(
///     receiver: &mut T,
///     sender: usize,
///     token: Token,
/// ) -> Result<Option<u32>> {
///     receiver.expect(sender, token)
/// }
///
/// /// The sender's part: the receiver's `done` reports its token once all bytes have arrived.
/// fn deliver(
///     sender: &mut impl NotifiedWrite,
///     receiver: usize,
///     from: &Exposure,
///     (key, notice): (&RemoteKey, u32),
/// ) -> Result<Transfer> {
///     sender.write_notified(receiver, from, key, 4096, notice, Token::new(Family::Messages, 0))
/// }
/// ```
pub trait NotifiedWrite: ZeroCopy {
    /// Chooses a number that `peer` may use for one notified write to this rank; then
    /// [`ZeroCopy::done`] reports `token`. `None`: no further notice can be expected now.
    fn expect(&mut self, peer: usize, token: Token) -> Result<Option<u32>>;

    /// Withdraws a number from `expect`, which `peer` will not use.
    fn forget(&mut self, peer: usize, notice: u32);

    /// Writes the first `len` bytes of `from`, and notifies the peer by its number `notice` once
    /// all of them have arrived.
    fn write_notified(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        len: usize,
        notice: u32,
        token: Token,
    ) -> Result<Transfer>;

    /// An upper bound of the number of packets that have left for `peer`.
    fn packets_sent(&self, peer: usize) -> u64;

    /// Number of the peer's packets that have been passed to the handler, as the peer counts them.
    fn packets_received(&self, peer: usize) -> u64;

    /// True if the peer's next packet contains several coalesced ones, of which some have been
    /// passed to the handler already.
    fn is_amid_packet(&self, peer: usize) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_comes_back_as_it_was() {
        for keys in [&[][..], &[7], &[u32::MAX, 0, 3]] {
            let key = RemoteKey::new(1 << 46, 100, keys);
            let mut bytes = Vec::new();
            key.encode(&mut bytes);
            assert_eq!(bytes.len(), 8 + 4 * keys.len());
            assert_eq!(RemoteKey::decode(&bytes, 100), Some(key));
            assert_eq!(key.rail(0), keys.first().copied());
            assert_eq!(key.opens_to_device(), !keys.is_empty());
        }
        assert_eq!(RemoteKey::decode(&[0; 7], 1), None);
        assert_eq!(RemoteKey::decode(&[0; 13], 1), None);
        assert_eq!(RemoteKey::decode(&[0; RemoteKey::MOST_BYTES + 4], 1), None);
        assert!(RemoteKey::decode(&[0; 8], 1).unwrap().is_none());
    }

    #[test]
    fn a_part_stays_within_its_key() {
        let key = RemoteKey::new(1 << 46, 100, &[7]);
        let part = key.part(10..40).unwrap();
        let within = part.part_for(0, &(5..30)).unwrap();
        assert_eq!(
            (part.bytes(), within.offset(), within.bytes()),
            (30, 15, 25)
        );
        assert_eq!(part.part(30..30).map(|end| end.bytes()), Some(0));
        assert!(part.part(0..31).is_none() && part.part_for(0, &(31..31)).is_err());
        let backwards = Range { start: 2, end: 1 };
        assert!(key.part(backwards).is_none() && RemoteKey::NONE.part(0..1).is_none());
    }
}
