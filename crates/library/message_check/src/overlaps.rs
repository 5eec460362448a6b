//! The memory of a rank's pending operations, of which none may write what another uses.

use rma_check::Runs;

use crate::finding::{Rule, Side};
use crate::machine::Findings;

/// The most pending operations of a rank whose memory is compared.
const MOST: usize = 4096;

/// The memory of a rank's pending operations.
#[derive(Default)]
pub(crate) struct Memories {
    all: Vec<Memory>,
}

struct Memory {
    /// The request of the operation; 0: the present call.
    request: u32,
    side: Side,
    runs: Runs,
    is_written: bool,
    /// True while the operation is pending.
    is_active: bool,
}

impl Memory {
    fn collides(&self, other: &Memory) -> bool {
        self.is_active
            && other.is_active
            && (self.is_written || other.is_written)
            && self.runs.common(&other.runs).is_some()
    }
}

impl Memories {
    /// Begins a call: the memory of the call before is free.
    pub(crate) fn begin(&mut self) {
        self.all.retain(|one| one.request != 0);
    }

    /// Keeps the memory of an operation, and compares it with that of others.
    pub(crate) fn add(
        &mut self,
        side: Side,
        (request, runs, is_written): (u32, Runs, bool),
        is_active: bool,
        found: &mut Findings,
    ) {
        if self.all.len() >= MOST {
            return;
        }
        self.all.push(Memory {
            request,
            side,
            runs,
            is_written,
            is_active,
        });
        self.check(self.all.len() - 1, found);
    }

    fn check(&self, at: usize, found: &mut Findings) {
        let new = &self.all[at];
        let others = self
            .all
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at);
        let Some(met) = others.map(|(_, one)| one).find(|one| one.collides(new)) else {
            return;
        };
        let bytes = met
            .runs
            .common(&new.runs)
            .map_or(0, |(start, end)| end - start);
        let detail = |one: &Memory| match one.is_written {
            true => "which writes it".to_string(),
            false => "which reads it".to_string(),
        };
        let sides = [met, new].map(|one| Side {
            detail: detail(one),
            ..one.side.clone()
        });
        let what = format!("two pending operations of one rank use the same {bytes} B of memory");
        found.add(Rule::Overlap, what, sides.to_vec());
    }

    /// Forgets the memory of an earlier request with this handle.
    pub(crate) fn made(&mut self, request: u32) {
        self.all.retain(|one| one.request != request);
    }

    /// Activates the memory of a persistent request.
    pub(crate) fn start(&mut self, request: u32, found: &mut Findings) {
        for at in 0..self.all.len() {
            if self.all[at].request == request {
                self.all[at].is_active = true;
                self.check(at, found);
            }
        }
    }

    /// Ends an operation. `is_kept`: its request is persistent, and may start again.
    pub(crate) fn end(&mut self, request: u32, is_kept: bool) {
        if !is_kept {
            return self.made(request);
        }
        for one in &mut self.all {
            if one.request == request {
                one.is_active = false;
            }
        }
    }
}
