//! The macro that implements most methods of [`Node`](crate::Node) for a wrapper of another node,
//! by calls of that node.

/// Implements the methods of [`Node`](crate::Node) that a wrapper delegates. The type has the
/// wrapped node in the field `node`, a `RefCell`; a method `node()` that borrows it; and the number
/// of the current device in the field `rail`. It implements `rails`, `wait` and `wait_idle` itself;
/// with `without rail` also `rail`, and with `without abilities` both `rail` and `abilities`.
#[macro_export]
macro_rules! delegate_to_node {
    () => {
        fn rail(&mut self, rail: usize) -> &mut dyn $crate::Device {
            self.rail = rail;
            self
        }

        $crate::delegate_to_node!(without rail);
    };
    (without rail) => {
        fn abilities(&self) -> $crate::Abilities {
            self.node.borrow().abilities()
        }

        $crate::delegate_to_node!(without abilities);
    };
    (without abilities) => {
        fn now(&mut self) -> u64 {
            self.node().now()
        }

        fn is_virtual(&self) -> bool {
            self.node.borrow().is_virtual()
        }

        fn host_costs(&mut self) -> $crate::HostCosts {
            self.node().host_costs()
        }

        fn store_costs(&mut self, peer: usize) -> Option<$crate::StoreCosts> {
            self.node().store_costs(peer)
        }

        fn sync_memory(&mut self) {
            self.node().sync_memory()
        }

        fn written(&mut self, keys: &mut Vec<u32>) -> bool {
            self.node().written(keys)
        }

        fn accounting(&mut self) -> Option<&mut dyn $crate::Accounting> {
            self.node().accounting()
        }

        fn arm(&mut self) -> $crate::Result<()> {
            self.node().arm()
        }

        fn events(&mut self) -> $crate::Result<Option<std::os::fd::OwnedFd>> {
            self.node().events()
        }

        fn oob_send(&mut self, peer: usize, words: &[u8]) -> $crate::Result<()> {
            self.node().oob_send(peer, words)
        }

        fn oob_recv(&mut self) -> $crate::Result<Option<(usize, Vec<u8>)>> {
            self.node().oob_recv()
        }

        fn add_ranks(&mut self, ranks: usize) -> $crate::Result<()> {
            self.node().add_ranks(ranks)
        }

        fn notes(&mut self) -> Vec<String> {
            self.node().notes()
        }

        fn warnings(&mut self) -> Vec<(usize, String)> {
            self.node().warnings()
        }

        fn strangers(&mut self) -> Vec<u64> {
            self.node().strangers()
        }

        fn port_events(&mut self) -> Vec<$crate::PortEvent> {
            self.node().port_events()
        }

        fn knows_cuts(&self) -> bool {
            self.node.borrow().knows_cuts()
        }

        fn signs(&mut self, peer: usize) -> $crate::Signs {
            self.node().signs(peer)
        }

        fn give_up(&mut self, peer: usize) {
            self.node().give_up(peer)
        }

        fn place_of(&mut self, peer: usize) -> String {
            self.node().place_of(peer)
        }
    };
}
