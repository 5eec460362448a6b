//! The layout of a datatype in memory: a tree of strided loops and lists of runs, made once when
//! the type is built.
//!
//! Invariant: the tree lists the bytes in the order of the typemap, so position n of
//! the packed form is the n-th byte of a walk; only a type without data has an empty piece; the
//! tree grows with the number of a constructor's arguments, never with its counts.

use std::sync::Arc;

/// A part of a layout: `size` bytes of data at an offset from the address at which the part is
/// used.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub offset: isize,
    pub size: usize,
    pub shape: Shape,
}

#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// One run of as many bytes as the piece has.
    Run,
    /// Runs of `block` bytes, `stride` bytes apart.
    Strided { stride: isize, block: usize },
    /// Copies of the piece `child`, `stride` bytes apart.
    Repeat { stride: isize, child: Arc<Piece> },
    /// Runs of `block` bytes at any offsets.
    Blocks { block: usize, offsets: Arc<[isize]> },
    /// Runs of any length at any offsets. A run ends at the position in the packed form at which
    /// the next one begins.
    Runs(Arc<[Run]>),
    /// A sequence of pieces.
    List(Arc<[Item]>),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// The number of bytes of data before the run in the packed form.
    pub position: usize,
    pub offset: isize,
}

#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// The number of bytes of data before the piece in the packed form.
    pub position: usize,
    pub piece: Piece,
}

impl Piece {
    pub(crate) const EMPTY: Piece = Piece::run(0, 0);

    pub(crate) const fn run(offset: isize, size: usize) -> Piece {
        Piece {
            offset,
            size,
            shape: Shape::Run,
        }
    }

    pub(crate) fn is_run(&self) -> bool {
        matches!(self.shape, Shape::Run)
    }

    /// The mean length of a run in bytes, and the mean distance from one run to the next. A single
    /// run has no next one: the distance is its length.
    pub(crate) fn runs(&self) -> (usize, usize) {
        let mean = |runs: usize, first: isize, last: isize| {
            let run = self.size / runs.max(1);
            let way = last.wrapping_sub(first).unsigned_abs();
            (run.max(1), (way / runs.saturating_sub(1).max(1)).max(run))
        };
        match &self.shape {
            Shape::Run => (self.size, self.size),
            Shape::Strided { stride, block } => (*block, stride.unsigned_abs()),
            Shape::Repeat { child, .. } => child.runs(),
            Shape::Blocks { offsets, .. } => {
                let ends = (offsets.first(), offsets.last());
                mean(offsets.len(), *ends.0.unwrap_or(&0), *ends.1.unwrap_or(&0))
            }
            Shape::Runs(runs) => {
                let offset = |run: Option<&Run>| run.map_or(0, |run| run.offset);
                mean(runs.len(), offset(runs.first()), offset(runs.last()))
            }
            // The longest piece represents all.
            Shape::List(items) => {
                let longest = items.iter().max_by_key(|item| item.piece.size);
                longest.map_or((self.size, self.size), |item| item.piece.runs())
            }
        }
    }

    pub(crate) fn shifted(mut self, by: isize) -> Piece {
        self.offset = self.offset.wrapping_add(by);
        self
    }

    /// The piece that consists of `count` copies, `stride` bytes apart; `None` if the size
    /// overflows.
    pub(crate) fn repeated(mut self, count: usize, stride: isize) -> Option<Piece> {
        if count == 0 || self.size == 0 {
            return Some(Piece::EMPTY);
        }
        if count == 1 {
            return Some(self);
        }
        let size = self
            .size
            .checked_mul(count)
            .filter(|size| isize::try_from(*size).is_ok())?;
        let offset = std::mem::take(&mut self.offset);
        // The offset of the next copy if it continues the inner loop.
        let next = |stride: isize, inner: usize| stride.checked_mul((self.size / inner) as isize);
        let shape = match &self.shape {
            Shape::Run if stride == self.size as isize => Shape::Run,
            Shape::Run => Shape::Strided {
                stride,
                block: self.size,
            },
            Shape::Strided {
                stride: inner,
                block,
            } if next(*inner, *block) == Some(stride) => self.shape,
            Shape::Repeat {
                stride: inner,
                child,
            } if next(*inner, child.size) == Some(stride) => self.shape,
            _ => Shape::Repeat {
                stride,
                child: Arc::new(self),
            },
        };
        Some(Piece {
            offset,
            size,
            shape,
        })
    }
}

/// Makes one piece of a sequence of pieces, and joins adjacent runs.
#[derive(Default)]
pub(crate) struct Builder {
    size: usize,
    runs: Vec<Run>,
    /// The pieces; empty as long as all are runs, which are in `runs`.
    items: Vec<Item>,
}

impl Builder {
    /// Appends a piece; `None` if the size overflows.
    pub(crate) fn push(&mut self, piece: Piece) -> Option<()> {
        if piece.size == 0 {
            return Some(());
        }
        let position = self.size;
        self.size = position
            .checked_add(piece.size)
            .filter(|size| isize::try_from(*size).is_ok())?;
        if piece.is_run() {
            if self.end_of_last_run(position) == Some(piece.offset) {
                if let Some(Item { piece: last, .. }) = self.items.last_mut() {
                    last.size += piece.size;
                }
                return Some(());
            }
            if self.items.is_empty() {
                self.runs.push(Run {
                    position,
                    offset: piece.offset,
                });
                return Some(());
            }
        }
        self.spill(position);
        self.items.push(Item { position, piece });
        Some(())
    }

    pub(crate) fn finish(mut self) -> Piece {
        if self.items.len() > 1 {
            return Piece {
                offset: 0,
                size: self.size,
                shape: Shape::List(self.items.into()),
            };
        }
        if let Some(only) = self.items.pop() {
            return only.piece;
        }
        let Some(first) = self.runs.first().copied() else {
            return Piece::EMPTY;
        };
        if self.runs.len() == 1 {
            return Piece::run(first.offset, self.size);
        }
        let block = self.runs[1].position;
        let even = self.size == block * self.runs.len()
            && self
                .runs
                .windows(2)
                .all(|w| w[1].position - w[0].position == block);
        if !even {
            return Piece {
                offset: 0,
                size: self.size,
                shape: Shape::Runs(self.runs.into()),
            };
        }
        let stride = self.runs[1].offset.wrapping_sub(first.offset);
        if self
            .runs
            .windows(2)
            .all(|w| w[1].offset.wrapping_sub(w[0].offset) == stride)
        {
            return Piece {
                offset: first.offset,
                size: self.size,
                shape: Shape::Strided { stride, block },
            };
        }
        let offsets = self.runs.iter().map(|run| run.offset).collect();
        Piece {
            offset: 0,
            size: self.size,
            shape: Shape::Blocks { block, offsets },
        }
    }

    /// The offset at which the last piece ends, if it is a run; `position` is the size of all
    /// pieces up to there.
    fn end_of_last_run(&self, position: usize) -> Option<isize> {
        match self.items.last() {
            Some(Item { piece, .. }) if piece.is_run() => {
                Some(piece.offset.wrapping_add(piece.size as isize))
            }
            Some(_) => None,
            None => self
                .runs
                .last()
                .map(|run| run.offset.wrapping_add((position - run.position) as isize)),
        }
    }

    /// Moves `runs` to `items`. `end` is the size of all pieces up to there.
    fn spill(&mut self, end: usize) {
        let mut ends = self
            .runs
            .iter()
            .skip(1)
            .map(|run| run.position)
            .chain([end])
            .collect::<Vec<_>>()
            .into_iter();
        for run in self.runs.drain(..) {
            let size = ends.next().unwrap_or(end) - run.position;
            self.items.push(Item {
                position: run.position,
                piece: Piece::run(run.offset, size),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(pieces: &[Piece]) -> Piece {
        let mut builder = Builder::default();
        for piece in pieces {
            builder.push(piece.clone()).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn loops_fuse() {
        let row = Piece::run(0, 4).repeated(10, 8).unwrap();
        assert!(matches!(
            row.shape,
            Shape::Strided {
                stride: 8,
                block: 4
            }
        ));
        let rows = row.clone().repeated(3, 80).unwrap();
        assert!(
            matches!(
                rows.shape,
                Shape::Strided {
                    stride: 8,
                    block: 4
                }
            ) && rows.size == 120
        );
        let apart = row.repeated(3, 81).unwrap();
        assert!(matches!(apart.shape, Shape::Repeat { stride: 81, .. }));
        let more = apart.repeated(2, 243).unwrap();
        assert!(matches!(more.shape, Shape::Repeat { stride: 81, .. }) && more.size == 240);
        assert!(Piece::run(0, 4).repeated(1 << 20, 4).unwrap().is_run());
    }

    #[test]
    fn touching_runs_join_and_even_ones_become_loops() {
        let joined = build(&[Piece::run(8, 4), Piece::EMPTY, Piece::run(12, 4)]);
        assert!(joined.is_run() && joined.offset == 8 && joined.size == 8);
        let even = build(&[Piece::run(0, 4), Piece::run(16, 4), Piece::run(32, 4)]);
        assert!(matches!(
            even.shape,
            Shape::Strided {
                stride: 16,
                block: 4
            }
        ));
        let blocks = build(&[Piece::run(0, 4), Piece::run(16, 4), Piece::run(8, 4)]);
        assert!(matches!(blocks.shape, Shape::Blocks { block: 4, .. }));
        let runs = build(&[Piece::run(0, 4), Piece::run(16, 8)]);
        assert!(matches!(runs.shape, Shape::Runs(_)));
    }

    #[test]
    fn a_row_of_runs_and_loops_keeps_its_order() {
        let strided = Piece::run(100, 2).repeated(3, 10).unwrap();
        let list = build(&[
            Piece::run(0, 4),
            Piece::run(8, 4),
            strided,
            Piece::run(40, 4),
            Piece::run(44, 4),
        ]);
        let Shape::List(items) = &list.shape else {
            panic!("{list:?}")
        };
        let facts: Vec<_> = items
            .iter()
            .map(|item| (item.position, item.piece.offset, item.piece.size))
            .collect();
        assert_eq!(facts, [(0, 0, 4), (4, 8, 4), (8, 100, 6), (14, 40, 8)]);
    }
}
