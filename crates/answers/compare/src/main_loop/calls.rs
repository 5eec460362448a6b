//! The calls of a recording as the loop finder reads them: numbers of symbols. A symbol stands for
//! the name of a call, its communicator, its size class, and its peer relative to the rank.

use std::collections::HashMap;
use std::ops::Range;

/// A kind of call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Symbol {
    /// The name of the procedure.
    pub name: String,
    /// The number of the communicator, in the rank's order of creation.
    pub communicator: Option<u32>,
    /// The size class of the message.
    pub size: Option<u32>,
    /// The peer's rank minus the own one.
    pub peer: Option<i32>,
    /// The call makes or frees a communicator, window, file or topology, or begins or ends MPI.
    pub constructs: bool,
    /// All ranks of the job take part in the call.
    pub everywhere: bool,
    /// The arguments of `MPI_Pcontrol`.
    pub control: Option<Control>,
}

/// The arguments of an `MPI_Pcontrol`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Control {
    /// The level: 0 and less end a region.
    pub level: i32,
    /// The name of the region, in IPM's form of the call.
    pub region: Option<String>,
}

/// A call with a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the symbol.
    pub symbol: u32,
    /// The computing before the call, in nanoseconds.
    pub nanos: u64,
}

/// The calls of all ranks. Polls and readings of the clock are left out.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Calls {
    /// The symbols, by their numbers.
    pub symbols: Vec<Symbol>,
    /// For each rank, its calls in order.
    pub ranks: Vec<Vec<Call>>,
}

impl Calls {
    /// The symbol of a call.
    pub fn symbol(&self, call: &Call) -> &Symbol {
        &self.symbols[call.symbol as usize]
    }

    /// All calls of each rank, as ranges.
    pub(super) fn whole(&self) -> Vec<Range<usize>> {
        self.ranks.iter().map(|calls| 0..calls.len()).collect()
    }

    /// For each symbol, the number of the first one that is equal after `change`.
    pub(crate) fn merged(&self, change: impl Fn(&mut Symbol)) -> Vec<u32> {
        let mut first = HashMap::new();
        let numbered = self.symbols.iter().enumerate();
        let merged = numbered.map(|(number, symbol)| {
            let mut symbol = symbol.clone();
            change(&mut symbol);
            *first.entry(symbol).or_insert(number as u32)
        });
        merged.collect()
    }
}
