//! `--beside`: compares the figures of every choice with figures of an earlier run, so that no
//! alternative becomes slower unnoticed.
//!
//! A real machine is faster on one day than on another, for all choices alike. So each figure is
//! divided by that of the earlier run, and a choice is reported as slower only if its quotient is
//! worse than the median of all quotients, which the summary names.

use results::sizes::size_label;
use results::stats::median;
use results::table::ratio;
use serde::Serialize;

use super::kept::{Figure, KeptPoint};

/// The ratio of the present time to the earlier one above which a choice counts as slower, without
/// noise.
const SLOWER: f64 = 1.05;
/// The fewest figures from which the drift of the machine between two runs is computed. With fewer,
/// it counts as 1.
const FEWEST: usize = 4;

/// The comparison of two runs of `--every-choice`: the changes of the times of their choices.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Comparison {
    /// Every choice of every point that both runs measured with the same proximity of the cores.
    changes: Vec<Change>,
    /// The median quotient of present and earlier times on real machines; 1 for modelled machines,
    /// whose figures are exact.
    drift: f64,
    /// The number of points that are not compared, because the ranks' cores had another proximity
    /// in the earlier run.
    other_state: usize,
    /// The number of points of this run that the earlier run did not measure.
    absent: usize,
}

/// The change of a choice's time from the earlier run to this one.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Change {
    benchmark: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fabric: Option<String>,
    ranks: usize,
    size: usize,
    choice: String,
    /// The time of the choice in this run, divided by its time in the earlier run.
    now_over_then: f64,
    /// The least value of that quotient within the confidence intervals of both times.
    #[serde(skip)]
    least: f64,
    #[serde(skip)]
    noise: f64,
    is_slower: bool,
}

/// Compares the points of this run with earlier ones.
pub(super) fn compare(earlier: &[KeptPoint], now: &[KeptPoint]) -> Comparison {
    let mut comparison = Comparison::default();
    for point in now {
        match earlier.iter().find(|one| one.key() == point.key()) {
            None => comparison.absent += 1,
            Some(then) if then.cores != point.cores => comparison.other_state += 1,
            Some(then) => comparison.changes.extend(changes(then, point)),
        }
    }
    let real = comparison.changes.iter();
    let real = real.filter(|one| one.fabric.is_none());
    let ratios: Vec<f64> = real.map(|one| one.now_over_then).collect();
    comparison.drift = match ratios.len() {
        0..FEWEST => 1.0,
        _ => median(&ratios),
    };
    for one in &mut comparison.changes {
        let drift = match one.fabric {
            None => comparison.drift,
            Some(_) => 1.0,
        };
        let is_beyond = one.now_over_then / drift > SLOWER + one.noise;
        one.is_slower = is_beyond && one.least / drift > 1.0;
    }
    comparison
}

fn changes(then: &KeptPoint, now: &KeptPoint) -> Vec<Change> {
    let noise = |point: &KeptPoint| point.regret.as_ref().and_then(|regret| regret.noise);
    let noise = noise(then).unwrap_or(0.0).max(noise(now).unwrap_or(0.0));
    let pairs = now.figures().filter_map(|(name, figure)| {
        let mut known = then.figures();
        Some((name, known.find(|(known, _)| *known == name)?.1, figure))
    });
    let change = |(name, old, new): (&str, &Figure, &Figure)| {
        let (ratio, least) = match now.is_rate() {
            true => (old.median / new.median, low(old) / high(new)),
            false => (new.median / old.median, low(new) / high(old)),
        };
        Change {
            benchmark: now.benchmark.clone(),
            fabric: now.fabric.clone(),
            ranks: now.ranks,
            size: now.size,
            choice: name.to_owned(),
            now_over_then: results::stats::round_to(ratio, 4),
            least,
            noise,
            is_slower: false,
        }
    };
    pairs.map(change).collect()
}

fn low(figure: &Figure) -> f64 {
    figure.interval.map_or(figure.median, |(low, _)| low)
}

fn high(figure: &Figure) -> f64 {
    figure.interval.map_or(figure.median, |(_, high)| high)
}

impl Comparison {
    /// A line for each choice that is slower, and a summary; or all choices as JSON lines.
    pub(super) fn text(&self, json: bool) -> String {
        if json {
            let line = |change: &Change| serde_json::to_string(change).expect("always JSON") + "\n";
            return self.changes.iter().map(line).collect();
        }
        let slower: Vec<&Change> = self.changes.iter().filter(|one| one.is_slower).collect();
        let lines = slower.iter().map(|one| {
            let machine = one.fabric.as_ref().map(|name| format!(" on {name}"));
            format!(
                "Slower than before: {}{}, {} ranks, {}: {}, {} of the earlier time\n",
                one.benchmark,
                machine.unwrap_or_default(),
                one.ranks,
                size_label(one.size),
                one.choice,
                ratio(one.now_over_then)
            )
        });
        let lines: String = lines.collect();
        let (all, count) = (self.changes.len(), slower.len());
        let mut end = format!("{count} of {all} figures are slower than those kept before");
        if (self.drift - 1.0).abs() >= 0.005 {
            let drift = ratio(self.drift);
            end += &format!(", beyond the {drift} times of the median of all figures");
        }
        if self.other_state > 0 {
            let points = self.other_state;
            end +=
                &format!("; {points} points are not compared, because the cores had another state");
        }
        if self.absent > 0 {
            end += &format!("; {} points are new", self.absent);
        }
        format!("{lines}{end}.\n")
    }
}

#[cfg(test)]
mod tests {
    use conditions::Proximity;
    use results::Unit;

    use super::super::point::Point;
    use super::super::point::tests::{choice, point};
    use super::*;

    fn kept(default: f64, packets: f64) -> Point {
        let choices = vec![
            choice("eager", &[default; 5]),
            choice("packets", &[packets; 5]),
        ];
        point(4096, &[default; 5], choices)
    }

    fn compared(then: Point, now: Point) -> Comparison {
        compare(
            &[KeptPoint::of(&then, false)],
            &[KeptPoint::of(&now, false)],
        )
    }

    #[test]
    fn a_slower_alternative_has_a_line_even_where_the_default_is_as_fast() {
        let text = compared(kept(1.0, 2.0), kept(1.0, 2.4)).text(false);
        assert_eq!(
            text,
            "Slower than before: latency, 2 ranks, 4 KiB: packets, 1.20 of the earlier time\n\
             1 of 3 figures are slower than those kept before.\n"
        );
        assert!(
            compared(kept(1.0, 2.0), kept(1.04, 1.0))
                .text(false)
                .starts_with("0 of 3")
        );
        let lines = compared(kept(1.0, 2.0), kept(1.0, 2.4)).text(true);
        assert!(lines.contains("\"choice\":\"packets\",\"now_over_then\":1.2,\"is_slower\":true}"));
    }

    #[test]
    fn a_machine_that_is_slower_as_a_whole_is_no_slower_choice() {
        let points = |factor: f64, packets: f64| -> Vec<KeptPoint> {
            let of = |size| {
                let choices = vec![
                    choice("eager", &[factor; 5]),
                    choice("packets", &[factor * packets; 5]),
                ];
                KeptPoint::of(&point(size, &[factor; 5], choices), false)
            };
            [8, 64, 512].map(of).into()
        };
        let text = compare(&points(1.0, 2.0), &points(1.7, 2.6)).text(false);
        assert!(text.starts_with("Slower than before: latency, 2 ranks, 8 B: packets, 2.21 of"));
        let end = "3 of 9 figures are slower than those kept before, beyond the 1.70 times of the \
                   median of all figures.\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn less_is_slower_for_rates() {
        let rate = |default, packets| Point {
            unit: Unit::MegabytesPerSecond,
            ..kept(default, packets)
        };
        let text = compared(rate(100.0, 200.0), rate(50.0, 400.0)).text(false);
        assert!(
            text.contains("default, 2.00 of") && !text.contains("packets,"),
            "{text}"
        );
    }

    #[test]
    fn other_states_and_new_points_are_counted() {
        let mut far = kept(9.0, 9.0);
        far.places = vec![Some(Proximity::Far); 5];
        let text = compared(kept(1.0, 1.0), far).text(false);
        assert!(text.contains("1 points are not compared"), "{text}");
        let text = compare(&[], &[KeptPoint::of(&kept(1.0, 1.0), false)]).text(false);
        assert!(text.contains("; 1 points are new"), "{text}");
    }
}
