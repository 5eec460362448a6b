//! Interruptions of this process by the scheduler: involuntary context switches, and time without a
//! core.

use nix::sys::resource::{UsageWho, getrusage};

/// Interruptions of a process by the scheduler since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interruptions {
    /// Involuntary context switches of all threads: each time another task got the core.
    pub involuntary_switches: u64,
    /// Seconds for which the main thread was ready to run and had no core.
    pub waited: f64,
}

impl Interruptions {
    /// The interruptions of this process from its start until now.
    pub fn now() -> Interruptions {
        let switches = getrusage(UsageWho::RUSAGE_SELF)
            .map_or(0, |usage| usage.involuntary_context_switches());
        let statistics = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        Interruptions {
            involuntary_switches: switches.max(0) as u64,
            waited: waited(&statistics).unwrap_or(0.0),
        }
    }

    /// The interruptions between an earlier moment and this one.
    pub fn since(self, earlier: Interruptions) -> Interruptions {
        Interruptions {
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(earlier.involuntary_switches),
            waited: (self.waited - earlier.waited).max(0.0),
        }
    }
}

/// The seconds without a core, from the text of `schedstat`: nanoseconds on a core, nanoseconds of
/// waiting for one, and the number of time slices.
fn waited(statistics: &str) -> Option<f64> {
    let nanos: u64 = statistics.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanos as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_core_is_the_second_number() {
        assert_eq!(waited("1203 2500000000 17\n"), Some(2.5));
        assert_eq!(waited("0"), None);
        assert_eq!(waited("a b c"), None);
    }

    #[test]
    fn interruptions_never_become_fewer() {
        let before = Interruptions::now();
        std::thread::yield_now();
        let between = Interruptions::now().since(before);
        assert!(between.waited >= 0.0);
        assert_eq!(before.since(Interruptions::now()).involuntary_switches, 0);
    }
}
