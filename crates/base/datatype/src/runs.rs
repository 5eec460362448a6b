//! The contiguous runs of bytes in a sequence of elements, for the view of a file (MPI 5.0 §14.3).

use crate::types::Type;
use crate::walk::{Flow, Visit, copies};

/// The order of the runs of one element of a type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RunOrder {
    /// No run begins before the end of the previous one.
    Ascending,
    /// No run begins before the previous one begins, but some overlap.
    Overlapping,
    /// Some run begins before the previous one.
    Unordered,
}

impl Type {
    /// Visits the runs of bytes `start..end` of the packed form of an endless sequence of elements,
    /// the first of which is at offset `base`. A run is an offset and a length.
    pub fn visit_runs(
        &self,
        base: usize,
        start: usize,
        end: usize,
        visit: &mut dyn FnMut(usize, usize) -> Flow,
    ) -> Flow {
        if self.size() == 0 || start >= end {
            return Flow::Continue(());
        }
        let mut visitor = Runs(visit);
        self.with_piece(|piece| copies(piece, self.extent(), base, start, end, &mut visitor))
    }

    /// The order in memory of the runs of one element.
    pub fn run_order(&self) -> RunOrder {
        let mut order = Order {
            start: 0,
            end: 0,
            overlaps: false,
        };
        // Only the order matters: offsets count from the first byte of data.
        let base = self.true_lb().wrapping_neg() as usize;
        let ended = self
            .with_piece(|piece| copies(piece, self.extent(), base, 0, self.size(), &mut order))
            .is_break();
        match (ended, order.overlaps) {
            (true, _) => RunOrder::Unordered,
            (false, true) => RunOrder::Overlapping,
            (false, false) => RunOrder::Ascending,
        }
    }
}

struct Runs<'a>(&'a mut dyn FnMut(usize, usize) -> Flow);

impl Visit for Runs<'_> {
    fn run(&mut self, address: usize, len: usize) -> Flow {
        (self.0)(address, len)
    }
}

/// A visitor of runs that compares each with the runs before it.
struct Order {
    start: usize,
    end: usize,
    overlaps: bool,
}

impl Visit for Order {
    fn run(&mut self, address: usize, len: usize) -> Flow {
        if address < self.start || address > isize::MAX as usize {
            return Flow::Break(());
        }
        self.overlaps |= address < self.end;
        (self.start, self.end) = (address, self.end.max(address.saturating_add(len)));
        Flow::Continue(())
    }

    fn strided(&mut self, address: usize, stride: isize, block: usize, count: usize) -> Flow {
        self.run(address, block)?;
        if count == 1 {
            return Flow::Continue(());
        }
        if stride < 0 {
            return Flow::Break(());
        }
        self.overlaps |= (stride as usize) < block;
        let last = stride.wrapping_mul(count as isize - 1);
        self.run_on(address.wrapping_add_signed(last), block)
    }
}

impl Order {
    /// Visits the last of several equally spaced runs, whose overlaps among each other are already
    /// noted.
    fn run_on(&mut self, address: usize, len: usize) -> Flow {
        let overlaps = self.overlaps;
        let flow = self.run(address, len);
        self.overlaps = overlaps;
        flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Predefined;

    fn byte() -> Type {
        Predefined::BYTE.into()
    }

    fn runs(ty: &Type, start: usize, end: usize) -> Vec<(usize, usize)> {
        let mut list = Vec::new();
        let _ = ty.visit_runs(100, start, end, &mut |offset, len| {
            list.push((offset, len));
            Flow::Continue(())
        });
        list
    }

    #[test]
    fn elements_follow_each_other_without_end() {
        let ty = Type::resized(0, 10, &Type::vector(2, 2, 4, &byte()).unwrap()).unwrap();
        assert_eq!(runs(&ty, 0, 4), [(100, 2), (104, 2)]);
        assert_eq!(runs(&ty, 3, 7), [(105, 1), (110, 2), (114, 1)]);
        assert_eq!(runs(&ty, 4_000, 4_001), [(10_100, 1)]);
        assert_eq!(runs(&ty, 5, 5), []);
        assert_eq!(runs(&Type::contiguous(0, &byte()).unwrap(), 0, 3), []);
    }

    #[test]
    fn the_order_of_runs() {
        let order = |offsets: &[i64]| {
            Type::indexed_block(2, offsets, &byte())
                .unwrap()
                .run_order()
        };
        assert_eq!(byte().run_order(), RunOrder::Ascending);
        assert_eq!(order(&[0, 4, 6, 11]), RunOrder::Ascending);
        assert_eq!(order(&[3, 4, 9]), RunOrder::Overlapping);
        assert_eq!(order(&[-8, -4, 9]), RunOrder::Ascending);
        assert_eq!(order(&[4, 0]), RunOrder::Unordered);
        assert_eq!(order(&[4, 9, 8]), RunOrder::Unordered);
        let vector = |stride| Type::hvector(3, 4, stride, &byte()).unwrap().run_order();
        assert_eq!(vector(5), RunOrder::Ascending);
        assert_eq!(vector(3), RunOrder::Overlapping);
        assert_eq!(vector(-5), RunOrder::Unordered);
    }
}
