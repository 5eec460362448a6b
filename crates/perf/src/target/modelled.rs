//! Both sides on a modelled machine in virtual time, on the two hosts that are furthest apart.

use std::cell::RefCell;
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
use crate::plan::PerfPlan;

/// A modelled machine with its faults.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The hardware.
    pub system: System,
    /// The faults.
    pub faults: Faults,
    /// The seed of everything random.
    pub seed: u64,
}

/// Nanoseconds of virtual time without arrivals after which nothing is in flight: many times the
/// time of a message and of a requester's retry.
const QUIET: u64 = 1_000_000_000;
const STACK: usize = 256 << 10;

struct Modelled {
    node: ModelNode,
    rank: usize,
}

impl Target for Modelled {
    fn is_client(&self) -> bool {
        self.rank == 0
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
        Ok(self.node.oob_send(1 - self.rank, words.as_bytes())?)
    }

    fn oob_recv(&mut self) -> Result<Option<String>> {
        let Some((_, words)) = self.node.oob_recv()? else {
            return Ok(None);
        };
        Ok(Some(String::from_utf8(words)?))
    }

    fn quiet(&self) -> u64 {
        QUIET
    }
}

/// The error of sides that wait in vain.
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

/// Runs a plan and returns the client's results.
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
        ranks: 2,
        seed,
        stack: STACK,
    };
    let hosts = [0, system.nodes - 1];
    let plan = plan.clone();
    let (ends, _) = coroutines::run(
        layout,
        move |memory| MachineModel::new(memory, &system, &hosts, faults),
        move |turn| {
            let rank = turn.rank() as usize;
            let mut target = Modelled {
                node: ModelNode::new(turn),
                rank,
            };
            measure(&mut target, &plan, &mut |_| {
                if rank == 0 {
                    console.borrow_mut().step();
                }
            })
        },
    )
    .context("cannot create the modelled machine")?;
    let mut ends = ends.into_iter();
    let (client, server) = (ends.next(), ends.next());
    match (client, server) {
        (Some(Ok(samples)), Some(Ok(_))) => Ok(samples),
        (Some(Err(why)), Some(Ok(_))) | (Some(Ok(_)), Some(Err(why))) => Err(why),
        // A side that waits in vain is a consequence; the other side's error is the cause.
        (Some(Err(one)), Some(Err(other))) => Err(match one.is::<Stuck>() {
            true => other,
            false => one,
        }),
        _ => Err(anyhow!("a side of the benchmark returned no result")),
    }
}
