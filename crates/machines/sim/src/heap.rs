//! A min-heap in the memory of a world. Each node has four children, so that a descent touches few
//! cache lines.

use crate::memory::{Vec, WorldMemory};

pub(crate) struct Heap<T> {
    items: Vec<T>,
}

const CHILDREN: usize = 4;

impl<T: Ord + Copy> Heap<T> {
    pub(crate) fn new(memory: WorldMemory) -> Heap<T> {
        Heap {
            items: Vec::new_in(memory),
        }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<&T> {
        self.items.first()
    }

    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
        self.rise(self.items.len() - 1, item);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let items = &mut self.items[..];
        let Some(&first) = items.first() else {
            return Some(last);
        };
        // The gap sinks to a leaf: the last item, which fills it, belongs near one.
        let mut at = 0;
        while let Some(least) = least_child(items, at) {
            items[at] = items[least];
            at = least;
        }
        self.rise(at, last);
        Some(first)
    }

    /// Puts an item into the gap at `at`, or above.
    #[inline]
    fn rise(&mut self, mut at: usize, item: T) {
        let items = &mut self.items[..];
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            match item < items[parent] {
                true => items[at] = items[parent],
                false => break,
            }
            at = parent;
        }
        items[at] = item;
    }
}

/// The place of the least child of a node that has children.
#[inline]
fn least_child<T: Ord>(items: &[T], node: usize) -> Option<usize> {
    let start = node * CHILDREN + 1;
    let children = items.get(start..)?;
    let least = match children.first_chunk::<CHILDREN>() {
        Some(all) => {
            let left = usize::from(all[1] < all[0]);
            let right = 2 + usize::from(all[3] < all[2]);
            match all[right] < all[left] {
                true => right,
                false => left,
            }
        }
        None => (0..children.len()).min_by_key(|child| &children[*child])?,
    };
    Some(start + least)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;

    #[test]
    fn items_come_out_in_order() {
        let memory = Memory::private().unwrap();
        let mut heap = Heap::new(memory.shared());
        let mut kept = std::collections::BTreeSet::new();
        let mut random = 1u64;
        for number in 0..5000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005) | 1;
            // It grows for a time, and shrinks again.
            if ((random >> 33) % 4) != (number / 500 % 2) * 3 {
                let item = (random >> 50, number);
                heap.push(item);
                kept.insert(item);
            } else {
                assert_eq!(heap.peek(), kept.first());
                assert_eq!(heap.pop(), kept.pop_first());
            }
        }
        while let Some(item) = heap.pop() {
            assert_eq!(Some(item), kept.pop_first());
        }
        assert!(kept.is_empty());
    }
}
