//! The tests that every device passes. None of them looks at how long something takes.

mod connections;
pub mod makers;
mod messages;
mod requests;

use std::sync::Arc;

use device::*;

use crate::common::*;
pub use connections::*;
pub use makers::Maker;
pub use messages::*;
pub use requests::*;

const SEND: Operation = Operation::Send { immediate: None };

/// Two connected ranks that run this.
fn two(
    maker: &dyn Maker,
    wish: Wish,
    body: impl Fn(&mut dyn Node, &mut End, usize) + Send + Sync + 'static,
) {
    maker.run(wish, Arc::new(body));
}

fn write_to(end: &End, at: usize) -> Operation {
    Operation::Write {
        to: end.remote(at),
        immediate: None,
    }
}

/// The next so many completions: numbers and what became of them.
fn statuses(node: &mut dyn Node, end: &End, count: usize) -> Vec<(u64, Status)> {
    let next = |_| {
        let one = end.completion(node);
        (one.id, one.status)
    };
    (0..count).map(next).collect()
}

/// Waits until a queue pair is in a state.
fn comes_to(node: &mut dyn Node, end: &End, state: State) {
    wait_for(node, |node| {
        let device = node.rail(end.rail);
        // Some devices notice only when they are looked at.
        device.poll(end.cq, &mut []).unwrap();
        (device.state(end.qp).unwrap() == state).then_some(())
    });
}
