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
            match item < items[parent] {
                true => items[at] = items[parent],
                false => break,
            }
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
            if start >= end {
                break;
            }
            let less = |one: usize, other: usize| match items[other] < items[one] {
                true => other,
                false => one,
            };
            let least = (start + 1..end).fold(start, less);
            match items[least] < last {
                true => items[at] = items[least],
                false => break,
            }
            at = least;
        }
        items[at] = last;
        Some(first)
    }
}
