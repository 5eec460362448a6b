//! Folding of a sequence of calls to loops of loops, without loss.
//!
//! Items are appended one by one. If the last items are the body of the loop before them, the loop
//! has one more turn; if they equal the items before them, both become a loop of two turns. A loop
//! is an item itself, so loops of loops are found alike.

use std::collections::HashMap;

/// The most items that the body of a found loop can have.
const LONGEST_BODY: usize = 1 << 14;
/// The most earlier positions of an item that are compared with the last items.
const TRIES: usize = 16;

/// One item of a folded sequence of calls: a call, or a loop over another sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// The index of a call in the list of different calls.
    Call(u32),
    /// The number of repetitions of a sequence, and the index of this sequence in the folder.
    Loop(u64, u32),
}

/// Folds the calls of ranks into sequences with loops. Equal sequences are kept once, so ranks that
/// make the same calls share one.
#[derive(Default)]
pub struct Folder {
    sequences: Vec<Vec<Item>>,
    numbers: HashMap<Vec<Item>, u32>,
}

impl Folder {
    /// Folds the calls of a rank, and returns the number of their sequence.
    pub fn fold(&mut self, calls: impl Iterator<Item = u32>) -> u32 {
        let mut stack = Stack::default();
        for call in calls {
            stack.push(Item::Call(call), self);
            while stack.lengthens(self) || stack.begins(self) {}
        }
        let items = stack.items.into_iter().map(|(item, _)| item).collect();
        self.number(items)
    }

    /// The sequences, of which each refers to earlier ones only.
    pub fn into_sequences(self) -> Vec<Vec<Item>> {
        self.sequences
    }

    fn number(&mut self, items: Vec<Item>) -> u32 {
        if let Some(&number) = self.numbers.get(&items) {
            return number;
        }
        let number = self.sequences.len() as u32;
        self.sequences.push(items.clone());
        self.numbers.insert(items, number);
        number
    }
}

/// The folded items of a rank so far.
#[derive(Default)]
struct Stack {
    /// The items so far, each with the previous position of an equal one.
    items: Vec<(Item, Option<usize>)>,
    latest: HashMap<Item, usize>,
    /// For each item the positions of loops whose body ends with it.
    loops: HashMap<Item, Vec<usize>>,
}

impl Stack {
    fn push(&mut self, item: Item, folder: &Folder) {
        let place = self.items.len();
        let before = self.latest.insert(item, place);
        self.items.push((item, before));
        if let Some(last) = last_of(item, folder) {
            self.loops.entry(last).or_default().push(place);
        }
    }

    fn pop(&mut self, folder: &Folder) -> Option<Item> {
        let (item, before) = self.items.pop()?;
        match before {
            Some(place) => self.latest.insert(item, place),
            None => self.latest.remove(&item),
        };
        if let Some(places) = last_of(item, folder).and_then(|last| self.loops.get_mut(&last)) {
            places.pop();
        }
        Some(item)
    }

    /// Adds the last items to the loop before them, if they are its body.
    fn lengthens(&mut self, folder: &Folder) -> bool {
        let Some((last, _)) = self.items.last() else {
            return false;
        };
        let places = self.loops.get(last).map_or(&[][..], Vec::as_slice);
        let is_body = |place: &&usize| match self.items[**place].0 {
            Item::Loop(_, body) => self.ends_with(&folder.sequences[body as usize], **place + 1),
            Item::Call(_) => false,
        };
        let Some(&place) = places.iter().rev().take(TRIES).find(is_body) else {
            return false;
        };
        while self.items.len() > place + 1 {
            self.pop(folder);
        }
        if let Some(Item::Loop(turns, body)) = self.pop(folder) {
            self.push(Item::Loop(turns + 1, body), folder);
        }
        true
    }

    /// True if the items from position `place` on equal `body`.
    fn ends_with(&self, body: &[Item], place: usize) -> bool {
        self.items.len() - place == body.len()
            && (self.items[place..].iter().rev().map(|own| own.0)).eq(body.iter().rev().copied())
    }

    /// Begins a loop of two repetitions, if the last items equal those before them.
    fn begins(&mut self, folder: &mut Folder) -> bool {
        let Some(&(_, mut before)) = self.items.last() else {
            return false;
        };
        let len = self.items.len();
        for _ in 0..TRIES {
            let Some(place) = before else { break };
            let body = len - 1 - place;
            if body > LONGEST_BODY || body > len - body {
                break;
            }
            if (0..body).all(|at| self.items[len - 1 - at].0 == self.items[place - at].0) {
                let items: Vec<Item> = self.items[place + 1..].iter().map(|own| own.0).collect();
                let number = folder.number(items);
                (0..2 * body).for_each(|_| {
                    self.pop(folder);
                });
                self.push(Item::Loop(2, number), folder);
                return true;
            }
            before = self.items[place].1;
        }
        false
    }
}

/// The last item of the body, if the item is a loop.
fn last_of(item: Item, folder: &Folder) -> Option<Item> {
    match item {
        Item::Loop(_, body) => folder.sequences[body as usize].last().copied(),
        Item::Call(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Calls;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn folded(calls: &[u32]) -> (Vec<Vec<Item>>, u32) {
        let mut folder = Folder::default();
        let sequence = folder.fold(calls.iter().copied());
        (folder.into_sequences(), sequence)
    }

    #[test]
    fn loops_of_loops_take_an_item_each() {
        let inner = [vec![1; 7], vec![2, 3]].concat();
        let calls = [vec![0], inner.repeat(10_000), vec![9]].concat();
        let (sequences, top) = folded(&calls);
        assert!(Calls::new(&sequences, top).eq(calls));
        let items: usize = sequences.iter().map(Vec::len).sum();
        assert!(items < 20, "{sequences:?}");
    }

    #[test]
    fn equal_calls_of_ranks_are_one_sequence() {
        let mut folder = Folder::default();
        let ranks: Vec<u32> = (0..3)
            .map(|_| folder.fold([1, 2, 1, 2, 3].into_iter()))
            .collect();
        assert_eq!(ranks, [ranks[0]; 3]);
    }

    proptest! {
        #[test]
        fn folding_loses_nothing(parts in vec((vec(0u32..4, 1..6), 1usize..5), 0..12), turns in 1usize..4) {
            let turn: Vec<u32> = parts.iter().flat_map(|(body, turns)| body.repeat(*turns)).collect();
            let calls = turn.repeat(turns);
            let (sequences, top) = folded(&calls);
            prop_assert!(Calls::new(&sequences, top).eq(calls));
        }
    }
}
