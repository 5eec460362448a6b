//! Makers of two ranks that are connected.

use std::sync::Arc;

use device::Node;

use crate::ends::{End, Wish, connect_any, meet};

pub type Body = Arc<dyn Fn(&mut dyn Node, &mut End, usize) + Send + Sync>;

pub trait Maker {
    /// Runs a body as either rank. Neither leaves before the other is done.
    fn run(&self, wish: Wish, body: Body);
}

/// Lets a rank play its part.
pub fn rank(node: &mut dyn Node, rank: usize, wish: &Wish, body: &Body) -> End {
    let mut end = connect_any(node, wish, 1 - rank);
    meet(node, 1 - rank);
    body(node, &mut end, rank);
    meet(node, 1 - rank);
    end
}

/// Both ranks as threads. If one fails the whole test does, for the other waits in vain.
pub fn threads(nodes: Vec<Box<dyn Node>>, wish: &Wish, body: &Body) {
    std::thread::scope(|scope| {
        for (number, mut node) in nodes.into_iter().enumerate() {
            scope.spawn(move || {
                let end = rank(&mut *node, number, wish, body);
                drop(node);
                // The memory goes after the device.
                drop(end);
            });
        }
    });
}
