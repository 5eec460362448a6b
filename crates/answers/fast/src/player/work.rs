//! Collective operations with their arguments, as the library runs them.

use datatype::{Op, Predefined, Type};
use mpi::coll::{self, Counts, Reduction, Work};
use mpi::op::Operation;

use super::{Player, Result, predefined};
use crate::own::too_long;
use crate::program::{Amount, Blocks, Collective, Handle, Moves, Reduces};

impl Player {
    pub(super) fn buffer(&self, bytes: u64) -> Result<datatype::Buffer> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let buffer = self.own.world.addresses().buffer(bytes);
        buffer.ok_or_else(|| too_long(bytes).to_string())
    }

    fn blocks(&self, blocks: &Blocks, members: usize) -> Result<Option<coll::Blocks>> {
        Ok(match blocks {
            Blocks::InPlace => None,
            Blocks::Even(each) => {
                let whole = self.bytes(*each)?.saturating_mul(members as u64);
                Some(coll::Blocks::even(self.buffer(whole)?, members))
            }
            Blocks::Each(all) => {
                let parts = all.iter().map(|part| self.buffer(self.bytes(*part)?));
                let parts: Result<Box<[_]>> = parts.collect();
                Some(coll::Blocks::Each(parts?))
            }
        })
    }

    /// The block that a rank gives or gets; `None`: it is in the other buffer.
    fn block(&self, blocks: &Blocks) -> Result<Option<datatype::Buffer>> {
        match blocks {
            Blocks::InPlace => Ok(None),
            Blocks::Even(amount) => self.buffer(self.bytes(*amount)?).map(Some),
            Blocks::Each(all) => {
                let own = all.first().ok_or("no count")?;
                self.buffer(self.bytes(*own)?).map(Some)
            }
        }
    }

    pub(super) fn work(&self, work: &Collective, comm: Handle) -> Result<Work> {
        let core = self.comm(comm)?.member.core();
        let (size, me) = (core.size(), core.rank as i64);
        Ok(match work {
            Collective::Barrier => Work::Barrier,
            Collective::Bcast { amount, root } => Work::Bcast {
                buffer: self.buffer(self.bytes(*amount)?)?,
                root: *root as i32,
            },
            Collective::Move {
                kind,
                send,
                receive,
                root,
            } => {
                let is_root = *root == me;
                let root = *root as i32;
                let all = |blocks: &Blocks| match is_root {
                    true => self.blocks(blocks, size),
                    false => Ok(None),
                };
                match kind {
                    Moves::Gather => Work::Gather {
                        send: self.block(send)?,
                        receive: all(receive)?,
                        root,
                    },
                    Moves::Gatherv => Work::Gatherv {
                        send: self.block(send)?,
                        receive: all(receive)?,
                        root,
                    },
                    Moves::Scatter => Work::Scatter {
                        send: all(send)?,
                        receive: self.block(receive)?,
                        root,
                    },
                    Moves::Scatterv => Work::Scatterv {
                        send: all(send)?,
                        receive: self.block(receive)?,
                        root,
                    },
                    Moves::Allgather => Work::Allgather {
                        send: self.block(send)?,
                        receive: self.blocks(receive, size)?.ok_or("no receive buffer")?,
                    },
                    Moves::Alltoall => Work::Alltoall {
                        send: self.blocks(send, size)?,
                        receive: self.blocks(receive, size)?.ok_or("no receive buffer")?,
                    },
                }
            }
            Collective::Reduce {
                kind,
                amount,
                op,
                in_place,
            } => self.reduction(kind, *amount, *op, *in_place, (size, me))?,
        })
    }

    fn reduction(
        &self,
        kind: &Reduces,
        amount: Amount,
        op: Handle,
        in_place: bool,
        (size, me): (usize, i64),
    ) -> Result<Work> {
        let count = usize::try_from(amount.count).map_err(|_| "a count below 0")?;
        let (count, counts) = match kind {
            Reduces::ReduceScatter(counts) => {
                let each = counts.iter().map(|count| (*count).max(0) as usize);
                let each: Box<[usize]> = each.collect();
                (each.iter().sum(), Counts::Each(each))
            }
            Reduces::ReduceScatterBlock => (count.saturating_mul(size), Counts::Even(count)),
            _ => (count, Counts::Even(count)),
        };
        let known = Op::from_handle(op as usize);
        // Sums of bytes stand for an operation of the program, whose time the trace does not have
        // for single calls.
        let (op, ty, count) = match known {
            Some(op) => {
                let ty = predefined(amount.datatype).ok_or("a datatype that no operation takes")?;
                (op, ty, count)
            }
            None => {
                if !self.ops.get(&op).copied().unwrap_or(false) {
                    return Err("an operation whose operands have an order".into());
                }
                let size = self.size(amount.datatype)? as usize;
                (Op::Bor, Predefined::BYTE, count.saturating_mul(size))
            }
        };
        let ty = Type::Predefined(ty);
        let elements = |count: usize| {
            let elements = self.own.world.addresses().elements(count, &ty);
            let bytes = count.saturating_mul(ty.size());
            elements.ok_or_else(|| too_long(bytes).to_string())
        };
        let gets = match kind {
            Reduces::Reduce(root) => *root == me,
            _ => true,
        };
        let reduction = Reduction {
            send: match in_place {
                true => None,
                false => Some(elements(count)?),
            },
            receive: match gets {
                true => Some(elements(match (kind, in_place) {
                    (Reduces::ReduceScatter(_) | Reduces::ReduceScatterBlock, false) => {
                        counts.of(me as usize)
                    }
                    _ => count,
                })?),
                false => None,
            },
            op: Operation::Predefined(op),
        };
        Ok(match kind {
            Reduces::Reduce(root) => Work::Reduce {
                reduction,
                root: *root as i32,
            },
            Reduces::Allreduce => Work::Allreduce(reduction),
            Reduces::ReduceScatter(_) | Reduces::ReduceScatterBlock => {
                Work::ReduceScatter { reduction, counts }
            }
            Reduces::Scan => Work::Scan {
                reduction,
                exclusive: false,
            },
            Reduces::Exscan => Work::Scan {
                reduction,
                exclusive: true,
            },
        })
    }
}
