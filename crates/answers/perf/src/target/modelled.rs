//! Both sides on a modelled machine in virtual time, on the two hosts that are furthest apart.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use device::{Device, Node};
use fabric::{Bytes, System};
use model::{Faults, MachineModel, ModelNode, Traffic};
use results::Console;
use sim::coroutines;

use super::Target;
use crate::measure::{Sample, measure};
use crate::pairs::added_up;
use crate::plan::PerfPlan;

/// A modelled machine with its faults.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The hardware of the machine.
    pub system: System,
    /// The faults of the machine.
    pub faults: Faults,
    /// The seed for everything random in the model.
    pub seed: u64,
}

/// The nanoseconds of virtual time without arrivals after which nothing is in flight: many times
/// the time of a message and of a requester's retry.
const QUIET: u64 = 1_000_000_000;
const STACK: usize = 256 << 10;

/// The text by which clients report to each other that they have reached a barrier of pairs.
const PAIR: &[u8] = b"pair";

/// One side of a pair. The first half of the ranks are clients, on one host; the others are their
/// servers, in the same order.
struct Modelled {
    node: ModelNode,
    rank: usize,
    pairs: usize,
    /// Texts of the other side that arrived while this side waited at a barrier.
    arrived: VecDeque<Vec<u8>>,
    /// The number of texts of other pairs that arrived while this pair waited for its other side.
    met: usize,
}

impl Modelled {
    fn other_side(&self) -> usize {
        (self.rank + self.pairs) % (2 * self.pairs)
    }

    /// Waits for a text from each of `count` other pairs.
    fn await_pairs(&mut self, count: usize) -> Result<()> {
        while self.met < count {
            match self.node.oob_recv()? {
                Some((from, words)) if from == self.other_side() => self.arrived.push_back(words),
                Some(_) => self.met += 1,
                None => self.idle(u64::MAX)?,
            }
        }
        self.met -= count;
        Ok(())
    }
}

impl Target for Modelled {
    fn is_client(&self) -> bool {
        self.rank < self.pairs
    }

    fn device(&mut self) -> &mut dyn Device {
        self.node.rail(0)
    }

    fn is_modelled(&self) -> bool {
        true
    }

    fn traffic(&mut self) -> Option<Traffic> {
        Some(self.node.turn().with(|net, _| net.traffic()))
    }

    fn clock(&mut self) -> u64 {
        self.node.turn().now()
    }

    fn sync_memory(&mut self) {
        self.node.sync_memory();
    }

    fn idle(&mut self, nanos: u64) -> Result<()> {
        self.node.wait(nanos).map_err(|why| match why {
            device::Error::Deadlock => anyhow!(Stuck),
            other => anyhow!(other),
        })
    }

    fn oob_send(&mut self, words: &str) -> Result<()> {
        Ok(self.node.oob_send(self.other_side(), words.as_bytes())?)
    }

    fn oob_recv(&mut self) -> Result<Option<String>> {
        if let Some(words) = self.arrived.pop_front() {
            return Ok(Some(String::from_utf8(words)?));
        }
        while let Some((from, words)) = self.node.oob_recv()? {
            if from == self.other_side() {
                return Ok(Some(String::from_utf8(words)?));
            }
            self.met += 1;
        }
        Ok(None)
    }

    /// All clients report to the first, which then lets them all continue.
    fn synchronise_pairs(&mut self) -> Result<()> {
        match self.rank {
            _ if self.pairs == 1 || !self.is_client() => Ok(()),
            0 => {
                self.await_pairs(self.pairs - 1)?;
                for other in 1..self.pairs {
                    self.node.oob_send(other, PAIR)?;
                }
                Ok(())
            }
            _ => {
                self.node.oob_send(0, PAIR)?;
                self.await_pairs(1)
            }
        }
    }

    fn quiet(&self) -> u64 {
        QUIET
    }
}

/// The error of a side that waits for a message that was lost.
#[derive(Debug)]
pub(crate) struct Stuck;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(
            "both sides wait and nothing is in flight: a message was lost, and this transport service does not retransmit",
        )
    }
}

impl std::error::Error for Stuck {}

/// Runs a plan and returns the clients' results, summed over all pairs.
pub fn run(
    machine: &Machine,
    plan: &PerfPlan,
    console: Rc<RefCell<Console>>,
) -> Result<Vec<Sample>> {
    plan.check()?;
    let Machine {
        mut system,
        faults,
        seed,
    } = *machine;
    if let Some(mtu) = plan.mtu {
        system = system.with_mtu(Bytes(mtu as u64));
    }
    let layout = coroutines::Plan {
        ranks: 2 * plan.pairs as u32,
        seed,
        stack: STACK,
    };
    let pairs = plan.pairs;
    let mut hosts = vec![0; pairs];
    hosts.extend(vec![system.nodes - 1; pairs]);
    let plan = plan.clone();
    let (ends, _) = coroutines::run(
        layout,
        move |memory| MachineModel::new(memory, &system, &hosts, faults),
        move |turn| {
            let rank = turn.rank() as usize;
            let mut target = Modelled {
                node: ModelNode::new(turn),
                rank,
                pairs,
                arrived: VecDeque::new(),
                met: 0,
            };
            measure(&mut target, &plan, &mut |_| {
                if rank == 0 {
                    console.borrow_mut().step();
                }
            })
        },
    )
    .context("cannot create the modelled machine")?;
    // The error of a side that waits in vain is a consequence; the other side's error is the cause.
    let (mut clients, mut failed) = (Vec::new(), Vec::new());
    for (rank, end) in ends.into_iter().enumerate() {
        match end {
            Err(why) => failed.push(Err(why)),
            Ok(samples) if rank < pairs => clients.push(Ok(samples)),
            Ok(_) => {}
        }
    }
    clients.extend(failed);
    added_up(clients, |why| why.is::<Stuck>())
}
