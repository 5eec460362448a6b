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
        let items = &mut self.items[..];
        let mut at = items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / CHILDREN;
            if items[parent] <= item {
                break;
            }
            items[at] = items[parent];
            at = parent;
        }
        items[at] = item;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.items.pop()?;
        let items = &mut self.items[..];
        let Some(&first) = items.first() else {
            return Some(last);
        };
        let mut at = 0;
        loop {
            let start = at * CHILDREN + 1;
            let end = (start + CHILDREN).min(items.len());
            let by_item = |one: &usize, other: &usize| items[*one].cmp(&items[*other]);
            let Some(least) = (start..end).min_by(by_item) else {
                break;
            };
            if last <= items[least] {
                break;
            }
            items[at] = items[least];
            at = least;
        }
        items[at] = last;
        Some(first)
    }
}
