//! Makers of two connected ranks, one for each kind of device.

use std::sync::Arc;

use device::Node;

use crate::ends::{End, Wish, connect_any, meet};

/// The body of a test: runs in both ranks, with the node, the end and the number of its rank.
pub type Body = Arc<dyn Fn(&mut dyn Node, &mut End, usize) + Send + Sync>;

/// A maker of two connected ranks.
pub trait Maker {
    /// Runs a body in both ranks. Neither ends before the other is done.
    fn run(&self, wish: Wish, body: Body);

    /// The devices have datagrams and unreliable connections, as their attributes must say too.
    fn has_datagrams(&self) -> bool {
        true
    }
}

/// Connects a rank, runs the body, and waits for the peer.
pub fn rank(node: &mut dyn Node, rank: usize, wish: &Wish, body: &Body) -> End {
    let mut end = connect_any(node, wish, 1 - rank);
    meet(node, 1 - rank);
    body(node, &mut end, rank);
    meet(node, 1 - rank);
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
