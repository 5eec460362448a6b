//! A rank's place in a modelled machine.

use std::rc::Rc;

use fabric::{Bytes, Costs, Nanos};
use sim::{Deadlock, Time, Turn};

use super::record::{Act, Doing};
use super::{ModelDevice, Net};
use device::{Accounting, Device, Effort, Error, Node, Result};

/// A look that finds nothing, a reading of the clock, a call that looks at little: some dozens of instructions on data that
/// is in the processor's cache. Assumed; on hosts since Nehalem such a call takes 10 to 30 ns.
pub const CALL: Time = 20_000;

/// One way of the slow path: TCP over a cluster's Ethernet for management, some 30 us. Assumed.
pub const TELL: Time = 30_000_000;

/// What an effort takes on a machine that does nothing else.
pub fn effort(costs: &Costs, effort: Effort) -> Nanos {
    let software = &costs.system().software;
    match effort {
        Effort::Send => software.send,
        Effort::Receive => software.receive,
        Effort::Control => software.control,
        Effort::Call => Nanos::from_picos(CALL),
        Effort::Copy(len) => {
            let parts = (0..len).step_by(SHARE).map(|from| {
                let part = Bytes((len - from).min(SHARE) as u64);
                let time = costs.copy(part);
                match part.0 <= SHORT as u64 {
                    true => time,
                    false => time.max(costs.memory_of_copy(part)),
                }
            });
            parts.sum()
        }
    }
}

/// A copy longer than this is shared out with whoever else uses the host's memory, so many bytes at a time.
const SHARE: usize = 16 << 10;
/// Shorter copies are over before others matter.
const SHORT: usize = 1 << 10;

pub struct ModelNode {
    turn: Rc<Turn<Net>>,
    rails: Vec<ModelDevice>,
    /// The call that the program is in, and since when, where a record is kept.
    call: Option<(&'static str, Time)>,
}

impl ModelNode {
    pub fn new(turn: Turn<Net>) -> ModelNode {
        let turn = Rc::new(turn);
        let rails = turn.with(|net, _| net.rails);
        let rails = (0..rails)
            .map(|rail| ModelDevice::new(turn.clone(), rail))
            .collect();
        ModelNode {
            turn,
            rails,
            call: None,
        }
    }

    pub fn turn(&self) -> &Turn<Net> {
        &self.turn
    }
}

/// A rank's copy: as fast as the processor copies, and as the memory lets it beside all others who use it.
pub(super) fn copy(turn: &Turn<Net>, len: usize) {
    let mut left = len;
    while left > 0 {
        let part = left.min(SHARE);
        left -= part;
        let rank = turn.rank();
        let (before, time) = turn.with(|net, _| {
            let bytes = Bytes(part as u64);
            let costs = &net.timings[0].costs;
            let (own, traffic) = (costs.copy(bytes), costs.memory_of_copy(bytes));
            let host = &mut net.hosts[net.ranks[rank as usize].host as usize];
            let before = host.moved;
            host.moved += traffic.picos();
            (before, net.cpu(rank, own.picos()))
        });
        keep_busy(turn, time, Act::Copy.alone(part));
        if part <= SHORT {
            continue;
        }
        turn.settle().ok();
        // All that moved meanwhile shares one memory.
        let busy =
            turn.with(|net, _| net.hosts[net.ranks[rank as usize].host as usize].moved - before);
        keep_busy(turn, busy.saturating_sub(time), Act::Memory.alone(0));
    }
}

impl Net {
    /// What a rank's processor takes for work that takes others so long.
    #[inline]
    pub(super) fn cpu(&self, rank: u32, time: Time) -> Time {
        match self.ranks[rank as usize].slowness {
            100 => time,
            percent => time * u64::from(percent) / 100,
        }
    }
}

// SAFETY: a rank of a modelled machine has one thread at a time inside it (the most that is granted there is
// MPI_THREAD_SERIALIZED), so its node is never used by two, nor handed on while it is in use; coroutines stay in the thread
// that runs them all.
unsafe impl Send for ModelNode {}

impl Node for ModelNode {
    fn is_virtual(&self) -> bool {
        true
    }

    fn rails(&self) -> usize {
        self.rails.len()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        &mut self.rails[rail]
    }

    fn now(&mut self) -> u64 {
        let now = self.turn.now();
        let rank = self.turn.rank();
        let time = self.turn.with(|net, _| net.cpu(rank, CALL));
        keep_busy(&self.turn, time, Act::Clock.alone(0));
        now / 1000
    }

    fn sync_memory(&mut self) {
        self.turn.settle().ok();
        let rank = self.turn.rank();
        let (time, act) = self.turn.with(|net, _| {
            let seen = std::mem::take(&mut net.ranks[rank as usize].written);
            let (time, act) = match seen {
                true => (net.timings[0].poll, Act::Notice),
                false => (CALL, Act::Look),
            };
            (net.cpu(rank, time), act)
        });
        keep_busy(&self.turn, time, act.alone(0));
    }

    fn accounting(&mut self) -> Option<&mut dyn Accounting> {
        Some(self)
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        let turn = &self.turn;
        let until = nanos
            .checked_mul(1000)
            .and_then(|time| time.checked_add(turn.now()));
        turn.settle().map_err(deadlock)?;
        let rank = turn.rank() as usize;
        let (fresh, next) = turn.with(|net, _| {
            let own = &mut net.ranks[rank];
            (std::mem::take(&mut own.fresh), own.next_news())
        });
        if fresh {
            return Ok(());
        }
        let until = match (until, next) {
            (Some(until), Some(next)) => Some(until.min(next)),
            (until, next) => until.or(next),
        };
        let since = turn.now();
        let answer = turn.wait(until).map_err(deadlock);
        turn.with(|net, clock| {
            net.ranks[rank].fresh = false;
            let rank = turn.rank();
            net.note_rank(rank, since, clock.of(rank) - since, Act::Wait.alone(0));
        });
        if answer.is_err() {
            // It will not come back from this call.
            self.leave();
        }
        answer
    }

    fn oob_send(&mut self, peer: usize, words: &[u8]) -> Result<()> {
        self.turn.settle().map_err(deadlock)?;
        let from = self.turn.rank();
        self.turn.with(|net, clock| {
            let at = clock.of(from) + TELL;
            net.oob_send(from, peer, words, at, clock)
        })
    }

    fn oob_recv(&mut self) -> Result<Option<(usize, Vec<u8>)>> {
        self.turn.settle().map_err(deadlock)?;
        let rank = self.turn.rank();
        let (word, time) = self
            .turn
            .with(|net, _| (net.oob_recv(rank), net.cpu(rank, CALL)));
        keep_busy(&self.turn, time, Act::Listen.alone(0));
        Ok(word)
    }
}

impl Accounting for ModelNode {
    fn charge(&mut self, effort: Effort) {
        let rank = self.turn.rank();
        let act = match effort {
            Effort::Send => Act::Send,
            Effort::Receive => Act::Receive,
            Effort::Control => Act::Control,
            Effort::Call => Act::Short,
            Effort::Copy(len) => return copy(&self.turn, len),
        };
        let time = self.turn.with(|net, _| {
            let time = self::effort(&net.timings[0].costs, effort);
            net.cpu(rank, time.picos())
        });
        keep_busy(&self.turn, time, act.alone(0));
    }

    fn enter(&mut self, call: &'static str, computed: u64) {
        let rank = self.turn.rank();
        let time = self.turn.with(|net, _| {
            net.keep_computed(rank, call, computed);
            net.cpu(rank, computed.saturating_mul(1000))
        });
        keep_busy(&self.turn, time, Act::Compute.alone(0));
        self.call = Some((call, self.turn.now()));
    }

    fn leave(&mut self) {
        if let Some((call, since)) = self.call.take() {
            let rank = self.turn.rank();
            self.turn.with(|net, clock| {
                if net.is_recording() {
                    net.note_call(rank, since, clock.of(rank), call);
                }
            });
        }
    }
}

impl Drop for ModelNode {
    fn drop(&mut self) {
        self.leave();
        let rank = self.turn.rank();
        self.turn.with(|net, _| net.leave(rank));
    }
}

/// A rank's processor is busy.
pub(super) fn keep_busy(turn: &Turn<Net>, time: Time, doing: Doing) {
    turn.with(|net, clock| net.note_rank(turn.rank(), clock.of(turn.rank()), time, doing));
    turn.spend(time);
}

pub(super) fn deadlock(_: Deadlock) -> Error {
    Error::Deadlock
}
