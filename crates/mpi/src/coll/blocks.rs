//! Memory with a part for each member.

use datatype::Buffer;

#[derive(Clone, Debug)]
pub enum Blocks {
    /// Blocks of one size that follow each other.
    Even { whole: Buffer, each: usize },
    /// Blocks of any size, anywhere.
    Each(Box<[Buffer]>),
}

impl Blocks {
    /// `whole` cut into `members` equal parts.
    pub fn even(whole: Buffer, members: usize) -> Blocks {
        let each = whole.len() / members.max(1);
        Blocks::Even { whole, each }
    }

    pub fn part(&self, member: usize) -> Buffer {
        match self {
            Blocks::Even { whole, each } => whole.slice(member * each, *each),
            Blocks::Each(parts) => parts[member].clone(),
        }
    }

    /// Bytes of a member's part.
    pub fn len(&self, member: usize) -> usize {
        match self {
            Blocks::Even { each, .. } => *each,
            Blocks::Each(parts) => parts[member].len(),
        }
    }

    /// Bytes of all parts together.
    pub fn total(&self) -> usize {
        match self {
            Blocks::Even { whole, .. } => whole.len(),
            Blocks::Each(parts) => parts.iter().map(Buffer::len).sum(),
        }
    }

    pub fn is_even(&self) -> bool {
        matches!(self, Blocks::Even { .. })
    }

    /// The parts of `count` members from `first` on, as one; if they are.
    pub fn range(&self, first: usize, count: usize) -> Option<Buffer> {
        match self {
            Blocks::Even { whole, each } => Some(whole.slice(first * each, count * each)),
            Blocks::Each(_) => None,
        }
    }
}
