//! The types of the settings of several rails.

use crate::value::{KnobValue, words};

/// The most rails that a rank can use.
pub const MOST_RAILS: usize = 8;

words! {
    /// Rule for the rails of a message.
    RailPolicy, "single|stripe|round-robin|fixed|adaptive",
    "single, stripe, round-robin, fixed or adaptive",
    {
        /// The first rail carries everything.
        Single = "single",
        /// Long messages are cut, short ones take the first rail.
        Stripe = "stripe",
        /// Long messages are cut, short ones take the rails in turn.
        RoundRobin = "round-robin",
        /// Each rank uses one rail.
        Fixed = "fixed",
        /// Each piece takes the rail on which it is predicted to arrive first.
        Adaptive = "adaptive"
    }
}

words! {
    /// The queue pairs of a connection on one rail.
    QueuePairs, "separate|shared", "separate or shared", {
        /// One for packets, one for zero-copy transfers.
        Separate = "separate",
        /// One for both.
        Shared = "shared"
    }
}

/// A number of rails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailCount(Option<usize>);

impl RailCount {
    /// As many as there are.
    pub const ALL: RailCount = RailCount(None);

    /// The largest permitted number of rails.
    pub fn most(self) -> usize {
        self.0.unwrap_or(MOST_RAILS)
    }
}

impl KnobValue for RailCount {
    const KIND: &'static str = "count|all";
    const EXPECTED: &'static str = "a number of rails from 1 to 8, or all";

    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("all") {
            return Some(RailCount::ALL);
        }
        let count = usize::parse(text).filter(|count| (1..=MOST_RAILS).contains(count))?;
        Some(RailCount(Some(count)))
    }

    fn show(&self) -> String {
        self.0.map_or("all".into(), |count| count.to_string())
    }
}
