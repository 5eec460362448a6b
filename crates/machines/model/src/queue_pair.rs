//! Queue pairs: their states (IBA 10.3.1) and their progress.

use sim::Time;

use super::receives::Queue;
use super::{Clocked, IntraHost, MachineModel, NONE};
use device::check;
use device::{Address, Ending, Error, Qp, QpWanted, Result, State, Transport};
use fabric::Rail;

/// The most work requests of a queue.
pub(super) const DEPTH: usize = 1 << 15;

/// The packets that an HCA reads from memory for a queue pair: its own requests, or responses to
/// its peer.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// Part of the adapter's round.
    pub joined: bool,
    pub next: u32,
}

impl Stream {
    /// A stream that is in no round.
    const OUTSIDE: Stream = Stream {
        joined: false,
        next: NONE,
    };
}

pub(super) struct QueuePair {
    pub rank: u32,
    pub adapter: u32,
    pub alive: bool,
    pub transport: Transport,
    pub state: State,
    pub send_cq: u32,
    pub receive_cq: u32,
    /// The number of the queue that its receives are taken from.
    pub receives: u32,
    pub shared: bool,
    pub inline: u32,
    /// The largest payload of its packets: the smaller of both ports'.
    pub mtu: u32,
    pub sends: u32,
    pub peer: u32,
    /// The latency to the peer and through the peer's chip.
    pub latency: Time,
    pub streams: [Stream; 2],
    /// The time before which no further packet is read, where the rate of a queue pair is bounded.
    pub paced: Time,

    // Requester.
    /// The number of its connections so far.
    pub life: u32,
    /// The posted, incomplete messages: the first and the last.
    pub first: u32,
    pub last: u32,
    /// The first message that the engine has not taken.
    pub to_begin: u32,
    /// The first message that has not left.
    pub to_send: u32,
    /// The number of requests that the HCA knows of and the engine has not taken.
    pub rung: u32,
    /// Where requests are processed one by one: the HCA is busy with a request, which is it, and
    /// the number that wait in memory.
    pub occupied: bool,
    pub under_way: u32,
    pub in_memory: u32,
    /// The next message's number, and the number of freed places: a place in the queue is free once
    /// the completion that covers it has been taken.
    pub posted: u32,
    pub freed: u32,
    pub last_doorbell: Time,
    pub engine: Time,
    pub begin_asked: bool,
    /// The chip is reserved for the next request.
    pub granted: bool,
    /// The number of requests whose payloads the engine fetches and that have not left.
    pub fetching: u32,
    /// The bytes of requests that the engine has taken and that have not left.
    pub ahead: u64,
    /// The number of reads and atomics without a response.
    pub reads: u32,
    /// A request has failed locally: no later one is started.
    pub broken: bool,
    /// In a receiver-not-ready wait.
    pub waits: bool,
    pub retries: u32,
    pub rnr_retries: u32,
    /// The time of the last acknowledgement or response.
    pub progress: Time,
    /// A timeout is scheduled.
    pub timing: bool,
    /// Its requests are probes.
    pub probing: bool,

    // Responder.
    /// The life of the peer whose packets it accepts, and the last one whose packets it drops:
    /// they belong to a connection that has ended.
    pub peer_life: u32,
    pub past_life: u32,
    /// The expected message, and its expected packet.
    pub expected: u32,
    pub expected_packet: u32,
    /// The missing packet has been reported to the peer.
    pub complained: bool,
    /// The receive of the arriving message.
    pub receive: u32,
    /// An incomplete unreliable message: its rest is dropped.
    pub dropping: bool,
    /// The time when the last arrived bytes become visible.
    pub visible: Time,
    /// The requests that wait for a response: the first and the last.
    pub answer: u32,
    pub last_answer: u32,
    /// The arrival of the last packet: no packet overtakes another.
    pub arrival: Time,
}

impl MachineModel {
    /// Checks the limits of a queue pair to create.
    fn check_limits(&self, rail: &Rail, wanted: &QpWanted) -> Result<()> {
        let limit = rail.hca.inline.0;
        if wanted.inline as u64 > limit {
            return Err(Error::Invalid(format!(
                "{} bytes inline; this HCA takes at most {limit}",
                wanted.inline
            )));
        }
        for (what, depth) in [("sends", wanted.sends), ("receives", wanted.receives)] {
            if depth > DEPTH {
                return Err(Error::Invalid(format!(
                    "{depth} {what}; a queue holds at most {DEPTH}"
                )));
            }
        }
        Ok(())
    }

    pub(super) fn create_qp(&mut self, rank: u32, rail: u32, wanted: &QpWanted) -> Result<Qp> {
        let host = self.ranks[rank as usize].host;
        let adapter = self.adapter(host, rail);
        let own = *self.timing(adapter).costs.rail();
        self.check_limits(&own, wanted)?;
        check::shares(wanted.transport, wanted.srq.is_some()).map_err(Error::Invalid)?;
        self.keep_in_step_with(wanted.transport);
        for cq in [wanted.send_cq, wanted.receive_cq] {
            self.own_cq(rank, rail, cq)?;
        }
        let receives = match wanted.srq {
            Some(srq) => self.own_srq(rank, rail, srq)?,
            None => self.receives.create(Queue {
                rank,
                rail,
                depth: wanted.receives as u32,
                shared: false,
            }),
        };
        self.qps.push(QueuePair {
            rank,
            adapter,
            alive: true,
            transport: wanted.transport,
            state: State::Reset,
            send_cq: wanted.send_cq.0,
            receive_cq: wanted.receive_cq.0,
            receives,
            shared: wanted.srq.is_some(),
            inline: wanted.inline as u32,
            mtu: own.hca.mtu.0 as u32,
            sends: wanted.sends as u32,
            peer: NONE,
            latency: 0,
            streams: [Stream::OUTSIDE; 2],
            paced: 0,
            life: 0,
            first: NONE,
            last: NONE,
            to_begin: NONE,
            to_send: NONE,
            rung: 0,
            occupied: false,
            under_way: NONE,
            in_memory: 0,
            posted: 0,
            freed: 0,
            last_doorbell: 0,
            engine: 0,
            begin_asked: false,
            granted: false,
            fetching: 0,
            ahead: 0,
            reads: 0,
            broken: false,
            waits: false,
            retries: 0,
            rnr_retries: 0,
            progress: 0,
            timing: false,
            probing: false,
            peer_life: 0,
            past_life: 0,
            expected: 0,
            expected_packet: 0,
            complained: false,
            receive: NONE,
            dropping: false,
            visible: 0,
            answer: NONE,
            last_answer: NONE,
            arrival: 0,
        });
        let number = self.qps.len() as u32 - 1;
        self.ranks[rank as usize].qps.push(number);
        Ok(Qp(number))
    }

    /// The number of a queue pair, if it belongs to this device.
    pub(super) fn own_qp(&self, rank: u32, rail: u32, qp: Qp) -> Result<u32> {
        let on = |adapter: u32| self.adapters[adapter as usize].rail;
        match self.qps.get(qp.0 as usize) {
            Some(own) if own.alive && own.rank == rank && on(own.adapter) == rail => Ok(qp.0),
            _ => Err(Error::Invalid(format!(
                "queue pair {} is not of this device",
                qp.0
            ))),
        }
    }

    /// The number of the receive queue of a queue pair, if it has its own.
    pub(super) fn own_receives(&self, rank: u32, rail: u32, qp: Qp) -> Result<u32> {
        let q = self.own_qp(rank, rail, qp)?;
        let own = &self.qps[q as usize];
        match own.shared {
            true => Err(Error::Invalid(format!(
                "queue pair {q} takes its receives from a shared queue"
            ))),
            false => Ok(own.receives),
        }
    }

    /// The port's LID and the queue pair's number.
    pub(super) fn address(&self, qp: u32) -> Address {
        let own = &self.adapters[self.qps[qp as usize].adapter as usize];
        Address {
            port: u128::from(self.adapter(own.host, own.rail)) + 1,
            qp,
        }
    }

    pub(super) fn connect(&mut self, q: u32, peer: Option<Address>) -> Result<()> {
        let qp = &self.qps[q as usize];
        check::connect(qp.transport, qp.state, peer)
            .map_err(|why| Error::Invalid(format!("queue pair {q}: {why}")))?;
        // As on a real port, the peer's existence is not checked; packets to nobody are lost.
        let number = peer.and_then(|peer| self.reach(q, peer)).unwrap_or(NONE);
        if number != NONE && self.stays_within(q, number) {
            let own = &self.adapters[self.qps[q as usize].adapter as usize];
            self.qps[q as usize].adapter = self.within(own.host, own.rail);
        }
        if number != NONE && self.share_a_host(q, number) {
            // No cable lies between them.
            self.keep_in_step();
        }
        let (mut latency, mut mtu) = (0, self.port_mtu(q));
        if number != NONE {
            latency = self.latency(q, number);
            mtu = mtu.min(self.port_mtu(number));
        }
        let qp = &mut self.qps[q as usize];
        (qp.peer, qp.mtu) = (number, mtu);
        qp.latency = latency;
        qp.life += 1;
        qp.state = State::Rts;
        Ok(())
    }

    /// The number of the queue pair at an address, if packets of queue pair `q` reach its port.
    pub(super) fn reach(&self, q: u32, address: Address) -> Option<u32> {
        self.qps.get(address.qp as usize)?;
        let subnet = |q: u32| {
            let adapter = &self.adapters[self.qps[q as usize].adapter as usize];
            let own = self.adapter(adapter.host, adapter.rail);
            let timing = self.adapters[own as usize].timing;
            self.timings[timing as usize].costs.rail().subnet
        };
        let reached = subnet(q) == subnet(address.qp);
        (reached && self.address(address.qp) == address).then_some(address.qp)
    }

    /// The largest payload of a packet of a queue pair's port.
    fn port_mtu(&mut self, q: u32) -> u32 {
        let adapter = self.qps[q as usize].adapter;
        self.timing(adapter).mtu
    }

    fn share_a_host(&self, from: u32, to: u32) -> bool {
        let [from, to] =
            [from, to].map(|q| self.adapters[self.qps[q as usize].adapter as usize].host);
        from == to
    }

    /// True if two queue pairs reach each other through their host's memory.
    fn stays_within(&self, from: u32, to: u32) -> bool {
        let [from, to] = [from, to].map(|q| &self.adapters[self.qps[q as usize].adapter as usize]);
        let same = (from.host, from.rail) == (to.host, to.rail);
        self.intra_host == IntraHost::Memory && same
    }

    /// True if this queue pair is connected through its host's memory.
    pub(super) fn is_within(&self, q: u32) -> bool {
        self.adapters[self.qps[q as usize].adapter as usize].within
    }

    /// The latency from one queue pair's port to the other's, and through its chip.
    pub(super) fn latency(&mut self, from: u32, to: u32) -> Time {
        let (from, to) = (
            self.qps[from as usize].adapter,
            self.qps[to as usize].adapter,
        );
        if self.adapters[from as usize].within {
            return self.timing_within().costs.handover().picos();
        }
        let receive = self.timing(to).receive;
        if from == to {
            // The HCA loops the packet back.
            return receive;
        }
        let (here, there) = (
            self.adapters[from as usize].host,
            self.adapters[to as usize].host,
        );
        // Two HCAs of one host are connected by the switch above them, if there is one. The cables
        // at both ends may differ.
        let flights = [from, to].map(|adapter| {
            let rail = self.timings[self.adapters[adapter as usize].timing as usize]
                .costs
                .rail();
            let least = u32::from(rail.switch.ports > 0);
            let hops = self.system.hops_on(rail, here, there).max(least);
            rail.flight(hops).picos()
        });
        (flights[0] + flights[1]) / 2 + receive
    }

    pub(super) fn modify(&mut self, q: u32, to: Ending, clock: &mut Clocked) -> Result<()> {
        match to {
            Ending::Error if self.qps[q as usize].state == State::Reset => {
                self.qps[q as usize].state = State::Error;
                self.flush_receives(q, clock.now(), clock);
            }
            Ending::Error => self.break_qp(q, clock),
            Ending::Reset => self.reset_qp(q),
        }
        Ok(())
    }

    /// Ends a connection for its responder: packets of the peer's life that it has accepted are
    /// dropped from now on, also after a reset and a new connection.
    pub(super) fn end_life(&mut self, q: u32) {
        let qp = &mut self.qps[q as usize];
        qp.past_life = qp.peer_life;
    }

    pub(super) fn set_probing(&mut self, q: u32, probing: bool) {
        let before = std::mem::replace(&mut self.qps[q as usize].probing, probing);
        self.probes = self.probes + u32::from(probing) - u32::from(before);
    }

    /// True if a queue pair in the state ERROR takes no receive any more, and all bytes that have
    /// arrived for it are visible.
    pub(super) fn is_drained(&self, q: u32, now: Time) -> bool {
        let qp = &self.qps[q as usize];
        qp.state == State::Reset || qp.state == State::Error && qp.visible <= now
    }

    pub(super) fn destroy_qp(&mut self, q: u32) {
        self.reset_qp(q);
        self.set_probing(q, false);
        let qp = &mut self.qps[q as usize];
        qp.alive = false;
        let (receives, shared) = (qp.receives, qp.shared);
        if !shared {
            self.receives.destroy(receives);
        }
    }

    /// Forgets posted requests; packets that have left still arrive.
    fn reset_qp(&mut self, q: u32) {
        if self.qps[q as usize].state == State::Rts {
            self.end_life(q);
        }
        let receive = std::mem::replace(&mut self.qps[q as usize].receive, NONE);
        if receive != NONE {
            self.receives.free(receive);
        }
        let (receives, shared) = (self.qps[q as usize].receives, self.qps[q as usize].shared);
        if !shared {
            self.receives.clear(receives);
        }
        while let Some(message) = self.take_first(q) {
            self.messages.unlist(message);
        }
        self.forget_answers(q);
        let own = &self.adapters[self.qps[q as usize].adapter as usize];
        let home = self.adapter(own.host, own.rail);
        let qp = &mut self.qps[q as usize];
        qp.adapter = home;
        qp.state = State::Reset;
        qp.peer = NONE;
        (qp.to_begin, qp.to_send) = (NONE, NONE);
        (qp.rung, qp.posted, qp.freed) = (0, 0, 0);
        (qp.occupied, qp.under_way, qp.in_memory) = (false, NONE, 0);
        (qp.ahead, qp.fetching, qp.reads) = (0, 0, 0);
        (qp.waits, qp.broken) = (false, false);
        // The timer of this life means nothing to the next.
        qp.timing = false;
        (qp.retries, qp.rnr_retries) = (0, 0);
        (qp.expected, qp.expected_packet) = (0, 0);
        (qp.complained, qp.dropping) = (false, false);
    }

    /// Removes the oldest message from its queue pair's list.
    pub(super) fn take_first(&mut self, q: u32) -> Option<u32> {
        let qp = &mut self.qps[q as usize];
        let first = qp.first;
        if first == NONE {
            return None;
        }
        qp.first = self.messages[first].next;
        if qp.first == NONE {
            qp.last = NONE;
        }
        if qp.to_begin == first {
            qp.to_begin = qp.first;
        }
        if qp.to_send == first {
            qp.to_send = qp.first;
        }
        Some(first)
    }
}
