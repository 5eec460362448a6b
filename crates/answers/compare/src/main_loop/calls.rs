//! The calls of a recording, as the loop finder reads them: numbers of symbols. A symbol stands for
//! the name of a call, its communicator, its size class, and its peer relative to the rank.

use std::collections::HashMap;
use std::ops::Range;

/// A kind of call: calls with the same procedure, communicator, size class and relative peer are
/// equal for the search for a loop.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Symbol {
    /// The name of the procedure.
    pub name: String,
    /// The number of the communicator, in the rank's order of creation; `None` if the call has
    /// none.
    pub communicator: Option<u32>,
    /// The size class of the message; `None` if the call has none.
    pub size: Option<u32>,
    /// The rank of the peer minus that of the calling rank; `None` if the call has no peer.
    pub peer: Option<i32>,
    /// True if the call makes or frees a communicator, window, file or topology, or begins or ends
    /// MPI.
    pub constructs: bool,
    /// True if all ranks of the job take part in the call.
    pub everywhere: bool,
    /// The arguments of `MPI_Pcontrol`; `None` for other procedures.
    pub control: Option<Control>,
}

/// The arguments of a call of `MPI_Pcontrol`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Control {
    /// The level: a positive one begins a region, 0 and less end it.
    pub level: i32,
    /// The name of the region, if the call has the form that IPM defines.
    pub region: Option<String>,
}

/// A completed call of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the call's symbol.
    pub symbol: u32,
    /// The computing before the call, in nanoseconds.
    pub nanos: u64,
}

/// The completed calls of all ranks. Polls and readings of the clock are left out.
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

    /// The range of all calls of each rank.
    pub(super) fn whole(&self) -> Vec<Range<usize>> {
        self.ranks.iter().map(|calls| 0..calls.len()).collect()
    }

    /// For each symbol, the number of the first symbol that equals it after `change` has been
    /// applied to both.
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
