//! Records (*notes*) of accesses to windows, for a check of conflicts after the job (crate
//! `rma_check`). Only modelled machines keep notes. On others a rank checks that once, at its
//! start.

use channel::Router;
use datatype::Buffer;
use rma_check::{Event, Runs};

use crate::Result;
use crate::state::State;
use crate::window::{Access, Place, Window, Windows};

/// The most contiguous runs of a call's own buffer that are checked.
const MOST_RUNS: usize = 4096;

/// Writes a rank's notes of the accesses to its windows.
pub struct Notes<'a> {
    router: &'a mut Router,
    windows: &'a Windows,
}

impl State {
    /// The writer of this rank's notes of the accesses to its windows.
    pub fn notes(&mut self) -> Notes<'_> {
        Notes {
            router: &mut self.engine.router,
            windows: &self.objects.windows,
        }
    }
}

impl Notes<'_> {
    /// Notes an event of a window, if notes are kept. `event` gets the number of the window.
    pub(crate) fn window(&mut self, win: u32, event: impl FnOnce(u64) -> Event) {
        if self.windows.noting.is_some()
            && let Ok(window) = self.windows.get(win)
        {
            let event = event(window.noted_number());
            self.note(event);
        }
    }

    /// Notes that accesses to the target `rank`, or to all targets, have ended: with `is_local`
    /// only at this origin. `unlocks`: by an unlock.
    pub(crate) fn end(&mut self, win: u32, rank: Option<i32>, is_local: bool, unlocks: bool) {
        let target = match (rank, self.windows.get(win)) {
            (Some(rank), Ok(window)) => match window.member(rank) {
                Ok(member) => Some(window.noted_rank(member)),
                Err(_) => return,
            },
            _ => None,
        };
        self.window(win, |window| Event::Ended {
            window,
            target,
            is_local,
            unlocks,
        });
    }

    /// Notes a lock of this rank on its own part of a window. Locks of other parts are not noted.
    pub(crate) fn lock(&mut self, win: u32, rank: i32, is_exclusive: bool) {
        let own = self.windows.get(win).map(|window| window.core.rank as i32);
        if own.is_ok_and(|own| own == rank) {
            self.window(win, |window| Event::Locked {
                window,
                is_exclusive,
            });
        }
    }

    /// Notes the memory that this rank gives to a window.
    pub(crate) fn memory_of(&mut self, win: u32, base: usize, len: usize) {
        let (base, len) = (base as u64, len as u64);
        self.window(win, |window| Event::Made { window, base, len });
    }

    /// Notes the start of an access to a window, for the search for conflicts.
    #[cold]
    pub(crate) fn access(
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
    /// True: it does, and the caller must call [`returned`](Notes::returned) at the end of the
    /// call.
    #[cold]
    pub fn uses(&mut self, memory: &Buffer, is_written: bool) -> bool {
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
    pub fn returned(&mut self) {
        self.note(Event::Returned);
    }

    /// Records an event of another kind, which the caller has encoded.
    pub fn plain(&mut self, words: [u64; rma_check::WORDS]) {
        self.router.machine().note(words);
    }

    fn note(&mut self, event: Event) {
        if let Some(rank) = self.windows.noting {
            self.router.machine().note(event.encode(rank));
        }
    }
}
