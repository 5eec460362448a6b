//! Zero copy: transfers between exposed memory of two ranks.
//!
//! A rank exposes a buffer and sends the [`RemoteKey`] to its peer in a packet; the peer reads or
//! writes by that key.
//!
//! Invariants:
//! - a transport accesses memory of this rank between `expose` and `retract` only; the exposure
//!   keeps the buffer, and with it the promise that its memory stays;
//! - a remote key is opaque: whoever receives it passes it on and reads nothing from it;
//! - no transfer leaves the bytes that its key and its exposure name, at either end.

use std::ops::Range;

use datatype::Buffer;

use crate::{Error, Result};

/// The fault of a peer or caller whose transfer leaves the memory of its key.
pub(crate) const BEYOND: &str = "a transfer beyond the memory that its key names";

/// Most rails that a remote key can name.
pub(crate) const MOST_RAILS: usize = 8;

/// Opaque name of exposed memory of a peer, or of a part of it. One key covers all rails of its
/// owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RemoteKey {
    /// The address of the memory, for devices; otherwise the number by which its owner knows it.
    pub(crate) address: u64,
    /// The position of the named bytes in the exposed memory, and their number.
    offset: u64,
    len: u64,
    rails: u8,
    keys: [u32; MOST_RAILS],
}

impl RemoteKey {
    /// The key of nothing.
    pub const NONE: RemoteKey = RemoteKey {
        address: 0,
        offset: 0,
        len: 0,
        rails: 0,
        keys: [0; MOST_RAILS],
    };
    /// The longest encoding, in bytes.
    pub const MOST_BYTES: usize = 8 + 4 * MOST_RAILS;

    /// The key of `len` bytes of exposed memory.
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

    /// The key names no memory.
    pub fn is_none(&self) -> bool {
        self.address == 0
    }

    /// The key lets a device of the peer access the memory.
    pub fn opens_to_device(&self) -> bool {
        self.rails > 0
    }

    /// The key of one rail, if the key opens the memory to it.
    pub(crate) fn rail(&self, rail: usize) -> Option<u32> {
        self.keys[..usize::from(self.rails)].get(rail).copied()
    }

    /// Number of bytes that the key names.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The key of a part of the memory. `None`: it reaches beyond the named bytes.
    pub fn part(&self, range: Range<usize>) -> Option<RemoteKey> {
        let (start, end) = (range.start as u64, range.end as u64);
        (start <= end && end <= self.len).then(|| RemoteKey {
            offset: self.offset + start,
            len: end - start,
            ..*self
        })
    }

    /// The part for a transfer of `range` with this peer.
    ///
    /// # Errors
    /// The range reaches beyond the named bytes.
    pub(crate) fn part_for(&self, peer: usize, range: &Range<usize>) -> Result<RemoteKey> {
        let part = self.part(range.clone());
        part.ok_or_else(|| Error::broken(peer, BEYOND))
    }

    /// The position behind the last named byte in the exposed memory; `None` if it is no position.
    pub(crate) fn end(&self) -> Option<u64> {
        self.offset.checked_add(self.len)
    }

    /// The position of the named bytes in the exposed memory.
    pub(crate) fn offset(&self) -> usize {
        self.offset as usize
    }

    /// The address of a named byte, where a device accesses the memory.
    pub(crate) fn address_at(&self, at: u64) -> u64 {
        self.address.wrapping_add(self.offset).wrapping_add(at)
    }

    /// Appends the encoding of the key of a whole exposure: 8 bytes, and 4 for each rail. Its
    /// length is not included, because the messages that carry keys have it.
    pub fn encode(&self, to: &mut Vec<u8>) {
        to.extend(self.address.to_ne_bytes());
        for key in &self.keys[..usize::from(self.rails)] {
            to.extend(key.to_ne_bytes());
        }
    }

    /// The key with this encoding, of `len` bytes; `None` if it is none.
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

/// The access that an exposure grants.
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
    /// An exposure of this kind grants `access`.
    pub(crate) fn grants(self, access: Exposed) -> bool {
        self == access || self == Exposed::ToBoth
    }
}

/// The operations of the layer above that use zero copy, by their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// Messages between two ranks.
    Messages,
    /// Collective operations. A group exposes at most two buffers of a rank at a time for each
    /// collective buffer that the rank has.
    Collectives,
    /// Windows of one-sided communication, each with one exposure of a rank.
    Windows,
}

impl Family {
    /// Number of families.
    pub(crate) const COUNT: usize = 3;
}

/// The name of an operation, which comes back with its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// The family whose caller receives the completion.
    pub family: Family,
    /// The operation within its family.
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
}

/// The transport that granted an exposure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Loopback,
    Shm,
    Rdma,
}

impl Exposure {
    /// The first `len` bytes of `buffer`, exposed by the transport `origin` under `key`.
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
        }
    }

    /// The key that a peer needs for access. Buffers that were only prepared may have none.
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

    /// The transport holds a resource for the exposure, so it must be retracted; otherwise it may
    /// be dropped.
    pub fn is_held(&self) -> bool {
        !self.key.is_none()
    }
}

/// The answer to a request for a transfer.
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

/// A completed transfer: one of this rank's, or one of the peer's that this rank expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// World rank of the peer.
    pub peer: usize,
    /// The token that was given at the start.
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
    /// of a family. `None`: this memory cannot be exposed (not one run of bytes where that is
    /// needed, refused by the device, or no room for the key), so its bytes must be copied.
    fn expose(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
        family: Family,
    ) -> Result<Option<Exposure>>;

    /// As [`expose`](ZeroCopy::expose), for this rank's own end of transfers that it starts itself:
    /// no peer gets a key.
    fn prepare(
        &mut self,
        peer: usize,
        buffer: &Buffer,
        len: usize,
        exposed: Exposed,
    ) -> Result<Option<Exposure>>;

    /// Ends the access. No transfer may need it any more.
    fn retract(&mut self, exposure: Exposure) -> Result<()>;

    /// Reads bytes `range` of the peer's memory into the same range of `to`. To copy between
    /// different positions, take a part of the key ([`RemoteKey::part`]) or expose a slice.
    ///
    /// # Errors
    /// The range leaves the memory of the key or of the exposure, or the peer does not expose what
    /// the key names.
    fn read(
        &mut self,
        peer: usize,
        from: &RemoteKey,
        to: &Exposure,
        range: Range<usize>,
        token: Token,
    ) -> Result<Transfer>;

    /// Writes bytes `range` of `from` to the same range of the peer's memory.
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

    /// A transfer with `peer` can start. Where that needs a connection, the first packet makes one.
    /// The default is for transports without connections.
    fn can_start(&self, peer: usize) -> bool {
        let _ = peer;
        true
    }

    /// The next transfer of a family that a device has completed;
    /// [`Transport::poll`](crate::Transport::poll) finds them. The default is for transports
    /// without devices.
    fn done(&mut self, family: Family) -> Option<Done> {
        let _ = family;
        None
    }
}

/// Writes whose end the peer is notified of, by a number that the peer chose.
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
    /// A number that `peer` may use for one notified write to this rank; [`ZeroCopy::done`] then
    /// reports `token`. `None`: no further notice can be awaited now.
    fn expect(&mut self, peer: usize, token: Token) -> Result<Option<u32>>;

    /// `peer` will not use this number.
    fn forget(&mut self, peer: usize, notice: u32);

    /// Writes the first `len` bytes of `from`, and notifies the peer by its number `notice` once
    /// all have arrived.
    fn write_notified(
        &mut self,
        peer: usize,
        from: &Exposure,
        to: &RemoteKey,
        len: usize,
        notice: u32,
        token: Token,
    ) -> Result<Transfer>;

    /// Upper bound of the number of packets that have left for `peer`.
    fn packets_sent(&self, peer: usize) -> u64;

    /// Number of the peer's packets that have been handed on, as the peer counts them.
    fn packets_received(&self, peer: usize) -> u64;

    /// The peer's next packet holds several, of which some have been handed on already.
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
