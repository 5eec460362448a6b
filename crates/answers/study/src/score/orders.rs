//! The test of the order in which predictions put two machines: how certain `compare` calls that
//! order, and how often it is wrong.
//!
//! Two machines with figures of one test and size form a pair. The predicted order of a pair gets
//! the certainty that `compare` would state, by the errors of ratios on systems other than these
//! two.

use std::collections::BTreeMap;

use fabric::accuracy::{Case, Certainty, FigureKind, Side, certainty};

use super::Scored;
use super::intervals::{self, Origin};

/// The least acceptable share of clear orders that are called sure or fairly sure. An order is
/// clear if the published ratio is beyond the square of its interval.
pub(super) const SAID: f64 = 0.9;

/// The figures of two machines in one test, as ratios of the machines.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    kind: FigureKind,
    case: Case,
    systems: Vec<String>,
    /// The predicted time, or inverse bandwidth, of the first machine divided by that of the
    /// second.
    predicted: f64,
    published: f64,
}

/// The numbers of predicted orders of two machines by their certainty, for one kind of figure and
/// one [`Case`] of machines.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Words {
    pub(super) pairs: usize,
    pub(super) sure: usize,
    /// The number of orders that are called sure while the published order is the opposite.
    pub(super) sure_wrong: usize,
    pub(super) fairly_sure: usize,
    pub(super) fairly_sure_wrong: usize,
    /// The number of pairs whose published ratio is beyond the square of the interval.
    pub(super) clear: usize,
    /// The number of clear pairs whose order is called sure or fairly sure.
    pub(super) said: usize,
}

/// All pairs of figures. `are_equal`: true if two machines have equal hosts and libraries; it is
/// called only for machines of the same installation.
pub(super) fn pairs(all: &[Scored], are_equal: impl Fn(&str, &str) -> bool) -> Vec<Pair> {
    let mut by_test: BTreeMap<(&str, usize), Vec<&Scored>> = BTreeMap::new();
    for scored in all.iter().filter(|scored| scored.figure.kind().is_some()) {
        if let (Some(size), None) = (scored.figure.size(), scored.figure.below()) {
            let key = (scored.figure.test.as_str(), size);
            by_test.entry(key).or_default().push(scored);
        }
    }
    let mut found = Vec::new();
    for own in by_test.values() {
        for (at, one) in own.iter().enumerate() {
            let others = own[at + 1..].iter();
            let others = others.filter(|other| other.figure.model_cfg != one.figure.model_cfg);
            found.extend(others.filter_map(|other| pair(one, other, &are_equal)));
        }
    }
    found
}

fn pair(one: &Scored, other: &Scored, are_equal: impl Fn(&str, &str) -> bool) -> Option<Pair> {
    let kind = one.figure.kind()?;
    let time = |value: f64| {
        if kind.is_latency() {
            value
        } else {
            1.0 / value
        }
    };
    let predicted = |scored: &Scored| scored.predicted.as_ref().ok().copied().map(time);
    let published = |scored: &Scored| scored.figure.number().map(time);
    let both = [one, other].map(|scored| scored.figure.system());
    let are_equal = both[0] == both[1] && are_equal(&one.figure.model_cfg, &other.figure.model_cfg);
    let mut systems = both.map(str::to_owned).to_vec();
    systems.sort_unstable();
    systems.dedup();
    Some(Pair {
        kind,
        case: Case::of_ratio(one.case?, other.case?, are_equal),
        systems,
        predicted: predicted(one)? / predicted(other)?,
        published: published(one)? / published(other)?,
    })
}

impl Pair {
    pub(super) fn case(&self) -> Case {
        self.case
    }

    /// The error of the pair's ratio. Few systems have equal hosts, so such an error is used for
    /// all kinds of its quantity: latencies, streams, or long bandwidths.
    pub(super) fn origins(&self) -> Vec<Origin> {
        let quotient = self.published / self.predicted;
        spread(self.kind, self.case, self.systems.clone(), quotient)
    }

    /// The certainty of the predicted order, by errors of ratios on other systems, and the factor
    /// of their interval.
    fn word(&self, origins: &[Origin]) -> (Certainty, f64) {
        let interval = intervals::without(origins, self.case, self.kind, &self.systems);
        let factor = interval.map_or(f64::INFINITY, |[_, high]| high);
        let shares = &[(self.kind, 1.0)];
        let lead = self.predicted.max(1.0 / self.predicted);
        let side = |time: f64| Side { time, shares };
        (certainty(side(1.0), side(lead), 1.0, |_| factor), factor)
    }
}

/// The error of a ratio, once for each kind for which it is used.
pub(super) fn spread(
    kind: FigureKind,
    case: Case,
    systems: Vec<String>,
    quotient: f64,
) -> Vec<Origin> {
    let quantity = |kind: FigureKind| (kind.is_latency(), kind == FigureKind::LongBandwidth);
    let counts = |other: &FigureKind| match case {
        Case::RatioEqual => quantity(*other) == quantity(kind),
        _ => *other == kind,
    };
    let kinds = FigureKind::ALL.into_iter().filter(counts);
    let origin = |kind| Origin {
        kind,
        case,
        systems: systems.clone(),
        quotient,
    };
    kinds.map(origin).collect()
}

impl Words {
    /// The numbers of orders by certainty, for each case and kind.
    pub(super) fn by_kind(pairs: &[Pair], origins: &[Origin]) -> Vec<(Case, FigureKind, Words)> {
        let mut found: BTreeMap<(Case, FigureKind), Words> = BTreeMap::new();
        for pair in pairs {
            let words = found.entry((pair.case, pair.kind)).or_default();
            words.count(pair, pair.word(origins));
        }
        let each = found.into_iter();
        each.map(|((case, kind), words)| (case, kind, words))
            .collect()
    }

    fn count(&mut self, pair: &Pair, (word, factor): (Certainty, f64)) {
        let is_wrong = pair.predicted.ln() * pair.published.ln() < 0.0;
        self.pairs += 1;
        match word {
            Certainty::Sure => {
                self.sure += 1;
                self.sure_wrong += usize::from(is_wrong);
            }
            Certainty::FairlySure => {
                self.fairly_sure += 1;
                self.fairly_sure_wrong += usize::from(is_wrong);
            }
            Certainty::Unsure => {}
        }
        if pair.published.ln().abs() > 2.0 * factor.ln() {
            self.clear += 1;
            self.said += usize::from(word > Certainty::Unsure);
        }
    }

    /// The numbers of right and wrong orders, summed over all cases and kinds.
    pub(super) fn sum(all: &[(Case, FigureKind, Words)]) -> Words {
        all.iter().fold(Words::default(), |sum, (_, _, one)| Words {
            pairs: sum.pairs + one.pairs,
            sure: sum.sure + one.sure,
            sure_wrong: sum.sure_wrong + one.sure_wrong,
            fairly_sure: sum.fairly_sure + one.fairly_sure,
            fairly_sure_wrong: sum.fairly_sure_wrong + one.fairly_sure_wrong,
            clear: sum.clear + one.clear,
            said: sum.said + one.said,
        })
    }

    /// True if no order that is called sure is wrong, and enough clear orders are called sure or
    /// fairly sure.
    pub(super) fn hold(&self) -> bool {
        self.sure_wrong == 0 && self.said as f64 >= SAID * self.clear as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures;
    use super::*;

    fn scored(text: &str, predicted: &[f64]) -> Vec<Scored> {
        let header = "id,test,model_cfg,msg_size,value,unit,system\n";
        let figures = figures::parse("it", &format!("{header}{text}")).unwrap();
        let each = figures.into_iter().zip(predicted);
        each.map(|(figure, predicted)| Scored {
            figure,
            case: Some(Case::Named),
            predicted: Ok(*predicted),
        })
        .collect()
    }

    #[test]
    fn machines_with_a_test_and_a_size_in_common_are_pairs() {
        let all = scored(
            "1,osu_latency,a,8,1.0,us,\n2,osu_latency,b,8,2.0,us,\n3,osu_latency,a,16,1.0,us,\n\
             4,osu_bw,b,8,5,MB/s,\n5,osu_bw,c,8,10,MB/s,b\n6,osu_latency,a,8,1.1,us,\n",
            &[1.0, 1.0, 1.0, 5.0, 5.0, 1.0],
        );
        let found = pairs(&all, |_, _| true);
        let seen: Vec<_> = found
            .iter()
            .map(|pair| (pair.case, pair.systems.len(), pair.published))
            .collect();
        let wanted = [
            // For bandwidths the ratio is of inverses; both machines belong to one installation.
            (Case::RatioEqual, 1, 2.0),
            (Case::RatioNamed, 2, 0.5),
            (Case::RatioNamed, 2, 2.0 / 1.1),
        ];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_wrong_order_that_is_called_sure_is_counted() {
        let case = Case::RatioNamed;
        let kind = FigureKind::ShortLatency;
        let pair = |predicted: f64, published: f64| Pair {
            kind,
            case,
            systems: vec!["a".into(), "b".into()],
            predicted,
            published,
        };
        // Two systems widen the interval of c and d to 1.2; the error of a is left out, since a is
        // in the pair.
        let errors = [("c", 1.2_f64.powf(2.0 / 3.0)), ("d", 1.1), ("a", 9.0)];
        let origins: Vec<Origin> = errors
            .iter()
            .flat_map(|(name, error)| spread(kind, case, vec![(*name).into()], *error))
            .collect();
        let pairs = [
            pair(1.5, 1.6),
            pair(1.5, 0.9),
            pair(1.3, 1.2),
            pair(1.1, 1.5),
            pair(1.0, 1.0),
        ];
        let found = Words::by_kind(&pairs, &origins);
        let words = Words {
            pairs: 5,
            sure: 2,
            sure_wrong: 1,
            fairly_sure: 1,
            fairly_sure_wrong: 0,
            clear: 2,
            said: 1,
        };
        assert_eq!(found, [(case, kind, words)]);
        assert!(!words.hold());
        let right = Words {
            sure_wrong: 0,
            said: 2,
            ..words
        };
        assert!(right.hold() && Words::sum(&[(case, kind, right)]) == right);
    }

    #[test]
    fn a_ratio_of_equal_hosts_counts_for_all_kinds_of_its_quantity() {
        let kinds = |case: Case, kind: FigureKind| {
            let found = spread(kind, case, Vec::new(), 1.0);
            found.iter().map(|one| one.kind).collect::<Vec<_>>()
        };
        let short = FigureKind::ShortLatency;
        assert_eq!(kinds(Case::RatioEqual, short), FigureKind::ALL[..3]);
        assert_eq!(
            kinds(Case::RatioEqual, FigureKind::MiddleStream),
            FigureKind::ALL[3..5]
        );
        assert_eq!(
            kinds(Case::RatioEqual, FigureKind::LongBandwidth),
            FigureKind::ALL[5..]
        );
        assert_eq!(kinds(Case::RatioNamed, short), [short]);
    }
}
