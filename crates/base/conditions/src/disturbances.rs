//! Disturbances of a measurement by other tasks, a hypervisor or a CPU quota, and the text that
//! names them.

use serde::Serialize;

use crate::Interruptions;

/// The share of the measured time without a core above which a measurement is worthless.
const MUCH_WAITING: f64 = 0.1;
/// The share of the measured time taken by the hypervisor above which a measurement is worthless.
const MUCH_STOLEN: f64 = 0.05;
/// The share of the measured time stopped by a CPU quota above which a measurement is worthless.
const MUCH_THROTTLED: f64 = 0.01;
/// The share of the measured time without a core above which the user is informed of it.
const SOME_WAITING: f64 = 0.01;
/// The share of the measured time taken by the hypervisor above which the user is informed of it.
const SOME_STOLEN: f64 = 0.005;
/// The number of involuntary context switches per second above which the user is informed of them:
/// more than a quiet machine has.
const SOME_SWITCHES: f64 = 20.0;

/// The disturbances of one measurement by other programs and by the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Disturbances {
    /// The load average over the minute before: tasks that ran or were ready to run.
    pub load: f64,
    /// The number of hardware threads that this process may use.
    #[serde(skip)]
    pub processors: usize,
    /// The share of the measured time that the hypervisor took for other machines.
    pub stolen: f64,
    /// Seconds for which a CPU quota stopped the processes.
    pub throttled: f64,
    /// Involuntary context switches of the rank that had most.
    pub involuntary_switches: u64,
    /// Seconds for which a rank was ready to run without a core, of the rank that waited longest.
    pub waited: f64,
    /// The duration of the measurement, in seconds.
    pub seconds: f64,
}

impl Disturbances {
    /// These disturbances of the machine, with the worst of the interruptions of the ranks.
    pub fn of_ranks(self, ranks: &[Interruptions]) -> Disturbances {
        let switches = ranks.iter().map(|rank| rank.involuntary_switches);
        Disturbances {
            involuntary_switches: switches.max().unwrap_or(0),
            waited: ranks.iter().map(|rank| rank.waited).fold(0.0, f64::max),
            ..self
        }
    }

    /// Joins the disturbances of two measurements, one after the other.
    pub fn and(self, next: Disturbances) -> Disturbances {
        let seconds = self.seconds + next.seconds;
        let share = (self.stolen * self.seconds + next.stolen * next.seconds) / seconds;
        Disturbances {
            load: self.load.max(next.load),
            processors: self.processors.max(next.processors),
            stolen: if share.is_finite() { share } else { 0.0 },
            throttled: self.throttled + next.throttled,
            involuntary_switches: self.involuntary_switches + next.involuntary_switches,
            waited: self.waited + next.waited,
            seconds,
        }
    }

    /// These `seconds` as a share of the measured time.
    fn share(&self, seconds: f64) -> f64 {
        match self.seconds > 0.0 {
            true => seconds / self.seconds,
            false => 0.0,
        }
    }

    /// True if the processes had so little of their cores that the results are meaningless, even
    /// where repetitions agree.
    pub fn are_severe(&self) -> bool {
        self.share(self.waited) >= MUCH_WAITING
            || self.stolen >= MUCH_STOLEN
            || self.share(self.throttled) >= MUCH_THROTTLED
    }

    /// Descriptions of the disturbances, the gravest first. Empty for a quiet machine.
    pub fn reasons(&self) -> Vec<String> {
        let percent = |share: f64| format!("{:.*} %", usize::from(share < 0.1), share * 100.0);
        let mut all = Vec::new();
        if self.throttled > 0.0 {
            all.push(format!(
                "a CPU quota stopped the job for {}",
                duration(self.throttled)
            ));
        }
        if self.stolen >= SOME_STOLEN {
            let share = percent(self.stolen);
            all.push(format!("the hypervisor took {share} of the time"));
        }
        if self.share(self.waited) >= SOME_WAITING {
            let share = percent(self.share(self.waited));
            all.push(format!("a rank waited {share} of the time for a core"));
        }
        if self.share(self.involuntary_switches as f64) >= SOME_SWITCHES {
            all.push(format!(
                "a rank had {} involuntary context switches",
                self.involuntary_switches
            ));
        }
        if self.load > self.processors as f64 {
            let (load, processors) = (self.load, self.processors);
            let threads = if processors == 1 { "thread" } else { "threads" };
            all.push(format!(
                "the load was {load:.1} on {processors} hardware {threads}"
            ));
        }
        all
    }
}

/// A duration as text for messages.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const QUIET: Disturbances = Disturbances {
        load: 0.5,
        processors: 2,
        stolen: 0.0,
        throttled: 0.0,
        involuntary_switches: 3,
        waited: 0.001,
        seconds: 10.0,
    };

    #[test]
    fn a_quiet_machine_has_no_reasons() {
        assert_eq!(QUIET.reasons(), Vec::<String>::new());
        assert!(!QUIET.are_severe() && !Disturbances::default().are_severe());
    }

    #[test]
    fn each_reason_is_named_with_its_figure() {
        let all = Disturbances {
            load: 7.2,
            stolen: 0.12,
            throttled: 0.4,
            waited: 3.8,
            involuntary_switches: 812,
            ..QUIET
        };
        assert_eq!(
            all.reasons(),
            [
                "a CPU quota stopped the job for 400.0 ms",
                "the hypervisor took 12 % of the time",
                "a rank waited 38 % of the time for a core",
                "a rank had 812 involuntary context switches",
                "the load was 7.2 on 2 hardware threads",
            ]
        );
        assert!(all.are_severe());
    }

    #[test]
    fn the_worst_rank_counts() {
        let rank = |involuntary_switches, waited| Interruptions {
            involuntary_switches,
            waited,
        };
        let all = QUIET.of_ranks(&[rank(5, 0.25), rank(9, 0.125)]);
        assert_eq!((all.involuntary_switches, all.waited), (9, 0.25));
        assert_eq!(QUIET.of_ranks(&[]).involuntary_switches, 0);
    }

    proptest! {
        #[test]
        fn joined_shares_lie_between_the_parts(
            stolen in (0.0..1.0f64, 0.0..1.0f64), seconds in (0.0..9.0f64, 0.0..9.0f64),
        ) {
            let part = |stolen, seconds| Disturbances { stolen, seconds, ..QUIET };
            let both = part(stolen.0, seconds.0).and(part(stolen.1, seconds.1));
            let (low, high) = (stolen.0.min(stolen.1), stolen.0.max(stolen.1));
            let fits = both.seconds == 0.0 || (low - 1e-9..=high + 1e-9).contains(&both.stolen);
            prop_assert!(fits);
        }

        #[test]
        fn what_is_severe_has_a_reason(
            stolen in 0.0..0.2f64, throttled in 0.0..1.0f64, waited in 0.0..5.0f64,
        ) {
            let all = Disturbances { stolen, throttled, waited, ..QUIET };
            prop_assert!(!all.are_severe() || !all.reasons().is_empty());
        }
    }
}
