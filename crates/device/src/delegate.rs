//! What a node over another hands on to it as it is. Such a node is the device in use too; how many devices there are and how its
//! rank waits it says itself.

/// The methods of [`Node`](crate::Node) for a type with the node below in `node`, a `RefCell`, lent by `node()`, and the number
/// of the device in use in `rail`.
#[macro_export]
macro_rules! delegate_to_node {
    () => {
        fn rail(&mut self, rail: usize) -> &mut dyn $crate::Device {
            self.rail = rail;
            self
        }

        fn now(&mut self) -> u64 {
            self.node().now()
        }

        fn is_virtual(&self) -> bool {
            self.node.borrow().is_virtual()
        }

        fn sync_memory(&mut self) {
            self.node().sync_memory()
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

        fn notes(&mut self) -> Vec<String> {
            self.node().notes()
        }
    };
}
