//! The types of the settings for several rails.

use crate::value::{KnobValue, words};

/// The most rails that a rank can use.
pub const MOST_RAILS: usize = 8;

words! {
    /// The rule by which rails are chosen for a message.
    RailPolicy, "single|stripe|round-robin|fixed|adaptive",
    "single, stripe, round-robin, fixed or adaptive",
    {
        /// The first rail carries all messages.
        Single = "single",
        /// Long messages are divided among the rails; short ones take the first rail.
        Stripe = "stripe",
        /// Long messages are divided among the rails; short ones take one rail after the other.
        RoundRobin = "round-robin",
        /// Each rank uses one rail, and the ranks of a host are dealt to the rails.
        Fixed = "fixed",
        /// Each piece takes the rail on which it is predicted to arrive first.
        Adaptive = "adaptive"
    }
}

words! {
    /// The queue pairs of a connection on each rail.
    QueuePairs, "separate|shared", "separate or shared", {
        /// One queue pair for packets, one for zero-copy transfers.
        Separate = "separate",
        /// One queue pair for both packets and zero-copy transfers.
        Shared = "shared"
    }
}

/// The most rails that a rank uses, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RailCount(Option<usize>);

impl RailCount {
    /// All rails that there are.
    pub const ALL: RailCount = RailCount(None);

    /// The number as a limit: [`MOST_RAILS`] for all.
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
