//! Runs of memory, joined where they are adjacent.

use crate::types::Type;
use crate::walk::{Flow, Visit, copies};

impl Type {
    /// The runs of bytes of `count` elements, at most `max` of them, as offsets from their address
    /// with lengths. Adjacent runs are joined.
    pub fn runs(&self, count: usize, max: usize) -> Vec<(isize, usize)> {
        let mut segments = Segments::new(max);
        let bytes = count.saturating_mul(self.size());
        if bytes > 0 && max > 0 {
            // The walk touches no memory, and breaks off when the list is full.
            let _ =
                self.with_piece(|piece| copies(piece, self.extent(), 0, 0, bytes, &mut segments));
        }
        let offsets = segments.list.into_iter();
        offsets
            .map(|(offset, len)| (offset as isize, len))
            .collect()
    }
}

/// A list of runs that a walk visits, as addresses or offsets with lengths.
pub(super) struct Segments {
    pub(super) list: Vec<(usize, usize)>,
    max: usize,
}

impl Segments {
    /// An empty list, which takes at most `max` runs.
    pub(super) fn new(max: usize) -> Segments {
        Segments {
            list: Vec::new(),
            max,
        }
    }
}

impl Visit for Segments {
    fn run(&mut self, address: usize, len: usize) -> Flow {
        if let Some((last, size)) = self.list.last_mut()
            && last.wrapping_add(*size) == address
        {
            *size += len;
            return Flow::Continue(());
        }
        if self.list.len() == self.max {
            return Flow::Break(());
        }
        self.list.push((address, len));
        Flow::Continue(())
    }
}
