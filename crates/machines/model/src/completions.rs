//! Completion queues. An entry can be polled once the HCA's write of it is visible.

use sim::Time;
use sim::memory::Vec;

use super::rank::Arrival;
use super::record::{Activity, HcaPart};
use super::{Clocked, MachineModel};
use device::{Completion, Cq, Error, Result, State};

/// The most entries of a completion queue.
const DEPTH: usize = 1 << 20;

pub(super) struct CompletionQueue {
    rank: u32,
    rail: u32,
    depth: u32,
    /// A ring of entries: the place of the oldest, the number of entries, and the number of visible
    /// ones.
    entries: Vec<Entry>,
    first: u32,
    len: u32,
    visible: u32,
    /// The time when the last entry becomes visible.
    last: Time,
    /// It has overflowed and can no longer be used (IBA 11.6.3.1).
    overrun: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    completion: Completion,
    /// The number of places in the send queue that its completion frees, in this life of the queue
    /// pair.
    frees: Option<u32>,
    life: u32,
}

impl MachineModel {
    pub(super) fn create_cq(&mut self, rank: u32, rail: u32, depth: usize) -> Result<Cq> {
        if !(1..=DEPTH).contains(&depth) {
            return Err(Error::Invalid(format!(
                "a completion queue of {depth}; valid are 1 to {DEPTH}"
            )));
        }
        self.cqs.push(CompletionQueue {
            rank,
            rail,
            depth: (depth as u32).min(self.faults.completions),
            entries: Vec::new_in(self.memory),
            first: 0,
            len: 0,
            visible: 0,
            last: 0,
            overrun: false,
        });
        Ok(Cq(self.cqs.len() as u32 - 1))
    }

    /// The number of a completion queue, if it belongs to this device.
    pub(super) fn own_cq(&self, rank: u32, rail: u32, cq: Cq) -> Result<u32> {
        match self.cqs.get(cq.0 as usize) {
            Some(own) if (own.rank, own.rail) == (rank, rail) => Ok(cq.0),
            _ => Err(Error::Invalid(format!(
                "completion queue {} is not of this device",
                cq.0
            ))),
        }
    }

    /// Makes an HCA write an entry, starting at `at`.
    pub(super) fn put_completion(
        &mut self,
        cq: u32,
        at: Time,
        completion: Completion,
        frees: Option<u32>,
        clock: &mut Clocked,
    ) {
        let adapter = self.qps[completion.qp.0 as usize].adapter;
        let life = self.qps[completion.qp.0 as usize].life;
        let timing = self.timing(adapter);
        let (time, latency) = (timing.completion, timing.write_latency);
        // No completion overtakes the data that it reports.
        let data = self.qps[completion.qp.0 as usize].visible;
        let end = self.up(adapter).take(at, time);
        self.note_rail(
            adapter,
            HcaPart::BusUp,
            end,
            time,
            Activity::Completion.alone(0),
        );
        let own = &mut self.cqs[cq as usize];
        if own.overrun {
            return;
        }
        // Nor does it overtake another of its queue.
        let visible = (end + latency).max(data).max(own.last);
        own.last = visible;
        if own.len == own.depth {
            own.overrun = true;
            return self.overrun(cq, clock);
        }
        if own.len as usize == own.entries.len() {
            // Unused entries take no memory.
            own.entries.rotate_left(own.first as usize);
            own.first = 0;
            own.entries.push(Entry {
                completion,
                frees,
                life,
            });
        } else {
            let at = (own.first + own.len) as usize % own.entries.len();
            own.entries[at] = Entry {
                completion,
                frees,
                life,
            };
        }
        own.len += 1;
        let rank = own.rank;
        self.announce(rank, visible, Arrival::Completion { cq }, true, clock);
    }

    /// Makes one more entry visible.
    pub(super) fn completion_is_visible(&mut self, cq: u32) {
        self.cqs[cq as usize].visible += 1;
    }

    /// Takes visible entries.
    pub(super) fn poll_cq(&mut self, cq: u32, into: &mut [Completion]) -> Result<usize> {
        let own = &mut self.cqs[cq as usize];
        if own.overrun {
            return Err(Error::System(format!(
                "completion queue {cq} was overrun: more than {} completions came before one was taken",
                own.depth
            )));
        }
        let count = (own.visible as usize).min(into.len());
        for place in &mut into[..count] {
            let entry = own.entries[own.first as usize];
            own.first = (own.first + 1) % own.entries.len() as u32;
            *place = entry.completion;
            let qp = &mut self.qps[entry.completion.qp.0 as usize];
            if let Some(freed) = entry.frees.filter(|_| qp.life == entry.life) {
                qp.freed = freed;
            }
        }
        own.len -= count as u32;
        own.visible -= count as u32;
        Ok(count)
    }

    /// Breaks all queue pairs that use the queue.
    #[cold]
    fn overrun(&mut self, cq: u32, clock: &mut Clocked) {
        for q in 0..self.qps.len() as u32 {
            let qp = &self.qps[q as usize];
            if qp.alive && qp.state == State::Rts && (qp.send_cq == cq || qp.receive_cq == cq) {
                self.break_qp(q, clock);
            }
        }
    }
}
