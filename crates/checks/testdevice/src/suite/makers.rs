//! The interface by which the suite gets two connected ranks of one kind of device.

use std::sync::Arc;

use device::Node;

use crate::ends::{End, Wish, connect_any, synchronise};

/// The body of a test. It runs in both ranks and gets the node, the connection's end and the number
/// of its rank.
pub type Body = Arc<dyn Fn(&mut dyn Node, &mut End, usize) + Send + Sync>;

/// A maker of two connected ranks.
pub trait Maker {
    /// Runs a body in both ranks. Neither rank ends before the other has run it.
    fn run(&self, wish: Wish, body: Body);

    /// True if the devices have datagrams and unreliable connections; their attributes must agree.
    fn has_datagrams(&self) -> bool {
        true
    }
}

/// Connects a rank, runs the body in it, and waits for the peer.
pub fn rank(node: &mut dyn Node, rank: usize, wish: &Wish, body: &Body) -> End {
    let mut end = connect_any(node, wish, 1 - rank);
    synchronise(node, 1 - rank);
    body(node, &mut end, rank);
    synchronise(node, 1 - rank);
    end
}

/// Runs both ranks as threads. If one fails, the whole test fails.
pub fn threads(nodes: Vec<Box<dyn Node>>, wish: &Wish, body: &Body) {
    std::thread::scope(|scope| {
        for (number, mut node) in nodes.into_iter().enumerate() {
            scope.spawn(move || {
                let end = rank(&mut *node, number, wish, body);
                drop(node);
                // The memory is freed after the device.
                drop(end);
            });
        }
    });
}
