//! The way of a packet from a rank to itself.

use std::collections::VecDeque;

use crate::Head;

#[derive(Default)]
pub struct Loopback {
    packets: VecDeque<(Head, Box<[u8]>)>,
}

impl Loopback {
    pub fn put(&mut self, head: Head, len: usize, fill: impl FnOnce(&mut [u8])) {
        let mut body = vec![0; len].into_boxed_slice();
        fill(&mut body);
        self.packets.push_back((head, body));
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub fn get(&mut self) -> Option<(Head, Box<[u8]>)> {
        self.packets.pop_front()
    }

    /// Copies from this process's own memory.
    pub fn read(&self, address: u64, into: &mut [u8]) {
        // SAFETY: the sender exposed these bytes in a packet to itself and keeps them until it is told that they were
        // read; `copy` allows that sender and receiver passed overlapping buffers.
        unsafe { std::ptr::copy(address as usize as *const u8, into.as_mut_ptr(), into.len()) };
    }
}
