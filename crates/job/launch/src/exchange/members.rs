//! Sets of ranks or hosts, as numbers, that detect when all members are in them.

/// A set of numbers below a limit.
#[derive(Debug, Clone)]
pub(super) struct Members {
    is_in: Vec<bool>,
    count: usize,
}

impl Members {
    /// An empty set of numbers below `end`.
    pub(super) fn new(end: usize) -> Self {
        Members {
            is_in: vec![false; end],
            count: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// True if all numbers below the limit are in the set. A set without numbers is never full.
    pub(super) fn is_full(&self) -> bool {
        self.count > 0 && self.count == self.is_in.len()
    }

    pub(super) fn contains(&self, number: usize) -> bool {
        self.is_in[number]
    }

    /// Adds a number. Returns false if it is in the set already.
    pub(super) fn insert(&mut self, number: usize) -> bool {
        let is_new = !std::mem::replace(&mut self.is_in[number], true);
        self.count += usize::from(is_new);
        is_new
    }

    pub(super) fn clear(&mut self) {
        self.is_in.fill(false);
        self.count = 0;
    }
}
