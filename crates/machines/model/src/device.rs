//! One rail of a modelled machine, as the device of a rank.

use std::rc::Rc;

use sim::Turn;

use super::connections;
use super::efforts::CALL;
use super::event::Clocked;
use super::machine::MachineModel;
use super::processor::{LocalSum, copy, deadlock, keep_busy};
use super::queue_pair::LONGEST;
use super::requesters::Requesters;
use super::span::Activity;
use device::{
    Access, Address, Attributes, Completion, Cq, Device, Ending, LinkLayer, Qp, QpWanted,
    ReceiveQueue, Region, Result, Slice, Srq, State, Work,
};

/// The device of a rank on one rail of a modelled machine.
pub struct ModelDevice {
    turn: Rc<Turn<MachineModel>>,
    /// The work of the rank on its own memory, which is charged before each use of the device.
    local: Rc<LocalSum>,
    rail: u32,
    attributes: Attributes,
    /// The rank whose queue pairs, memory and completions the device uses.
    owner: u32,
    /// True while the HCA itself makes the posted requests, by cutting a long segment (LSO).
    cuts: bool,
}

impl ModelDevice {
    pub(super) fn new(turn: Rc<Turn<MachineModel>>, local: Rc<LocalSum>, rail: u32) -> ModelDevice {
        let attributes = turn.with(|net, _| {
            let (ranks, ports) = (&net.qps.ranks, &mut net.qps.ports);
            let faults = &net.qps.run.faults;
            let adapter = ports.adapter(ranks[turn.rank()].host, rail);
            let card = ports.card(adapter);
            let domain = ports.adapters[adapter as usize].domain;
            let timing = ports.timing(adapter);
            let (bandwidth, latency, own) =
                (timing.bandwidth, timing.latency, *timing.costs.rail());
            let request = timing.request;
            Attributes {
                name: format!("modelled rail {rail}"),
                mtu: own.hca.mtu.0 as usize,
                inline: own.hca.inline.0 as usize,
                longest: LONGEST,
                placement: faults.placement(),
                immediates: !faults.no_immediates,
                datagrams: !own.hca.polled,
                answered: true,
                by_processor: false,
                polled: own.hca.polled,
                resets: true,
                link_layer: match own.hca.polled {
                    true => LinkLayer::Internet,
                    false => LinkLayer::InfiniBand,
                },
                subnet: own.subnet.into(),
                bandwidth,
                latency_ns: latency.div_ceil(1000),
                request,
                card,
                domain: domain as usize,
            }
        });
        ModelDevice {
            owner: turn.rank(),
            cuts: false,
            turn,
            local,
            rail,
            attributes,
        }
    }

    /// Makes the device use the queue pairs, memory and completions of rank `owner`, while this
    /// rank's processor does the work: both run the kernel of one host, in one process.
    pub fn share(&mut self, owner: u32) {
        self.owner = owner;
    }

    /// Sets whether posts take no processor time: the HCA itself cuts these requests from a long
    /// segment that it was given (LSO).
    pub fn set_cuts(&mut self, cuts: bool) {
        self.cuts = cuts;
    }

    /// Accesses the machine in the order of virtual time: everything earlier goes first.
    fn ordered<R>(
        &self,
        then: impl FnOnce(&mut MachineModel, u32, &mut Clocked) -> Result<R>,
    ) -> Result<R> {
        self.local.charge(&self.turn);
        self.turn.settle().map_err(deadlock)?;
        self.turn.with(|net, clock| then(net, self.owner, clock))
    }

    /// Accesses state of this rank alone that no packet refers to yet, so nothing else goes first.
    fn own<R>(
        &self,
        then: impl FnOnce(&mut MachineModel, u32, &mut Clocked) -> Result<R>,
    ) -> Result<R> {
        self.local.charge(&self.turn);
        self.turn.stay().map_err(deadlock)?;
        self.turn.with(|net, clock| then(net, self.owner, clock))
    }
}

impl Device for ModelDevice {
    fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    unsafe fn register(&mut self, address: *mut u8, len: usize, access: Access) -> Result<Region> {
        let (region, time) = self.own(|net, rank, _| {
            let place = (rank, net.domain(rank, self.rail));
            let (ranks, ports) = (&mut net.qps.ranks, &net.qps.ports);
            let region = ranks
                .regions
                .register(place, address as u64, len as u64, access)?;
            let time = ranks.pin(ports.first(), place, len as u64);
            let is_free = ports.free_start.is_wanted;
            Ok((region, if is_free { 0 } else { time }))
        })?;
        if time > 0 {
            keep_busy(&self.turn, time, Activity::Register.alone(len));
        }
        Ok(region)
    }

    fn deregister(&mut self, region: Region) -> Result<()> {
        self.ordered(|net, rank, _| {
            let place = (rank, net.domain(rank, self.rail));
            let (ranks, ports) = (&mut net.qps.ranks, &net.qps.ports);
            let len = ranks.regions.deregister(place, region.lkey)?;
            ranks.unpin(ports.first(), place, len);
            Ok(())
        })
    }

    fn create_cq(&mut self, depth: usize) -> Result<Cq> {
        self.own(|net, rank, _| {
            let most = net.qps.run.faults.completions;
            net.qps.ranks.cqs.create((rank, self.rail), depth, most)
        })
    }

    fn create_srq(&mut self, depth: usize) -> Result<Srq> {
        self.own(|net, rank, _| net.qps.receives.create_shared((rank, self.rail), depth))
    }

    fn create_qp(&mut self, wanted: &QpWanted) -> Result<Qp> {
        self.own(|net, rank, _| net.create_qp((rank, self.rail), wanted))
    }

    fn destroy_qp(&mut self, qp: Qp) -> Result<()> {
        self.ordered(|net, rank, _| {
            let q = net.qps.own((rank, self.rail), qp)?;
            net.destroy_qp(q);
            Ok(())
        })
    }

    fn address(&self, qp: Qp) -> Result<Address> {
        let rank = self.turn.rank();
        self.turn.with(|net, _| {
            let q = net.qps.own((rank, self.rail), qp)?;
            Ok(connections::address(&net.qps, q))
        })
    }

    fn connect(&mut self, qp: Qp, peer: Option<Address>) -> Result<()> {
        self.ordered(|net, rank, _| {
            let q = net.qps.own((rank, self.rail), qp)?;
            connections::connect(&mut net.qps, q, peer)
        })
    }

    fn state(&self, qp: Qp) -> Result<State> {
        self.ordered(|net, rank, _| {
            let q = net.qps.own((rank, self.rail), qp)?;
            Ok(net.qps[q].state)
        })
    }

    fn modify(&mut self, qp: Qp, to: Ending) -> Result<()> {
        self.ordered(|net, rank, clock| {
            let q = net.qps.own((rank, self.rail), qp)?;
            net.modify(q, to, clock);
            Ok(())
        })
    }

    fn is_drained(&mut self, qp: Qp) -> Result<bool> {
        self.ordered(|net, rank, clock| {
            let q = net.qps.own((rank, self.rail), qp)?;
            Ok(net.qps[q].is_drained(clock.of(rank)))
        })
    }

    fn set_probing(&mut self, qp: Qp, probing: bool) -> Result<()> {
        self.ordered(|net, rank, _| {
            let q = net.qps.own((rank, self.rail), qp)?;
            net.qps.run.set_probing(q, probing);
            Ok(())
        })
    }

    unsafe fn post(&mut self, qp: Qp, work: &Work) -> Result<()> {
        self.local.charge(&self.turn);
        let rank = self.turn.rank();
        let (q, within, is_broken) = self.turn.with(|net, _| {
            let q = net.qps.own((self.owner, self.rail), qp)?;
            let is_broken = net.qps[q].state == State::Error;
            Ok((q, net.qps.is_within(q), is_broken))
        })?;
        if is_broken {
            // The completion of the flushed request is written over a bus that other ranks use too.
            self.turn.catch_up().map_err(deadlock)?;
        }
        if within {
            // No HCA is involved: this rank copies its writes and reads itself.
            let bytes = work.local.iter().map(|slice| slice.len as usize).sum();
            copy(&self.turn, bytes);
        }
        // The post changes only this rank's own queue, and the doorbell is an event, so no other
        // rank needs to go first.
        let (at, message) = self.turn.with(|net, clock| {
            let (ranks, timing) = (&mut net.qps.ranks, net.qps.ports.first());
            let mut time = match within {
                true => CALL,
                false => timing.post,
            };
            if std::mem::replace(&mut ranks[rank].rail, self.rail) != self.rail {
                time += timing.rail_switch;
            }
            if self.cuts {
                time = 0;
            }
            let at = clock.of(rank) + ranks.cpu(rank, time);
            let (senders, qps) = (&mut net.senders, &mut net.qps);
            // SAFETY: the caller promises that the slices are its memory.
            let message = unsafe { Requesters::post(senders, qps, q, work, at, clock) }?;
            Ok((at, message))
        })?;
        let doing = Activity::Post.packet(0, message, 0);
        keep_busy(&self.turn, at - self.turn.now(), doing);
        Ok(())
    }

    unsafe fn post_receive(&mut self, queue: ReceiveQueue, id: u64, into: &[Slice]) -> Result<()> {
        let rail = self.rail;
        let post = |net: &mut MachineModel, rank, clock: &mut Clocked| {
            let (queue, of) = match queue {
                ReceiveQueue::Own(qp) => (net.qps.own_receives((rank, rail), qp)?, Some(qp.0)),
                ReceiveQueue::Shared(srq) => {
                    let queue = net.qps.receives.own_shared((rank, rail), srq)?;
                    (queue, None)
                }
            };
            net.qps.post_receive(queue, of, (id, into), clock)?;
            let post = net.qps.ports.first().post;
            Ok(net.qps.ranks.cpu(rank, post))
        };
        // No packet arrives before the queue pair is connected.
        let is_unused = match queue {
            ReceiveQueue::Own(qp) => {
                let state = |net: &mut MachineModel| net.qps.get(qp.0).map(|qp| qp.state);
                self.turn.with(|net, _| state(net)) == Some(State::Reset)
            }
            ReceiveQueue::Shared(_) => false,
        };
        let time = match is_unused {
            true => self.own(post)?,
            false => self.ordered(post)?,
        };
        keep_busy(&self.turn, time, Activity::PostReceive.alone(0));
        Ok(())
    }

    fn poll(&mut self, cq: Cq, into: &mut [Completion]) -> Result<usize> {
        let rail = self.rail;
        self.local.charge(&self.turn);
        self.turn.observe().map_err(deadlock)?;
        let rank = self.owner;
        let (count, time, activity) = self.turn.with(|net, _| {
            let cq = net.qps.ranks.cqs.own((rank, rail), cq)?;
            let count = net.qps.poll(cq, into)?;
            let (time, activity) = match count {
                0 => (CALL, Activity::Look),
                count => {
                    let poll = net.qps.ports.first().poll;
                    (poll * count as u64, Activity::Notice)
                }
            };
            Ok((count, net.qps.ranks.cpu(rank, time), activity))
        })?;
        keep_busy(&self.turn, time, activity.alone(0));
        Ok(count)
    }
}
