//! A node for tests with changed [`Abilities`], such as memory that ranks cannot share.

use std::cell::RefCell;

use device::{Abilities, Device, Node, Result, delegate_to_node};

/// A node for tests that reports abilities of the test's choice. It delegates everything else to
/// another node.
pub struct WithAbilities {
    node: RefCell<Box<dyn Node>>,
    abilities: Abilities,
}

impl WithAbilities {
    /// Wraps a node. `change` changes the abilities that the new node reports.
    pub fn new(node: Box<dyn Node>, change: impl FnOnce(&mut Abilities)) -> WithAbilities {
        let mut abilities = node.abilities();
        change(&mut abilities);
        WithAbilities {
            node: RefCell::new(node),
            abilities,
        }
    }

    fn node(&mut self) -> &mut dyn Node {
        &mut **self.node.get_mut()
    }
}

impl Node for WithAbilities {
    delegate_to_node!(without abilities);

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn rails(&self) -> usize {
        self.node.borrow().rails()
    }

    fn rail(&mut self, rail: usize) -> &mut dyn Device {
        self.node.get_mut().rail(rail)
    }

    fn wait(&mut self, nanos: u64) -> Result<()> {
        self.node().wait(nanos)
    }

    fn wait_idle(&mut self, nanos: u64) -> Result<()> {
        self.node().wait_idle(nanos)
    }
}
