//! What goes wrong, as a plan: drawn from the clock's random numbers, so that the same seed fails in the same way.

use sim::Time;

use super::rank::What;
use super::{Clocked, NONE, Net};
use device::Placement;

const MICRO: Time = 1_000_000;

/// What goes wrong on a machine, and how patient its queue pairs are. Chances are in parts of a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faults {
    /// A packet is lost.
    pub loss: u32,
    /// A packet comes late, by up to `latest`. Those of one queue pair do not overtake each other.
    pub late: u32,
    pub latest: Time,
    /// The bytes of a message become visible in pieces and in any order, over up to so long, before its completion.
    pub scatter: Option<Time>,
    /// A message breaks its queue pair.
    pub breaks: u32,
    /// The most entries that a completion queue really holds.
    pub completions: u32,
    /// A port that is down for a time.
    pub outage: Option<Outage>,
    /// A host whose processor takes so many percent of the time that others take.
    pub slow: Option<(u32, u32)>,
    /// How long a requester waits for an acknowledgement.
    pub timeout: Time,
    /// How often it sends again before it gives up.
    pub retries: u32,
    /// How long it waits when the peer has no receive.
    pub rnr_wait: Time,
    /// How often; 7: without end (IBA 9.7.5.2.8).
    pub rnr_retries: u32,
    /// Its devices have no immediates, as those of iWARP.
    pub no_immediates: bool,
}

/// Everything from and to one port is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    pub host: u32,
    pub rail: u32,
    pub from: Time,
    pub until: Time,
}

impl Default for Faults {
    /// Nothing goes wrong. Timers as MPI libraries set them: 4.096 us by 2^14 for an acknowledgement, 7 retries, 0.64 ms
    /// for a receiver that is not ready, without end.
    fn default() -> Faults {
        Faults {
            loss: 0,
            late: 0,
            latest: 0,
            scatter: None,
            breaks: 0,
            completions: u32::MAX,
            outage: None,
            slow: None,
            timeout: (4_096 * MICRO / 1000) << 14,
            retries: 7,
            rnr_wait: 640 * MICRO,
            rnr_retries: 7,
            no_immediates: false,
        }
    }
}

impl Faults {
    /// Whether what was sent can get lost, so that acknowledgements matter beyond completions.
    pub(super) fn lose_packets(&self) -> bool {
        self.loss > 0 || self.outage.is_some()
    }

    pub(super) fn slowness(&self, host: u32) -> u32 {
        match self.slow {
            Some((slow, percent)) if slow == host => percent,
            _ => 100,
        }
    }

    pub(super) fn placement(&self) -> Placement {
        match self.scatter {
            Some(_) => Placement::Completion,
            None => Placement::Ordered,
        }
    }
}

impl Net {
    /// What becomes of a packet that would be there at a time: when it is, if at all.
    #[inline]
    pub(super) fn fate(
        &mut self,
        from: u32,
        to: u32,
        there: Time,
        clock: &mut Clocked,
    ) -> Option<Time> {
        if to == NONE {
            return None;
        }
        if self.is_within(from) {
            return Some(there);
        }
        let calm = self.faults.loss == 0 && self.faults.late == 0 && self.faults.outage.is_none();
        if calm {
            return Some(there);
        }
        self.rough_fate(from, to, there, clock)
    }

    #[cold]
    fn rough_fate(&mut self, from: u32, to: u32, there: Time, clock: &mut Clocked) -> Option<Time> {
        let Faults {
            loss,
            late,
            latest,
            outage,
            ..
        } = self.faults;
        let now = clock.now();
        let down = |q: u32| {
            let adapter = &self.adapters[self.qps[q as usize].adapter as usize];
            outage.is_some_and(|outage| {
                (outage.host, outage.rail) == (adapter.host, adapter.rail)
                    && (outage.from..outage.until).contains(&now)
            })
        };
        if down(from) || down(to) || clock.random.happens(loss) {
            return None;
        }
        let delay = match clock.random.happens(late) && latest > 0 {
            true => clock.random.below(latest),
            false => 0,
        };
        let qp = &mut self.qps[from as usize];
        qp.arrival = qp.arrival.max(there + delay);
        Some(qp.arrival)
    }

    /// Whether a message is one that breaks its queue pair.
    #[inline]
    pub(super) fn breaks(&mut self, clock: &mut Clocked) -> bool {
        self.faults.breaks > 0 && clock.random.happens(self.faults.breaks)
    }

    /// Says when bytes become visible: all at once, or here and there.
    #[inline]
    pub(super) fn announce_bytes(
        &mut self,
        rank: u32,
        at: Time,
        what: What,
        wakes: bool,
        clock: &mut Clocked,
    ) {
        match self.faults.scatter {
            None => self.announce(rank, at, what, wakes, clock),
            Some(over) => self.scatter(rank, at, what, wakes, over, clock),
        }
    }

    /// In pieces, each at some time before `at`: the completion comes later than any.
    #[cold]
    fn scatter(
        &mut self,
        rank: u32,
        at: Time,
        what: What,
        wakes: bool,
        over: Time,
        clock: &mut Clocked,
    ) {
        let What::Bytes {
            message,
            from,
            len,
            key,
            to,
        } = what
        else {
            return;
        };
        let earliest = clock.now().max(at.saturating_sub(over));
        let mut done = 0;
        while done < len {
            let left = u64::from(len - done);
            let size = (1 + clock.random.below(left.min(64))) as u32;
            let what = What::Bytes {
                message,
                from: from + done,
                len: size,
                key,
                to: to + u64::from(done),
            };
            let when = at - clock.random.below(at - earliest + 1);
            self.announce(rank, when, what, wakes, clock);
            done += size;
        }
    }
}
