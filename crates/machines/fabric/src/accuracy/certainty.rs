//! The certainty that one machine is faster than another, from the errors of predicted ratios.
//!
//! The network's share of a time has the error of its kind of figure. If the order of two machines
//! stays the same with this error, it is fairly sure; if it stays the same with twice the error, it
//! is sure. Errors are factors, so "twice" means the square.

use super::case::Case;
use super::table::FigureKind;

/// The certainty with which the order of two machines is predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The order may be reversed by the error that nine in ten published ratios do not exceed.
    Unsure,
    /// The order is not reversed by the error that nine in ten published ratios do not exceed, but
    /// may be by twice this error.
    FairlySure,
    /// The order is not reversed by twice the error that nine in ten published ratios do not
    /// exceed.
    Sure,
}

impl Certainty {
    /// The name of the certainty in sentences for users.
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Unsure => "unsure",
            Certainty::FairlySure => "fairly sure",
            Certainty::Sure => "sure",
        }
    }
}

/// One of the two machines that are compared.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The time on this machine, or the inverse of its bandwidth.
    pub time: f64,
    /// The shares of the time for which the network is responsible, each with the kind of figure
    /// whose error it has.
    pub shares: &'a [(FigureKind, f64)],
}

impl Side<'_> {
    /// The time if the network's share of each kind takes `factor` times as long.
    fn with(&self, factor: impl Fn(FigureKind) -> f64) -> f64 {
        // An unknown error is infinite, and 0 times infinity is not a number.
        let shares = self.shares.iter().filter(|(_, share)| *share > 0.0);
        let more = shares.map(|(kind, share)| share * (factor(*kind) - 1.0));
        self.time * (1.0 + more.sum::<f64>())
    }
}

/// The certainty that `best` takes at most `margin` times as long as `rival`. `factor` gives for
/// each kind of figure the error: nine in ten ratios differ from their prediction by at most this
/// factor.
pub fn certainty(
    best: Side,
    rival: Side,
    margin: f64,
    factor: impl Fn(FigureKind) -> f64,
) -> Certainty {
    // Each of the two machines may have the whole error.
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
    /// The factor by which nine in ten ratios of this case and this kind of figure differ at most
    /// from their prediction; infinite if too few ratios are published.
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
        // The network is a tenth of the best machine's time, but all of the rival's.
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
