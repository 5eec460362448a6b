//! The certainty that one machine is faster than another, from the errors of ratios.
//!
//! The share of a time that the network costs is off by the error of its kind of figure. An order
//! that stays with this error is fairly sure; one that stays with twice the error is sure. Twice
//! means its square, as errors are factors.

use super::case::Case;
use super::table::FigureKind;

/// The certainty of an order of two machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// An error as nine in ten published ratios have it may change the order.
    Unsure,
    /// Such an error does not, but twice the error may.
    FairlySure,
    /// Twice the error does not.
    Sure,
}

impl Certainty {
    /// The word in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Unsure => "unsure",
            Certainty::FairlySure => "fairly sure",
            Certainty::Sure => "sure",
        }
    }
}

/// One of two machines.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The time that it takes; or the inverse of a bandwidth.
    pub time: f64,
    /// The shares of this time that the network costs, each with the kind of figure that it is
    /// like.
    pub shares: &'a [(FigureKind, f64)],
}

impl Side<'_> {
    /// The time if the network's share of each kind takes this many times as long.
    fn with(&self, factor: impl Fn(FigureKind) -> f64) -> f64 {
        // An unknown error is endless, and nothing times endless is no number.
        let shares = self.shares.iter().filter(|(_, share)| *share > 0.0);
        let more = shares.map(|(kind, share)| share * (factor(*kind) - 1.0));
        self.time * (1.0 + more.sum::<f64>())
    }
}

/// The certainty that `best` takes at most `margin` times as long as `rival`. `factor`: nine in ten
/// ratios of figures of a kind are within this factor of their prediction.
pub fn certainty(
    best: Side,
    rival: Side,
    margin: f64,
    factor: impl Fn(FigureKind) -> f64,
) -> Certainty {
    // Each of both may have the whole error.
    let stays = |times: i32| {
        let factor = |kind| factor(kind).powi(times);
        best.with(factor) <= margin * rival.time
            && best.time <= margin * rival.with(|kind| 1.0 / factor(kind))
    };
    match (stays(1), stays(2)) {
        (true, true) => Certainty::Sure,
        (true, false) => Certainty::FairlySure,
        (false, _) => Certainty::Unsure,
    }
}

impl Case {
    /// Nine in ten ratios of this kind are within this factor of their prediction; without end
    /// where too few are published.
    pub fn ratio_factor(self, kind: FigureKind) -> f64 {
        kind.accuracy(self).map_or(f64::INFINITY, |one| one.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[(FigureKind, f64)] = &[(FigureKind::ShortLatency, 1.0)];
    const TENTH: &[(FigureKind, f64)] = &[(FigureKind::ShortLatency, 0.1)];

    fn of(time: f64, shares: &[(FigureKind, f64)], rival: f64) -> Certainty {
        let best = Side { time, shares };
        let rival = Side {
            time: rival,
            shares,
        };
        certainty(best, rival, 1.0, |_| 1.5)
    }

    #[test]
    fn the_word_follows_the_lead_over_the_error() {
        assert_eq!(of(1.0, ALL, 1.4), Certainty::Unsure);
        assert_eq!(of(1.0, ALL, 1.6), Certainty::FairlySure);
        assert_eq!(of(1.0, ALL, 2.3), Certainty::Sure);
        assert_eq!(of(1.0, ALL, 1.0), Certainty::Unsure);
    }

    #[test]
    fn computing_has_no_error_of_the_network() {
        assert_eq!(of(1.0, TENTH, 1.07), Certainty::FairlySure);
        assert_eq!(of(1.0, TENTH, 1.2), Certainty::Sure);
        assert_eq!(of(1.0, &[], 1.01), Certainty::Sure);
    }

    #[test]
    fn the_rival_may_have_the_error() {
        // The network is a tenth of the best machine's time, but nearly all of the other's.
        let best = Side {
            time: 1.0,
            shares: TENTH,
        };
        let rival = Side {
            time: 1.3,
            shares: ALL,
        };
        assert_eq!(certainty(best, rival, 1.0, |_| 1.5), Certainty::Unsure);
    }

    #[test]
    fn an_unknown_error_counts_where_the_network_does() {
        let side = |time, shares| Side { time, shares };
        let unknown = |_| f64::INFINITY;
        let none = &[(FigureKind::LongLatency, 0.0)];
        assert_eq!(
            certainty(side(1.0, ALL), side(9.0, ALL), 1.0, unknown),
            Certainty::Unsure
        );
        assert_eq!(
            certainty(side(1.0, none), side(1.1, none), 1.0, unknown),
            Certainty::Sure
        );
    }
}
