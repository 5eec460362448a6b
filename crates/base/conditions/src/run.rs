//! The conditions of a whole run: the machine, and the cache distance of its cores before and after
//! the run.

use std::time::Duration;

use serde::Serialize;

use crate::cache_line::between_two_cores;
use crate::{Interruptions, Machine, Moment, Proximity};

/// Attempts to measure the time of a cache line: cores may be busy for a moment.
const ATTEMPTS: usize = 5;

/// The state of the machine and of this process at the start of a run.
pub struct RunStart {
    machine: Machine,
    cache_line: Option<Duration>,
    moment: Moment,
    interruptions: Interruptions,
}

/// The conditions under which a benchmark ran.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Conditions {
    /// The machine, with the date of the start.
    #[serde(flatten)]
    pub machine: Machine,
    /// The transfer time of a cache line between the first two hardware threads of this process at
    /// the start of the run, in nanoseconds. `None`: there was only one, or they were busy.
    pub cache_line_ns_before: Option<u64>,
    /// The transfer time of that cache line at the end of the run, in nanoseconds. `None`: there
    /// was only one hardware thread, or they were busy.
    pub cache_line_ns_after: Option<u64>,
    /// The cache distance of the two hardware threads at the start of the run, from
    /// `cache_line_ns_before`.
    pub cores_before: Option<Proximity>,
    /// The cache distance of the two hardware threads at the end of the run, from
    /// `cache_line_ns_after`.
    pub cores_after: Option<Proximity>,
    /// The load average of the minute before the start.
    pub load: f64,
}

impl RunStart {
    /// Begins a run, and measures the time of a cache line.
    pub fn now() -> RunStart {
        RunStart {
            machine: Machine::now(),
            moment: Moment::now(),
            cache_line: cache_line(),
            interruptions: Interruptions::now(),
        }
    }
}

/// Ends a run. Returns its conditions, and the disturbances of this process and of the machine.
pub fn after(start: RunStart) -> (Conditions, crate::Disturbances) {
    let interruptions = Interruptions::now().since(start.interruptions);
    let whole = Moment::now().since(&start.moment);
    let end = cache_line();
    let nanos = |time: Option<Duration>| time.map(|time| time.as_nanos() as u64);
    let conditions = Conditions {
        machine: start.machine,
        cache_line_ns_before: nanos(start.cache_line),
        cache_line_ns_after: nanos(end),
        cores_before: start.cache_line.map(Proximity::of),
        cores_after: end.map(Proximity::of),
        load: whole.load,
    };
    (conditions, whole.of_ranks(&[interruptions]))
}

impl Proximity {
    /// Measures the cache distance of the first two hardware threads of this process. `None`: there
    /// is only one, or they are busy.
    pub fn now() -> Option<Proximity> {
        cache_line().map(Proximity::of)
    }
}

fn cache_line() -> Option<Duration> {
    (0..ATTEMPTS).find_map(|_| between_two_cores(None))
}

impl Conditions {
    /// True if the cache distance of the two hardware threads did not change, as far as it was
    /// measured.
    pub fn is_of_one_state(&self) -> bool {
        match (self.cores_before, self.cores_after) {
            (Some(before), Some(after)) => before == after,
            _ => true,
        }
    }

    /// A line for the user: the cache distance of the two hardware threads, with the measured
    /// times.
    pub fn line(&self) -> String {
        let time = |nanos: Option<u64>| {
            nanos.map_or("an unknown time".into(), |nanos| format!("{nanos} ns"))
        };
        let (before, after) = (self.cache_line_ns_before, self.cache_line_ns_after);
        let place = match (self.cores_before, self.cores_after) {
            (None, None) => return "Cores: the time of a cache line was not seen".into(),
            (Some(one), Some(other)) if one != other => {
                format!("{}, then {}", one.words(), other.words())
            }
            (Some(one), _) | (_, Some(one)) => one.words().into(),
        };
        format!(
            "Cores: {place} (a cache line took {} before and {} after)",
            time(before),
            time(after)
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn with(before: Option<u64>, after: Option<u64>) -> Conditions {
        let place = |nanos: Option<u64>| nanos.map(|n| Proximity::of(Duration::from_nanos(n)));
        Conditions {
            machine: Machine::now(),
            cache_line_ns_before: before,
            cache_line_ns_after: after,
            cores_before: place(before),
            cores_after: place(after),
            load: 0.0,
        }
    }

    #[test]
    fn the_line_names_the_states() {
        for (before, after, line) in [
            (
                Some(25),
                Some(27),
                "Cores: threads of one core (a cache line took 25 ns before and 27 ns after)",
            ),
            (
                Some(60),
                Some(140),
                "Cores: near cores, then far cores (a cache line took 60 ns before and 140 ns after)",
            ),
            (
                None,
                Some(140),
                "Cores: far cores (a cache line took an unknown time before and 140 ns after)",
            ),
            (None, None, "Cores: the time of a cache line was not seen"),
        ] {
            assert_eq!(with(before, after).line(), line);
        }
    }

    #[test]
    fn a_run_has_conditions() {
        let (conditions, whole) = after(RunStart::now());
        assert!(conditions.load >= 0.0 && whole.seconds > 0.0);
        assert!(conditions.line().starts_with("Cores: "));
    }

    proptest! {
        #[test]
        fn states_differ_only_where_both_were_seen(
            before in proptest::option::of(1u64..300), after in proptest::option::of(1u64..300),
        ) {
            let one = with(before, after);
            prop_assert!(one.is_of_one_state() || (before.is_some() && after.is_some()));
            prop_assert_eq!(one.line().contains("then"), !one.is_of_one_state());
        }
    }
}
