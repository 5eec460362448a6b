//! An estimate of the time that a comparison takes, from its first runs.

use std::time::Duration;

/// The numbers of runs that a comparison makes, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Runs {
    /// The number of recordings, which run one at a time.
    pub(crate) recordings: usize,
    /// The number of replays, of which several run at once.
    pub(crate) replays: usize,
}

/// The usual number of replays that show how sure an answer is; there are 2 to 40.
pub(crate) const USUAL_SEARCH: usize = 8;
/// If what follows takes at least this time, its line also has the reason.
const LONG: Duration = Duration::from_secs(120);

/// The line about the replays that still follow. Each takes `each`, with several at once.
pub(crate) fn of_replays(each: Duration, left: usize) -> String {
    let time = each * left as u32;
    let line = format!("this takes about {}", rounded(time));
    match time < LONG {
        true => line,
        false => format!(
            "{line}: a replay takes {}, and some {left} follow; --quick leaves them out, and does not know how sure the answer is",
            rounded(each)
        ),
    }
}

/// The line about the recordings that still follow. Each takes `each`. `None`: they are soon over.
pub(crate) fn of_recordings(each: Duration, left: usize) -> Option<String> {
    let time = each * left as u32;
    (time >= LONG).then(|| {
        format!(
            "the recordings take about {}: each takes {}, and {left} or more follow (--recordings)",
            rounded(time),
            rounded(each)
        )
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
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
    fn a_long_comparison_has_the_reason_and_a_shorter_way() {
        assert_eq!(of_replays(seconds(1), 4), "this takes about 4 seconds");
        assert_eq!(
            of_replays(seconds(4), 65),
            "this takes about 4 minutes: a replay takes 4 seconds, and some 65 follow; --quick leaves them out, and does \
             not know how sure the answer is"
        );
        assert_eq!(of_recordings(seconds(40), 2), None);
        assert_eq!(
            of_recordings(seconds(300), 2).unwrap(),
            "the recordings take about 10 minutes: each takes 5 minutes, and 2 or more follow (--recordings)"
        );
    }
}
