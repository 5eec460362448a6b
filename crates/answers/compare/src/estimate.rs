//! An estimate of the time that a comparison takes, from its first recording.

use std::time::Duration;

/// The cost of one run of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunCost {
    /// The wall-clock time of the run.
    pub(crate) wall: Duration,
    /// The processor time of all processes of the run.
    pub(crate) processor: Duration,
    /// The sum of the computing of all ranks, which every run repeats.
    pub(crate) computing: Duration,
    /// The number of MPI calls of all ranks, which execute one after the other in every run.
    pub(crate) calls: u64,
}

impl RunCost {
    /// A text about the parts of a run: computing, and the number of MPI calls.
    fn parts(&self) -> String {
        let calls = self.wall.saturating_sub(self.computing);
        let each = calls.as_secs_f64() * 1e6 / self.calls.max(1) as f64;
        format!(
            "{} of computing, and {} MPI calls of all ranks in turn, {} µs each",
            rounded(self.computing.min(self.wall)),
            rounded_number(self.calls),
            results::table::significant(each)
        )
    }
}

/// The numbers of runs that a comparison still makes, as far as they are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Runs {
    /// The number of recordings, which run one at a time.
    pub(crate) recordings: usize,
    /// The number of replays, of which several run at once.
    pub(crate) replays: usize,
}

/// The usual number of replays that show how sure an answer is; there are 2 to 40.
pub(crate) const USUAL_SEARCH: usize = 8;
/// The index of the user time of children among the fields of /proc/self/stat after the program's
/// name. The system time of children follows it.
const USER_OF_CHILDREN: usize = 13;
/// If a comparison takes at least this time, its line also has the reason and a shorter
/// alternative.
const LONG: Duration = Duration::from_secs(120);

/// The line about the estimate for the user. `at_once` replays share `cores` cores. `shorter` is
/// the number of runs of the shorter alternative, if there is one.
pub(crate) fn line(
    cost: RunCost,
    left: Runs,
    at_once: usize,
    cores: usize,
    shorter: Option<usize>,
) -> String {
    let replay = (cost.wall / at_once as u32).max(cost.processor / cores.max(1) as u32);
    let time = cost.wall * left.recordings as u32 + replay * left.replays as u32;
    let mut line = format!("this takes about {}", rounded(time));
    if time < LONG {
        return line;
    }
    let runs = left.recordings + left.replays;
    line += &format!(
        ": the first run took {} ({}), and some {runs} follow",
        rounded(cost.wall),
        cost.parts()
    );
    if let Some(shorter) = shorter {
        let time = rounded(replay * shorter as u32);
        line += &format!("; --quick takes about {time}, with no word on how sure the answer is");
    }
    line
}

/// The processor time of all descendants of this process that have ended and been waited for.
pub(crate) fn processor_time_of_children() -> Duration {
    let ticks = || {
        let line = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name of the program, in parentheses, may contain blanks.
        let (_, fields) = line.rsplit_once(')')?;
        let numbers = fields.split_whitespace().skip(USER_OF_CHILDREN).take(2);
        numbers
            .map(|word| word.parse::<u64>().ok())
            .sum::<Option<u64>>()
    };
    let second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks().unwrap_or(0) * 1000 / second)
}

/// A time with one significant digit, or two where the first is 1.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let (number, unit) = match seconds {
        s if s < 90.0 => (s, "second"),
        s if s < 5400.0 => (s / 60.0, "minute"),
        s => (s / 3600.0, "hour"),
    };
    let step = match number {
        n if n < 20.0 => 1.0,
        n if n < 50.0 => 5.0,
        _ => 10.0,
    };
    let number = ((number / step).round() * step).max(1.0);
    match number {
        1.0 => format!("1 {unit}"),
        many => format!("{many} {unit}s"),
    }
}

/// A number with two significant digits, and a comma before each group of three digits.
fn rounded_number(number: u64) -> String {
    let step = 10u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    let digits = ((number + step / 2) / step * step).to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(wall: f64, processor: f64) -> RunCost {
        RunCost {
            wall: Duration::from_secs_f64(wall),
            processor: Duration::from_secs_f64(processor),
            computing: Duration::from_millis(1500),
            calls: 701_234,
        }
    }

    #[test]
    fn times_are_rounded_to_what_is_known_of_them() {
        let of = |seconds| rounded(Duration::from_secs_f64(seconds));
        let shown = [0.1, 1.4, 17.2, 43.0, 77.0, 100.0, 250.0, 5000.0, 9000.0].map(of);
        assert_eq!(
            shown,
            [
                "1 second",
                "1 second",
                "17 seconds",
                "45 seconds",
                "80 seconds",
                "2 minutes",
                "4 minutes",
                "80 minutes",
                "3 hours"
            ]
        );
    }

    #[test]
    fn a_short_comparison_has_its_time_alone() {
        let left = Runs {
            recordings: 5,
            replays: 60,
        };
        let line = line(cost(0.1, 0.1), left, 2, 2, Some(12));
        assert_eq!(line, "this takes about 4 seconds");
    }

    #[test]
    fn a_long_comparison_has_the_reason_and_a_shorter_way() {
        let left = Runs {
            recordings: 5,
            replays: 60,
        };
        // Two replays at once need the two processors for as long as if one ran after the other.
        let line = line(cost(4.0, 8.0), left, 2, 2, Some(12));
        assert_eq!(
            line,
            "this takes about 4 minutes: the first run took 4 seconds (2 seconds of computing, and 700,000 MPI calls of all \
             ranks in turn, 3.57 µs each), and some 65 follow; --quick takes about 50 seconds, with no word on how sure the \
             answer is"
        );
    }
}
