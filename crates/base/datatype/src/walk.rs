//! The walk over a layout from any position of the packed form: one division or one binary search
//! for each level of the tree, then the runs in order.

use crate::layout::{Item, Piece, Run, Shape};
use std::ops::ControlFlow;

pub(crate) type Flow = ControlFlow<()>;

/// A visitor, which gets the runs of memory that a walk over a layout finds. Addresses are plain
/// numbers, which only the visitor interprets.
pub(crate) trait Visit {
    /// Visits one run of `len` bytes.
    fn run(&mut self, address: usize, len: usize) -> Flow;

    /// `count` whole blocks, `stride` bytes apart. Blocks without gaps are one run.
    fn strided(&mut self, address: usize, stride: isize, block: usize, count: usize) -> Flow {
        if stride == block as isize {
            return self.run(address, block * count);
        }
        let mut address = address;
        for _ in 0..count {
            self.run(address, block)?;
            address = address.wrapping_add_signed(stride);
        }
        Flow::Continue(())
    }

    /// Visits whole blocks of `block` bytes at `offsets` from `base`.
    fn scattered(&mut self, base: usize, offsets: &[isize], block: usize) -> Flow {
        for offset in offsets {
            self.run(base.wrapping_add_signed(*offset), block)?;
        }
        Flow::Continue(())
    }
}

/// Visits the runs of bytes `start..end` of one piece of a layout.
fn piece<V: Visit>(piece: &Piece, base: usize, start: usize, end: usize, visit: &mut V) -> Flow {
    debug_assert!(start <= end && end <= piece.size);
    if start == end {
        return Flow::Continue(());
    }
    let base = base.wrapping_add_signed(piece.offset);
    match &piece.shape {
        Shape::Run => visit.run(base.wrapping_add(start), end - start),
        Shape::Strided { stride, block } => strided(base, *stride, *block, start, end, visit),
        Shape::Repeat { stride, child } => copies(child, *stride, base, start, end, visit),
        Shape::Blocks { block, offsets } => blocks(base, offsets, *block, start, end, visit),
        Shape::Runs(list) => runs(base, list, start, end, visit),
        Shape::List(list) => items(base, list, start, end, visit),
    }
}

/// Visits bytes `start..end` of the packed form of copies of a piece: the first at `base`, the
/// others `stride` bytes apart.
pub(crate) fn copies<V: Visit>(
    child: &Piece,
    stride: isize,
    base: usize,
    start: usize,
    end: usize,
    visit: &mut V,
) -> Flow {
    if start == end {
        return Flow::Continue(());
    }
    if child.is_run() {
        return strided(
            base.wrapping_add_signed(child.offset),
            stride,
            child.size,
            start,
            end,
            visit,
        );
    }
    let mut index = start / child.size;
    let mut first = index * child.size;
    while first < end {
        let base = base.wrapping_add_signed(stride.wrapping_mul(index as isize));
        piece(
            child,
            base,
            start.max(first) - first,
            end.min(first + child.size) - first,
            visit,
        )?;
        index += 1;
        first += child.size;
    }
    Flow::Continue(())
}

fn strided<V: Visit>(
    base: usize,
    stride: isize,
    block: usize,
    start: usize,
    end: usize,
    visit: &mut V,
) -> Flow {
    let at = |index: usize| base.wrapping_add_signed(stride.wrapping_mul(index as isize));
    let cut = Cut::new(block, start, end);
    if let Some((index, from, len)) = cut.head {
        visit.run(at(index).wrapping_add(from), len)?;
    }
    if cut.whole > 0 {
        visit.strided(at(cut.first), stride, block, cut.whole)?;
    }
    if cut.tail > 0 {
        visit.run(at(cut.first + cut.whole), cut.tail)?;
    }
    Flow::Continue(())
}

fn blocks<V: Visit>(
    base: usize,
    offsets: &[isize],
    block: usize,
    start: usize,
    end: usize,
    visit: &mut V,
) -> Flow {
    let at = |index: usize| base.wrapping_add_signed(offsets[index]);
    let cut = Cut::new(block, start, end);
    if let Some((index, from, len)) = cut.head {
        visit.run(at(index).wrapping_add(from), len)?;
    }
    visit.scattered(base, &offsets[cut.first..cut.first + cut.whole], block)?;
    if cut.tail > 0 {
        visit.run(at(cut.first + cut.whole), cut.tail)?;
    }
    Flow::Continue(())
}

fn runs<V: Visit>(base: usize, list: &[Run], start: usize, end: usize, visit: &mut V) -> Flow {
    let first = list.partition_point(|run| run.position <= start) - 1;
    let mut at = start;
    for (i, run) in list.iter().enumerate().skip(first) {
        if at == end {
            break;
        }
        let stop = list.get(i + 1).map_or(end, |next| next.position.min(end));
        visit.run(
            base.wrapping_add_signed(run.offset)
                .wrapping_add(at - run.position),
            stop - at,
        )?;
        at = stop;
    }
    Flow::Continue(())
}

fn items<V: Visit>(base: usize, list: &[Item], start: usize, end: usize, visit: &mut V) -> Flow {
    let first = list.partition_point(|item| item.position <= start) - 1;
    for item in &list[first..] {
        if item.position >= end {
            break;
        }
        let from = start.max(item.position) - item.position;
        let to = (end - item.position).min(item.piece.size);
        piece(&item.piece, base, from, to, visit)?;
    }
    Flow::Continue(())
}

/// A range of bytes of blocks of one length, cut into the end of one block, whole blocks, and the
/// start of another.
struct Cut {
    /// The partial first block: its index, the offset in it, and the number of bytes. `None`: the
    /// range begins with a whole block.
    head: Option<(usize, usize, usize)>,
    first: usize,
    whole: usize,
    tail: usize,
}

impl Cut {
    fn new(block: usize, start: usize, end: usize) -> Cut {
        let index = start / block;
        let from = start % block;
        if from == 0 {
            let len = end - start;
            return Cut {
                head: None,
                first: index,
                whole: len / block,
                tail: len % block,
            };
        }
        let len = (block - from).min(end - start);
        let rest = end - start - len;
        Cut {
            head: Some((index, from, len)),
            first: index + 1,
            whole: rest / block,
            tail: rest % block,
        }
    }
}
