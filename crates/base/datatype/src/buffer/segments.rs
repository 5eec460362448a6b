//! The contiguous runs of memory that elements of a type occupy. Adjacent runs are joined.

use super::Buffer;
use crate::types::Type;
use crate::walk::{Flow, Visit, copies};

impl Type {
    /// The runs of bytes of `count` elements, at most `max` of them, as (offset from the elements'
    /// address, length). Adjacent runs are joined.
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

impl Buffer {
    /// The number of runs of memory. Adjacent runs are joined. `None`: there are more than `most`.
    pub fn runs(&self, most: usize) -> Option<usize> {
        if self.as_dense().is_some() {
            return (most > 0).then_some(1);
        }
        let mut count = Count {
            end: None,
            runs: 0,
            most,
        };
        let is_over = self.walk(0, self.len(), &mut count).is_break();
        (!is_over).then_some(count.runs)
    }
}

/// A visitor that counts the runs of a walk.
struct Count {
    /// The address behind the last run of the walk.
    end: Option<usize>,
    runs: usize,
    most: usize,
}

impl Visit for Count {
    fn run(&mut self, address: usize, len: usize) -> Flow {
        self.runs += usize::from(self.end != Some(address));
        self.end = Some(address.wrapping_add(len));
        match self.runs > self.most {
            true => Flow::Break(()),
            false => Flow::Continue(()),
        }
    }
}

/// A visitor that lists the runs of a walk, as (address or offset, length).
pub(super) struct Segments {
    pub(super) list: Vec<(usize, usize)>,
    max: usize,
}

impl Segments {
    /// An empty list of runs, with room for `max` of them.
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
