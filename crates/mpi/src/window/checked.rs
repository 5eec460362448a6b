//! Notes of accesses to windows, for a check of conflicts after the job (crate `rma_check`). Only a
//! modelled machine keeps notes; elsewhere nothing here is called.

use std::ops::ControlFlow;

use datatype::{Buffer, Op, Predefined};
use rma_check::{Access as NotedAccess, Event, Kind, Runs};

use super::memory::Memory;
use super::{Access, Place, Window};
use crate::rank::State;
use crate::{PROC_NULL, Result};

/// The most runs of a call's own memory that are looked at.
const MOST_RUNS: usize = 4096;

impl Window {
    /// The number of the window, which its members share and no other window has.
    fn noted_number(&self) -> u64 {
        let first = self.core.members.world(0).unwrap_or(0);
        self.core.context << 20 ^ first as u64
    }

    fn noted_rank(&self, member: u32) -> u32 {
        self.core.members.world(member as usize).unwrap_or(0) as u32
    }

    /// The notes of an access that has started: one for each group of runs.
    fn noted_access(
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

    /// The window has some of these bytes of this rank.
    fn holds(&self, start: usize, len: usize) -> bool {
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

impl State {
    /// Notes an event of a window, whose number it gets, if notes are kept.
    pub(crate) fn note_window(&mut self, win: u32, event: impl FnOnce(u64) -> Event) {
        if self.windows.noting.is_some()
            && let Ok(window) = self.windows.get(win)
        {
            let event = event(window.noted_number());
            self.note(event);
        }
    }

    /// Notes the end of accesses to a target, or to all.
    pub(crate) fn note_end(&mut self, win: u32, rank: Option<i32>, is_local: bool, unlocks: bool) {
        let target = match (rank, self.windows.get(win)) {
            (Some(rank), Ok(window)) => match window.member(rank) {
                Ok(member) => Some(window.noted_rank(member)),
                Err(_) => return,
            },
            _ => None,
        };
        self.note_window(win, |window| Event::Ended {
            window,
            target,
            is_local,
            unlocks,
        });
    }

    /// Notes that this rank has locked its own part of a window, if that is what it has locked.
    pub(crate) fn note_lock(&mut self, win: u32, rank: i32, is_exclusive: bool) {
        let own = self.windows.get(win).map(|window| window.core.rank as i32);
        if own.is_ok_and(|own| own == rank) {
            self.note_window(win, |window| Event::Locked {
                window,
                is_exclusive,
            });
        }
    }

    /// Notes the memory that this rank gives to a window.
    pub(crate) fn note_memory_of(&mut self, win: u32, base: usize, len: usize) {
        let (base, len) = (base as u64, len as u64);
        self.note_window(win, |window| Event::Made { window, base, len });
    }

    /// Notes an access, which has started.
    #[cold]
    pub(crate) fn note_access(
        &mut self,
        win: u32,
        access: &Access,
        place: &Place,
        has_request: bool,
    ) -> Result<()> {
        let notes = self
            .windows
            .get(win)?
            .noted_access(access, place, has_request)?;
        for note in notes {
            self.note(Event::Accessed(note));
        }
        Ok(())
    }

    /// Notes that the present call uses memory of the program, if some of it belongs to a window.
    /// True: it does, and [`note_return`](State::note_return) is due.
    #[cold]
    pub fn note_use(&mut self, memory: &Buffer, is_written: bool) -> bool {
        if self.windows.noting.is_none() {
            return false;
        }
        let segments = memory.segments(0, MOST_RUNS);
        let meets = |window: &Window| {
            let mut all = segments.iter();
            all.any(|(start, len)| window.holds(*start, *len))
        };
        if !self.windows.any(meets) {
            return false;
        }
        let mut all: Vec<Runs> = Vec::new();
        for (start, len) in segments {
            let (start, len) = (start as u64, len as u64);
            if !all.last_mut().is_some_and(|last| last.join(start, len)) {
                all.push(Runs::one(start, len));
            }
        }
        for runs in all {
            self.note(Event::Used { runs, is_written });
        }
        true
    }

    /// Notes the end of a call that uses memory of a window.
    pub fn note_return(&mut self) {
        self.note(Event::Returned);
    }

    fn note(&mut self, event: Event) {
        if let Some(rank) = self.windows.noting {
            self.router.machine().note(event.encode(rank));
        }
    }
}
