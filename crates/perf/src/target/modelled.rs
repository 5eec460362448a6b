//! Both ends on a modelled machine, in virtual time: the hosts that are furthest apart.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use anyhow::{Context, Result, anyhow};
use device::{Device, Node};
use fabric::{Bytes, System};
use model::{Faults, MachineModel, ModelNode, Traffic};
use results::Console;
use sim::coroutines;

use super::Place;
use crate::measure::{Sample, measure};
use crate::plan::Plan;

/// A machine, and what goes wrong on it.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub system: System,
    pub faults: Faults,
    pub seed: u64,
}

/// Virtual time without anything after which nothing is on its way: many times what a message takes, and what a requester
/// waits before it sends again.
const QUIET: u64 = 1_000_000_000;
const STACK: usize = 256 << 10;

struct Modelled {
    node: ModelNode,
    rank: usize,
}

impl Place for Modelled {
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

#[derive(Debug)]
struct Stuck;

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(
            "both ends wait, and nothing is on its way: a message was lost, and this transport sends none again",
        )
    }
}

impl std::error::Error for Stuck {}

/// Runs a plan between two hosts.
pub fn run(machine: &Machine, plan: &Plan, console: Rc<RefCell<Console>>) -> Result<Vec<Sample>> {
    plan.check()?;
    let Machine {
        mut system,
        faults,
        seed,
    } = *machine;
    if let Some(mtu) = plan.mtu {
        system.hca.mtu = Bytes(mtu as u64);
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
            let mut place = Modelled {
                node: ModelNode::new(turn),
                rank,
            };
            measure(&mut place, &plan, &mut |_| {
                if rank == 0 {
                    console.borrow_mut().step();
                }
            })
        },
    )
    .context("cannot make a modelled machine")?;
    let mut ends = ends.into_iter();
    let (client, server) = (ends.next(), ends.next());
    match (client, server) {
        (Some(Ok(samples)), Some(Ok(_))) => Ok(samples),
        (Some(Err(why)), Some(Ok(_))) | (Some(Ok(_)), Some(Err(why))) => Err(why),
        // Who is left alone waits in vain, which says less than why the other has gone.
        (Some(Err(one)), Some(Err(other))) => Err(match one.is::<Stuck>() {
            true => other,
            false => one,
        }),
        _ => Err(anyhow!("an end of the benchmark gave no answer")),
    }
}
