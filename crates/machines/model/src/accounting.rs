//! The accounting of a rank in virtual time: work that its library charges, and the calls and the
//! computing of its program.

use fabric::Bytes;

use super::computing::Computing;
use super::efforts::effort;
use super::node::{Current, MANY, ModelNode};
use super::processor::{copy, keep_busy};
use super::span::Activity;
use device::{Accounting, Effort, LocalCharge, Note, ProgramCall, Result, VirtualTime};

impl Accounting for ModelNode {
    fn charge(&mut self, of: Effort) {
        if let Effort::Message(length) | Effort::BlockingMessage(length) = of {
            self.is_blocking = matches!(of, Effort::BlockingMessage(_));
            return self.begin_message(length as u64);
        }
        self.local.charge(&self.turn);
        let rank = self.turn.rank();
        let prepared = std::mem::replace(&mut self.prepared, of == Effort::Send);
        let activity = match of {
            Effort::Send => Activity::Send,
            Effort::Receive => Activity::Receive,
            Effort::Control => Activity::Control,
            Effort::Call | Effort::Message(_) | Effort::BlockingMessage(_) => Activity::Short,
            Effort::Copy(len) if prepared && self.leaves_uncopied(len) => return,
            Effort::Copy(len) => return copy(&self.turn, len),
        };
        let time = self.turn.with(|net, _| {
            let time = effort(&net.qps.ports.first().costs, of);
            net.qps.ranks.cpu(rank, time.picos())
        });
        keep_busy(&self.turn, time, activity.alone(0));
    }

    fn begin_computing(&mut self, nanos: u64) {
        let rank = self.turn.rank();
        let time = nanos.saturating_mul(1000);
        self.computing = Some(self.turn.with(|net, clock| {
            let shares_core = net.qps.ranks[rank].shares_core;
            Computing::begin(clock.of(rank), net.qps.ranks.cpu(rank, time), shares_core)
        }));
    }

    fn compute(&mut self, nanos: u64) -> Result<bool> {
        let now = self.turn.now();
        let left = self.computing.map_or(0, |computing| computing.left(now));
        let longest = left.min(nanos.saturating_mul(1000));
        if !self.compute_until_news(longest)? {
            return Ok(false);
        }
        let rank = self.turn.rank();
        let time = self.turn.with(|net, _| {
            let kernel = &net.qps.run.system.kernel;
            let wake = kernel.interrupt + kernel.wake + kernel.switch;
            net.qps.ranks.cpu(rank, wake.picos())
        });
        let now = self.turn.now();
        if self.computing.is_some_and(|own| own.ends_within(now, time)) {
            return Ok(false);
        }
        keep_busy(&self.turn, time, Activity::Control.alone(0));
        Ok(true)
    }

    fn begin_step(&mut self) {
        let rank = self.turn.rank();
        self.turn
            .with(|net, clock| net.qps.run.record.keep_step(rank, clock.of(rank)));
    }

    fn enter(&mut self, call: ProgramCall) {
        let rank = self.turn.rank();
        let time = match self.computing.take() {
            Some(computing) => {
                let now = self.turn.now();
                self.delayed += computing.delay(now);
                computing.left(now)
            }
            None => {
                let time = call.computed.saturating_mul(1000);
                self.turn.with(|net, _| net.qps.ranks.cpu(rank, time))
            }
        };
        keep_busy(&self.turn, time, Activity::Compute.alone(0));
        self.turn
            .with(|net, _| net.constructs(rank, call.constructs));
        self.call = Some(Current {
            start: self.turn.now(),
            call,
        });
    }

    fn leave(&mut self) {
        self.local.charge(&self.turn);
        let Some(call) = self.call.take() else {
            return;
        };
        self.end_message();
        let rank = self.turn.rank();
        self.turn.with(|net, clock| {
            net.constructs(rank, false);
            let who = (net.qps.ranks[rank].host, rank);
            let times = (call.start, clock.of(rank));
            net.qps.run.record.note_call(who, times, call.call.name);
        });
    }

    fn attach_library(&mut self) -> bool {
        let rank = self.turn.rank();
        self.turn.with(|net, _| {
            net.qps.ranks[rank].library.is_attached = true;
            let software = &net.qps.run.system.software;
            !software.delay.is_empty() || !software.interval.is_empty()
        })
    }

    fn local_work(&mut self) -> Option<LocalCharge> {
        let picos = self.turn.with(|net, _| {
            let time = net.qps.ports.first().costs.local(Bytes(MANY));
            time.picos() * 1024 / MANY
        });
        Some(LocalCharge {
            owed: self.local.owed.clone(),
            picos,
        })
    }

    fn is_new_work(&mut self, kind: u64, class: u32) -> bool {
        self.turn
            .with(|net, _| net.qps.run.record.is_new_work((kind, class)))
    }

    fn keep_local_work(&mut self, row: [u64; 4]) {
        self.turn
            .with(|net, _| net.qps.run.record.keep_local_work(row));
    }

    fn store(&mut self, requests: u64, bytes: u64) -> Option<u64> {
        self.local.charge(&self.turn);
        let storage = self.turn.with(|net, _| net.qps.run.system.storage)?;
        // Ranks with earlier requests go first.
        self.turn.settle().ok();
        let now = self.turn.now();
        let end = self
            .turn
            .with(|net, _| net.storage.take(storage, now, requests, bytes));
        Some(end.div_ceil(1000))
    }

    fn time(&self) -> VirtualTime {
        self.local.charge(&self.turn);
        VirtualTime {
            now: self.turn.now(),
            waited: self.waited,
            worked: self.local.charged.get(),
            delayed: self.delayed,
        }
    }

    fn keeps_notes(&self) -> bool {
        self.turn.with(|net, _| net.qps.run.record.keeps_notes)
    }

    fn note(&mut self, note: Note) {
        let (rank, call) = (self.turn.rank(), self.call.as_ref());
        let call = call.map_or("", |call| call.call.name);
        self.turn
            .with(|net, clock| net.qps.run.record.keep_note(clock.of(rank), call, note));
    }
}
