//! Memory attached for buffered sends (MPI 5.0 §3.6).
//!
//! The size of the attached memory limits the bytes in flight. The copies are in memory of the
//! library's own: the attached memory is only counted, never written. A program that stays within
//! what the standard guarantees sees no difference.

use std::collections::BTreeMap;

use crate::request::RequestId;
use crate::{Class, Error, Result};

/// Bytes of the attached buffer that a message uses in addition to its body; at most
/// `MPI_BSEND_OVERHEAD`.
pub(crate) const OVERHEAD: usize = 64;
/// `MPI_BUFFER_AUTOMATIC`: the address of a buffer that is never full.
pub const AUTOMATIC: usize = 2;

/// The owner of an attached buffer: a communicator, or the process (`None`).
pub type Owner = Option<u32>;

/// The buffers that a rank has attached for buffered sends, by owner.
#[derive(Default)]
pub(crate) struct AttachedBuffers(BTreeMap<Owner, AttachedBuffer>);

/// A buffer that the user attached, and the copies that count against it.
pub(crate) struct AttachedBuffer {
    pub(crate) address: usize,
    pub(crate) size: usize,
    /// Copies that have not been sent yet: the request of each, and the bytes of the buffer that it
    /// uses.
    pub(crate) in_flight: Vec<(RequestId, usize)>,
}

impl AttachedBuffer {
    /// Number of free bytes. It has no meaning if the address is [`AUTOMATIC`].
    pub(crate) fn free(&self) -> usize {
        let used: usize = self.in_flight.iter().map(|(_, bytes)| bytes).sum();
        self.size.saturating_sub(used)
    }

    pub(crate) fn has_room(&self, needed: usize) -> bool {
        self.address == AUTOMATIC || needed <= self.free()
    }
}

impl AttachedBuffers {
    /// Attaches a buffer; an error if the owner has one, or the buffer has no address.
    pub(crate) fn attach(&mut self, owner: Owner, address: usize, size: usize) -> Result<()> {
        if address == 0 && size > 0 {
            let detail = format!("buffer is NULL; it must point to {size} bytes of the caller");
            return Err(Error::new(Class::BUFFER, detail));
        }
        if self.0.contains_key(&owner) {
            let detail = "a buffer is attached already: detach it first";
            return Err(Error::new(Class::BUFFER, detail));
        }
        let buffer = AttachedBuffer {
            address,
            size,
            in_flight: Vec::new(),
        };
        self.0.insert(owner, buffer);
        Ok(())
    }

    /// Detaches a buffer; an error if the owner has none.
    pub(crate) fn detach(&mut self, owner: Owner) -> Result<AttachedBuffer> {
        self.0.remove(&owner).ok_or_else(|| none_attached(owner))
    }

    pub(crate) fn get(&self, owner: Owner) -> Option<&AttachedBuffer> {
        self.0.get(&owner)
    }

    /// The owner's buffer; an error if it has none.
    pub(crate) fn get_mut(&mut self, owner: Owner) -> Result<&mut AttachedBuffer> {
        self.0.get_mut(&owner).ok_or_else(|| none_attached(owner))
    }

    pub(crate) fn owners(&self) -> Vec<Owner> {
        self.0.keys().copied().collect()
    }
}

#[cold]
fn none_attached(owner: Owner) -> Error {
    let whose = if owner.is_some() {
        "to this communicator"
    } else {
        "for buffered sends"
    };
    Error::new(Class::BUFFER, format!("no buffer is attached {whose}"))
}
