//! The calls of a folded sequence, one by one.

use crate::fold::Item;

/// The calls of a sequence in order, as numbers in the table of calls.
pub struct Calls<'a> {
    sequences: &'a [Vec<Item>],
    open: Vec<Open<'a>>,
}

/// A sequence whose items are being expanded.
struct Open<'a> {
    items: &'a [Item],
    at: usize,
    /// The number of repetitions of the sequence after the present one.
    turns: u64,
}

impl<'a> Calls<'a> {
    /// Begins to expand the sequence with this number.
    pub fn new(sequences: &'a [Vec<Item>], sequence: u32) -> Calls<'a> {
        let mut calls = Calls {
            sequences,
            open: Vec::new(),
        };
        calls.begin(1, sequence);
        calls
    }

    fn begin(&mut self, turns: u64, sequence: u32) {
        let items = self.sequences.get(sequence as usize);
        if let (Some(items), Some(turns)) = (items, turns.checked_sub(1)) {
            self.open.push(Open {
                items,
                at: 0,
                turns,
            });
        }
    }
}

impl Iterator for Calls<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        loop {
            let open = self.open.last_mut()?;
            match open.items.get(open.at) {
                Some(item) => {
                    open.at += 1;
                    match *item {
                        Item::Call(call) => return Some(call),
                        Item::Loop(turns, body) => self.begin(turns, body),
                    }
                }
                None if open.turns > 0 => {
                    open.turns -= 1;
                    open.at = 0;
                }
                None => {
                    self.open.pop();
                }
            }
        }
    }
}
