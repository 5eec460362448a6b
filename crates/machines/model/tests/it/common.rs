//! Ranks on a modelled machine, connected with each other.

use device::Node;
use fabric::System;
use fabric::catalogue::Catalogue;
use model::{Faults, MachineModel, ModelNode};
use sim::Time;
use sim::coroutines::{Plan, run};
pub(crate) use testdevice::ends::*;

pub(crate) fn system(name: &str) -> System {
    Catalogue::builtin().system(name).unwrap()
}

/// Runs one rank on each of these hosts; returns their results.
pub(crate) fn play<R: 'static>(
    system: &System,
    hosts: &[u32],
    faults: Faults,
    seed: u64,
    body: impl Fn(ModelNode, u32) -> R + 'static,
) -> Vec<R> {
    play_on(system, hosts, faults, seed, |machine| machine, body)
}

/// Like `play`, on the machine that `change` makes of the usual one.
pub(crate) fn play_on<R: 'static>(
    system: &System,
    hosts: &[u32],
    faults: Faults,
    seed: u64,
    change: impl Fn(MachineModel) -> MachineModel + 'static,
    body: impl Fn(ModelNode, u32) -> R + 'static,
) -> Vec<R> {
    let plan = Plan {
        ranks: hosts.len() as u32,
        seed,
        stack: 128 << 10,
    };
    let (system, hosts) = (*system, hosts.to_vec());
    let (answers, _) = run(
        plan,
        move |memory| change(MachineModel::new(memory, &system, &hosts, faults)),
        move |turn| {
            let rank = turn.rank();
            body(ModelNode::new(turn), rank)
        },
    )
    .unwrap();
    answers
}

/// Connects this rank with a peer, which must call this too.
pub(crate) fn connect(node: &mut ModelNode, peer: usize, wish: &Wish) -> End {
    let end = connect_any(node, wish, peer);
    settle_down(node);
    end
}

/// Lets time pass until both ends are connected.
pub(crate) fn settle_down(node: &mut ModelNode) {
    let until = node.turn().now() + 1_000_000_000;
    while node.turn().now() < until {
        node.wait((until - node.turn().now()).div_ceil(1000))
            .unwrap();
    }
}

pub(crate) trait Timed {
    /// Waits until a byte of this rank's memory has a value; returns the time of the poll that
    /// found it.
    fn await_byte(&self, node: &mut ModelNode, at: usize, value: u8) -> Time;
}

impl Timed for End {
    fn await_byte(&self, node: &mut ModelNode, at: usize, value: u8) -> Time {
        self.see(node, at, value);
        node.turn().now()
    }
}
