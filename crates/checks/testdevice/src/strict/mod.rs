//! A strict device in memory: the ranks are threads of one process, and their requests are executed
//! at once, in its memory.
//!
//! It is strict in cases where real devices fail late: a send queue holds exactly the requested
//! number of requests, and has room again only after completions are polled; completion queues
//! overflow; keys and bounds are checked; a write to an unconnected queue pair fails. Its settings
//! make it awkward: requests are delayed at random, and bytes become visible in any order. A call
//! of any rank executes the requests of all ranks, so no rank needs its peers to call. Tests cut
//! and slow down its cables ([`Cables`]).

mod cable;
mod cables;
mod hosted;
mod machine;
mod memory;
mod node;
mod queues;
mod rail;
mod setup;
mod states;
mod world;

pub use cable::Cut;
pub use cables::Cables;
use device::Node;
pub use hosted::hosted;
use machine::shared;
use node::StrictNode;
use rail::devices;
pub use setup::{RailSetup, Setup};

/// Makes a node for each of `ranks` ranks.
pub fn nodes(ranks: usize, setup: &Setup) -> Vec<Box<dyn Node + Send>> {
    machine(ranks, setup).0
}

/// Makes a node for each of `ranks` ranks, and returns the cables between the ranks too.
///
/// ```
/// use testdevice::strict::{Cut, Setup, machine};
///
/// let (nodes, cables) = machine(2, &Setup { rails: 2, ..Setup::default() });
/// assert_eq!(nodes[0].rails(), 2);
/// cables.cut(1, 0, Cut::Silent);
/// cables.mend(1, 0);
/// ```
pub fn machine(ranks: usize, setup: &Setup) -> (Vec<Box<dyn Node + Send>>, Cables) {
    let shared = shared(ranks, setup);
    let node = |rank| {
        Box::new(StrictNode {
            shared: shared.clone(),
            rank,
            seen: 0,
            events: None,
            devices: devices(&shared, rank, setup),
        }) as Box<dyn Node + Send>
    };
    let nodes = (0..ranks).map(node).collect();
    (nodes, Cables { shared })
}
