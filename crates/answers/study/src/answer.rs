//! The answer to the question of a published document, which of two configurations is better, by
//! message size: the ranges of sizes in which the curve of one is better than that of the other.

use results::sizes::size_label;

use crate::curves::Curves;
use crate::document::Comparison;

/// Curves whose values differ by at most this share count as equal.
pub(crate) const EQUAL: f64 = 0.02;

/// The better one of two curves in a range of message sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    First,
    Second,
    Neither,
}

/// Neighbouring measured sizes at which the same curve is better.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) better: Better,
    /// The smallest and the largest measured size of the range.
    pub(crate) sizes: [usize; 2],
    /// The greatest advantage in the range, as a quotient of at least 1.
    pub(crate) most: f64,
}

/// The ranges of sizes with one better curve, over all measured sizes, in ascending order.
pub(crate) fn ranges(found: &Curves, of: &str, first: &str, second: &str) -> Vec<Range> {
    let mut all: Vec<Range> = Vec::new();
    for (size, ratio) in found.ratios(of, first, second) {
        let gain = match found.unit(of).more_is_better() {
            true => ratio,
            false => 1.0 / ratio,
        };
        let better = match gain {
            gain if gain > 1.0 + EQUAL => Better::First,
            gain if gain < 1.0 - EQUAL => Better::Second,
            _ => Better::Neither,
        };
        let most = gain.max(1.0 / gain);
        match all.last_mut() {
            Some(last) if last.better == better => {
                last.sizes[1] = size;
                last.most = last.most.max(most);
            }
            _ => all.push(Range {
                better,
                sizes: [size, size],
                most,
            }),
        }
    }
    all
}

/// The ranges as text. `names` are the names of the two curves.
pub(crate) fn words(ranges: &[Range], names: [&str; 2]) -> String {
    let part = |range: &Range| {
        let [from, to] = range.sizes.map(size_label);
        let sizes = match from == to {
            true => from,
            false => format!("{from} to {to}"),
        };
        let gain = (range.most - 1.0) * 100.0;
        match range.better {
            Better::First => format!("{sizes}: {} (up to {gain:.0} %)", names[0]),
            Better::Second => format!("{sizes}: {} (up to {gain:.0} %)", names[1]),
            Better::Neither => format!("{sizes}: equal"),
        }
    };
    ranges.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// One sentence about a measurement: the size from which on the first curve is better, and the
/// sizes at which the second one is.
pub(crate) fn sentence(found: &Curves, of: &str, comparison: &Comparison) -> String {
    let Comparison {
        policy,
        first,
        second,
        names: [one, other],
        ..
    } = comparison;
    let ranges = ranges(found, of, first, second);
    let losing = ranges.iter().filter(|r| r.better == Better::Second);
    let stays = match ranges.last() {
        Some(last) if last.better == Better::First => {
            format!("beats {other} from {} on", size_label(last.sizes[0]))
        }
        _ => format!("does not beat {other} at the largest sizes"),
    };
    let places: Vec<String> = losing.map(place).collect();
    let loses = match places.is_empty() {
        true => "nowhere".to_owned(),
        false => places.join(" and "),
    };
    let quantity = match of {
        "bw" => "bandwidth",
        "bibw" => "bidirectional bandwidth",
        other => other,
    };
    format!("In {quantity}, {one} with {policy} {stays}; {other} wins {loses}.")
}

/// A range of message sizes as text.
fn place(range: &Range) -> String {
    let [from, to] = range.sizes.map(size_label);
    match from == to {
        true => format!("at {from}"),
        false => format!("between {from} and {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::modelled::Curve;

    use crate::benchmark::Benchmark;
    use crate::curves::Measured;

    fn found() -> Curves {
        let curve = |label: &str, values: [f64; 5]| Curve {
            label: label.into(),
            points: (0..5).map(|bits| 1 << bits).zip(values).collect(),
        };
        let one = curve("one", [10.0, 10.0, 10.0, 30.0, 40.0]);
        let other = curve("other", [10.05, 15.0, 20.0, 20.0, 20.0]);
        let measured = |benchmark| Measured {
            benchmark,
            swept: Vec::new(),
            curves: vec![one.clone(), other.clone()],
        };
        let bandwidth = ("bw".into(), measured(Benchmark::Bw));
        Curves([bandwidth, ("latency".into(), measured(Benchmark::Latency))].into())
    }

    #[test]
    fn neighbouring_sizes_with_one_answer_are_one_range() {
        let ranges = ranges(&found(), "bw", "one", "other");
        assert_eq!(
            words(&ranges, ["1", "2"]),
            "1 B: equal; 2 B to 4 B: 2 (up to 100 %); 8 B to 16 B: 1 (up to 100 %)"
        );
    }

    #[test]
    fn less_latency_is_better() {
        let ranges = ranges(&found(), "latency", "one", "other");
        let better: Vec<Better> = ranges.iter().map(|range| range.better).collect();
        assert_eq!(better, [Better::Neither, Better::First, Better::Second]);
    }

    #[test]
    fn a_range_of_one_size_is_a_size() {
        let range = |from, to| Range {
            better: Better::Second,
            sizes: [from, to],
            most: 1.5,
        };
        assert_eq!(place(&range(128, 128)), "at 128 B");
        assert_eq!(place(&range(1536, 16384)), "between 1536 B and 16 KiB");
    }

    #[test]
    fn the_sentence_names_both_sides() {
        let comparison = |second: &str| Comparison {
            policy: "x".into(),
            first: "one".into(),
            second: second.into(),
            names: ["2 x QDR".into(), "FDR".into()],
            drawn: true,
        };
        assert_eq!(
            sentence(&found(), "bw", &comparison("other")),
            "In bandwidth, 2 x QDR with x beats FDR from 8 B on; FDR wins between 2 B and 4 B."
        );
        assert_eq!(
            sentence(&found(), "bw", &comparison("one")),
            "In bandwidth, 2 x QDR with x does not beat FDR at the largest sizes; FDR wins nowhere."
        );
    }
}
