//! Buffers with a block for each member of a communicator.

use datatype::Buffer;

use super::call::Call;

/// A block of memory for each member of a communicator.
#[derive(Clone, Debug)]
pub enum Blocks {
    /// Blocks of equal size, one after the other.
    Even {
        /// The memory that holds all blocks.
        whole: Buffer,
        /// The length of each block in bytes.
        each: usize,
    },
    /// Blocks of any sizes, anywhere in memory.
    Each(Box<[Buffer]>),
}

impl Blocks {
    /// `whole` divided into `members` equal blocks.
    pub fn even(whole: Buffer, members: usize) -> Blocks {
        let each = whole.len() / members.max(1);
        Blocks::Even { whole, each }
    }

    /// The block of a member.
    pub fn part(&self, member: usize) -> Buffer {
        match self {
            Blocks::Even { whole, each } => whole.slice(member * each, *each),
            Blocks::Each(parts) => parts[member].clone(),
        }
    }

    /// Copies this rank's block `own` into these blocks, and returns them. `None`: it is in them
    /// already.
    pub(super) fn with_own(&self, call: &Call<'_>, own: Option<&Buffer>) -> &Blocks {
        if let Some(own) = own {
            call.copy(own, &self.part(call.me()));
        }
        self
    }

    /// The length of a member's block in bytes.
    pub fn len(&self, member: usize) -> usize {
        match self {
            Blocks::Even { each, .. } => *each,
            Blocks::Each(parts) => parts[member].len(),
        }
    }

    /// The length of all blocks together, in bytes.
    pub fn total(&self) -> usize {
        match self {
            Blocks::Even { whole, .. } => whole.len(),
            Blocks::Each(parts) => parts.iter().map(Buffer::len).sum(),
        }
    }

    /// The length of the longest of `members` blocks, in bytes.
    pub(super) fn longest(&self, members: usize) -> usize {
        match self {
            Blocks::Even { whole, .. } => whole.len() / members,
            Blocks::Each(parts) => parts.iter().map(Buffer::len).max().unwrap_or(0),
        }
    }

    /// True if the blocks are known to be of one size.
    pub fn is_even(&self) -> bool {
        matches!(self, Blocks::Even { .. })
    }

    /// All blocks as one buffer if they are known to be of one size; otherwise an empty buffer.
    pub(super) fn whole(&self) -> Buffer {
        match self {
            Blocks::Even { whole, .. } => whole.clone(),
            Blocks::Each(_) => Buffer::empty(),
        }
    }

    /// The blocks of `count` members from `first` on as one buffer; `None` if they need not be
    /// adjacent.
    pub(super) fn range(&self, first: usize, count: usize) -> Option<Buffer> {
        match self {
            Blocks::Even { whole, each } => Some(whole.slice(first * each, count * each)),
            Blocks::Each(_) => None,
        }
    }
}
