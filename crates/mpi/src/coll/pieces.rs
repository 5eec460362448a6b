//! Long vectors of members that share memory, cut into pieces that fit a collective buffer. Each
//! piece is a small operation of its own.
//!
//! Invariant: all members cut alike, because the cuts depend on what all know.

use std::ops::Range;

use channel::collective_buffer::MOST_BYTES;
use datatype::{Buffer, Elements};

use super::blocks::Blocks;
use super::reduce::Reduction;
use super::reduce_scatter::Counts;
use super::work::Work;
use crate::Result;
use crate::rank::Rank;

/// Bytes of a published vector up to which an operation is not cut.
pub(super) const WHOLE: usize = 8 << 10;
/// Members from which on each of them reduces a part of a long vector; in smaller groups each
/// reduces all of it.
const SPLIT: usize = 3;

/// A piece of an operation.
pub(super) struct Piece {
    pub(super) work: Work,
    /// Bytes of the vector that a member publishes.
    pub(super) len: usize,
    /// The parts of the contribution that it publishes, where they are not one after the other.
    pub(super) give: Option<Blocks>,
}

impl Piece {
    fn new(work: Work, len: usize) -> Piece {
        Piece {
            work,
            len,
            give: None,
        }
    }
}

/// The pieces of an operation, in order.
pub(super) struct Pieces<'a> {
    work: &'a Work,
    me: usize,
    size: usize,
    /// Memory for this rank's part of a piece, where it is not the user's.
    room: Option<Elements>,
    /// Elements of a reduction, or bytes of a vector or block, that are done.
    done: usize,
    /// Elements or bytes of a piece.
    each: usize,
    /// Elements or bytes in all.
    all: usize,
    /// The second half of a piece that takes two rounds.
    next: Option<Piece>,
}

impl<'a> Pieces<'a> {
    /// The pieces of `work`, for member `me` of `size`.
    ///
    /// # Errors
    /// There is no memory for an intermediate result.
    pub(super) fn of(rank: &Rank, work: &'a Work, me: usize, size: usize) -> Result<Pieces<'a>> {
        let room = |element: usize| (MOST_BYTES / element.max(1)).max(1);
        let (all, each) = match work {
            Work::Reduce { reduction, .. }
            | Work::Allreduce(reduction)
            | Work::Scan { reduction, .. } => match reduction.ours() {
                Some(ours) => (ours.count(), room(ours.ty().size())),
                None => (0, 1),
            },
            Work::ReduceScatter { reduction, counts } => match reduction.ours() {
                Some(ours) => {
                    let longest = (0..size).map(|member| counts.of(member)).max();
                    (longest.unwrap_or(0), room(size * ours.ty().size()))
                }
                None => (0, 1),
            },
            Work::Bcast { buffer, .. } => (buffer.len(), MOST_BYTES),
            Work::Gather {
                send,
                receive,
                root,
            } => (block(me == *root as usize, send, receive), MOST_BYTES),
            Work::Scatter {
                send,
                receive,
                root,
            } => (block(me == *root as usize, receive, send), room(size - 1)),
            Work::Allgather { receive, .. } => (receive.longest(size), MOST_BYTES),
            Work::Alltoall { receive, .. } => (receive.len(0), room(size - 1)),
            _ => (0, 1),
        };
        // Whole cache lines, and parts of one size for all members.
        let each = match each > 64 * size {
            true => each - each % (64 * size),
            false => each,
        };
        let part = match work {
            Work::Reduce { reduction, root } if *root as usize != me => reduction.ours(),
            _ => None,
        };
        let part = part.map(|ours| {
            let mut state = rank.lock();
            state.scratch.elements(each.min(all) / size, ours.ty())
        });
        Ok(Pieces {
            work,
            me,
            size,
            room: part.transpose()?,
            done: 0,
            each,
            all,
            next: None,
        })
    }

    /// The piece of elements or bytes `at`.
    // Over 80 lines: an arm for each kind of operation.
    fn cut(&mut self, at: Range<usize>) -> Piece {
        let slice = |buffer: &Buffer| buffer.slice(at.start, at.len());
        let blocks = |blocks: &Blocks| {
            let parts = (0..self.size).map(|member| slice(&blocks.part(member)));
            Blocks::Each(parts.collect())
        };
        let (work, len) = match self.work {
            Work::Bcast { buffer, root } => {
                let (buffer, root) = (slice(buffer), *root);
                (Work::Bcast { buffer, root }, at.len())
            }
            Work::Gather {
                send,
                receive,
                root,
            } => {
                let (send, receive) = (send.as_ref().map(slice), receive.as_ref().map(blocks));
                let root = *root;
                let work = Work::Gather {
                    send,
                    receive,
                    root,
                };
                (work, at.len())
            }
            Work::Scatter {
                send,
                receive,
                root,
            } => {
                let (send, receive) = (send.as_ref().map(blocks), receive.as_ref().map(slice));
                let root = *root;
                let work = Work::Scatter {
                    send,
                    receive,
                    root,
                };
                (work, at.len() * (self.size - 1))
            }
            Work::Allgather { send, receive } => {
                let (send, receive) = (send.as_ref().map(slice), blocks(receive));
                (Work::Allgather { send, receive }, at.len())
            }
            Work::Alltoall { send, receive } => {
                let (send, receive) = (send.as_ref().map(blocks), blocks(receive));
                (Work::Alltoall { send, receive }, at.len() * (self.size - 1))
            }
            Work::ReduceScatter { reduction, counts } => {
                return self.scatter(reduction, counts, at);
            }
            Work::Reduce { reduction, root } => {
                let piece = cut_reduction(reduction, &at);
                if self.splits(&at) {
                    return self.split(&piece, Some(*root));
                }
                let (len, root) = (bytes(&piece), *root);
                let reduction = piece;
                (Work::Reduce { reduction, root }, len)
            }
            Work::Allreduce(reduction) => {
                let piece = cut_reduction(reduction, &at);
                if self.splits(&at) {
                    return self.split(&piece, None);
                }
                let len = bytes(&piece);
                (Work::Allreduce(piece), len)
            }
            Work::Scan {
                reduction,
                exclusive,
            } => {
                let (reduction, exclusive) = (cut_reduction(reduction, &at), *exclusive);
                let len = bytes(&reduction);
                let work = Work::Scan {
                    reduction,
                    exclusive,
                };
                (work, len)
            }
            other => (other.clone(), 0),
        };
        Piece::new(work, len)
    }

    /// Each member reduces a part of these elements.
    fn splits(&self, at: &Range<usize>) -> bool {
        self.size >= SPLIT && at.len().is_multiple_of(self.size)
    }

    /// Two rounds: each member reduces its part, then the root or all members get the parts.
    fn split(&mut self, piece: &Reduction, root: Option<i32>) -> Piece {
        let Some(ours) = piece.ours() else {
            return Piece::new(Work::Barrier, 0);
        };
        let part = ours.count() / self.size;
        let at_root = root.is_none_or(|root| root as usize == self.me);
        let result = piece.receive.as_ref().filter(|_| at_root);
        let own = match (result, &self.room) {
            (Some(result), _) => result.part(self.me * part, part),
            (None, Some(room)) => room.part(0, part),
            (None, None) => ours.part(0, 0),
        };
        let parts = |of: &Elements| {
            let part_of = |member: usize| of.part(member * part, part).buffer();
            Blocks::Each((0..self.size).map(part_of).collect())
        };
        let work = match root {
            None => Work::Allgather {
                send: None,
                receive: parts(result.unwrap_or(ours)),
            },
            Some(root) => Work::Gather {
                send: (!at_root).then(|| own.buffer()),
                receive: result.map(parts),
                root,
            },
        };
        self.next = Some(Piece::new(work, own.bytes()));
        let scattered = Work::ReduceScatter {
            reduction: Reduction {
                send: Some(ours.clone()),
                receive: Some(own),
                op: piece.op.clone(),
            },
            counts: Counts::Even(part),
        };
        Piece {
            work: scattered,
            len: bytes(piece) - ours.ty().size() * part,
            give: Some(parts(ours)),
        }
    }

    /// The piece of a reduction whose result is scattered: the elements `at` of each member's part.
    fn scatter(&self, reduction: &Reduction, counts: &Counts, at: Range<usize>) -> Piece {
        let Some(ours) = reduction.ours() else {
            return Piece::new(Work::Barrier, 0);
        };
        let within = |member: usize| {
            let part = counts.elements(member..member + 1);
            let of = |position: usize| (part.start + position).min(part.end);
            of(at.start)..of(at.end)
        };
        let parts = (0..self.size).map(within);
        let give = parts
            .clone()
            .map(|part| ours.part(part.start, part.len()).buffer());
        let counts: Box<[usize]> = parts.map(|part| part.len()).collect();
        let place = |receive: &Elements| receive.part(at.start, counts[self.me]);
        let piece = Reduction {
            // The contribution of a member that reduces in place is published, too.
            send: Some(ours.clone()),
            receive: reduction.receive.as_ref().map(place),
            op: reduction.op.clone(),
        };
        Piece {
            // Notes of all members carry the length of the whole piece.
            len: counts.iter().sum::<usize>() * ours.ty().size(),
            give: Some(Blocks::Each(give.collect())),
            work: Work::ReduceScatter {
                reduction: piece,
                counts: Counts::Each(counts),
            },
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if let Some(second) = self.next.take() {
            return Some(second);
        }
        let left = self.all - self.done;
        if left == 0 {
            return None;
        }
        let count = match (self.work, left.min(self.each)) {
            // The last elements of a vector may not divide among the members: they are a piece.
            (Work::Reduce { .. } | Work::Allreduce(_), count) if count >= self.size => {
                count - count % self.size
            }
            (_, count) => count,
        };
        let at = self.done..self.done + count;
        self.done = at.end;
        Some(self.cut(at))
    }
}

/// Bytes of one block, all of which have one size: the root knows them from all blocks.
fn block(at_root: bool, ours: &Option<Buffer>, all: &Option<Blocks>) -> usize {
    match at_root {
        true => all.as_ref().map_or(0, |all| all.len(0)),
        false => ours.as_ref().map_or(0, Buffer::len),
    }
}

fn bytes(piece: &Reduction) -> usize {
    piece.ours().map_or(0, Elements::bytes)
}

/// The elements `at` of a reduction's vectors.
fn cut_reduction(whole: &Reduction, at: &Range<usize>) -> Reduction {
    let part = |elements: &Elements| elements.part(at.start, at.len());
    Reduction {
        send: whole.send.as_ref().map(part),
        receive: whole.receive.as_ref().map(part),
        op: whole.op.clone(),
    }
}
