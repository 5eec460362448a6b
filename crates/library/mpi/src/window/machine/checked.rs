//! The notes of accesses to a window, for a check of conflicts after the job (crate `rma_check`).
//! Only a modelled machine records notes; elsewhere this code is not called.

use std::ops::ControlFlow;

use datatype::{Buffer, Op, Predefined};
use rma_check::{Access as NotedAccess, Kind, Runs};

use super::memory::Memory;
use super::{Access, Place, Window};
use crate::{PROC_NULL, Result};

impl Window {
    /// The number by which notes of accesses name the window: equal on all members, and unlike that
    /// of any other window.
    pub(crate) fn noted_number(&self) -> u64 {
        let first = self.core.members.world(0).unwrap_or(0);
        self.core.context << 20 ^ first as u64
    }

    pub(crate) fn noted_rank(&self, member: u32) -> u32 {
        self.core.members.world(member as usize).unwrap_or(0) as u32
    }

    /// The notes of an access that has started: one for each group of contiguous ranges of bytes.
    pub(crate) fn noted_access(
        &self,
        access: &Access,
        place: &Place,
        has_request: bool,
    ) -> Result<Vec<NotedAccess>> {
        if place.rank == PROC_NULL {
            return Ok(Vec::new());
        }
        let (target, bytes) = (self.member(place.rank)?, access.check(place)?);
        let at = self.offset(target, place)?;
        let kind = match access {
            Access::Put(_) => Kind::Put,
            Access::Get(_) => Kind::Get,
            Access::Accumulate { op, .. } => accumulate(*op, place, false),
            Access::GetAccumulate { op, .. } => accumulate(*op, place, true),
            Access::CompareAndSwap { .. } => accumulate(Op::Replace, place, true),
        };
        let Some(epoch) = self.epochs.noted(target) else {
            return Ok(Vec::new());
        };
        let mut all: Vec<Runs> = Vec::new();
        let _ = place
            .ty
            .visit_runs(at as usize, 0, bytes, &mut |start, len| {
                let (start, len) = (start as u64, len as u64);
                if !all.last_mut().is_some_and(|last| last.join(start, len)) {
                    all.push(Runs::one(start, len));
                }
                ControlFlow::Continue(())
            });
        let note = |runs| NotedAccess {
            window: self.noted_number(),
            target: self.noted_rank(target),
            kind,
            epoch,
            runs,
            has_request,
        };
        Ok(all.into_iter().map(note).collect())
    }

    /// True if some of these bytes of this rank belong to the window.
    pub(crate) fn holds(&self, start: usize, len: usize) -> bool {
        let meets = |part: &Buffer| {
            let dense = part.as_dense();
            dense.is_some_and(|(first, size)| start < first + size && first < start + len)
        };
        match &self.memory {
            Memory::Run(run) => meets(run),
            Memory::Attached(regions) => regions.values().any(meets),
        }
    }
}

fn accumulate(op: Op, place: &Place, fetches: bool) -> Kind {
    Kind::Accumulate {
        op,
        ty: place.ty.basic().unwrap_or(Predefined::BYTE),
        fetches,
    }
}
