//! Memory with a part for each member.

use datatype::Buffer;

#[derive(Clone, Debug)]
pub enum Parts {
    /// Parts of one size that follow each other.
    Even { whole: Buffer, each: usize },
    /// Parts of any size, anywhere.
    Each(Box<[Buffer]>),
}

impl Parts {
    /// `whole` cut into `members` equal parts.
    pub fn even(whole: Buffer, members: usize) -> Parts {
        let each = whole.len() / members.max(1);
        Parts::Even { whole, each }
    }

    pub fn part(&self, member: usize) -> Buffer {
        match self {
            Parts::Even { whole, each } => whole.slice(member * each, *each),
            Parts::Each(parts) => parts[member].clone(),
        }
    }

    /// Bytes of a member's part.
    pub fn len(&self, member: usize) -> usize {
        match self {
            Parts::Even { each, .. } => *each,
            Parts::Each(parts) => parts[member].len(),
        }
    }

    /// Bytes of all parts together.
    pub fn total(&self) -> usize {
        match self {
            Parts::Even { whole, .. } => whole.len(),
            Parts::Each(parts) => parts.iter().map(Buffer::len).sum(),
        }
    }

    pub fn is_even(&self) -> bool {
        matches!(self, Parts::Even { .. })
    }

    /// The parts of `count` members from `first` on, as one; if they are.
    pub fn range(&self, first: usize, count: usize) -> Option<Buffer> {
        match self {
            Parts::Even { whole, each } => Some(whole.slice(first * each, count * each)),
            Parts::Each(_) => None,
        }
    }
}
