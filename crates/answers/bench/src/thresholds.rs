//! Thresholds: each rule compares the measured library with other libraries or with a limit of the
//! machine, by medians of the same rounds.

use results::Unit;
use results::sizes::size_label;
use results::table::{number, ratio};

use crate::measurement::Measurement;
use crate::table::best;

/// A threshold: a time of at most `factor` times the reference, or a rate of at least `factor`
/// times it.
struct Rule {
    benchmark: &'static str,
    ranks: usize,
    /// The first and the last size; the rule applies to the powers of two between them.
    sizes: (usize, usize),
    reference: Reference,
    factor: f64,
}

enum Reference {
    /// The best result among the other libraries of the run.
    BestPeer,
    /// The result of the library whose label contains this text.
    Peer(&'static str),
    /// A limit of the machine: its benchmark, and its name in the report.
    Limit(&'static str, &'static str),
    /// The best result of the measured library at a larger size.
    LargerSizes,
}

const EVERY: (usize, usize) = (1, 4 << 20);

#[rustfmt::skip]
const RULES: [Rule; 18] = [
    rule("latency", 2, (8, 8), Reference::BestPeer, 0.6),
    rule("latency", 2, (8, 8), Reference::Limit("limits/ring-latency", "a bare slot ring"), 1.4),
    rule("latency", 2, EVERY, Reference::BestPeer, 1.05),
    rule("latency", 2, EVERY, Reference::LargerSizes, 1.05),
    rule("mbw-mr", 2, (8, 8), Reference::BestPeer, 1.3),
    rule("mbw-mr", 2, (8, 8), Reference::Limit("limits/ring-rate", "a bare slot ring"), 0.8),
    rule("bw", 2, (64, 4 << 20), Reference::BestPeer, 0.97),
    rule("bw", 2, (1 << 10, 4 << 10), Reference::BestPeer, 1.15),
    rule("bibw", 2, (64, 4 << 20), Reference::BestPeer, 0.97),
    rule("bibw", 2, (1 << 10, 4 << 10), Reference::BestPeer, 1.15),
    rule("barrier", 2, (0, 0), Reference::BestPeer, 1.0),
    rule("barrier", 4, (0, 0), Reference::BestPeer, 0.7),
    rule("barrier", 8, (0, 0), Reference::BestPeer, 1.0),
    rule("allreduce", 2, (8, 8), Reference::BestPeer, 1.0),
    rule("allreduce", 4, (8, 8), Reference::BestPeer, 0.7),
    rule("allreduce", 8, (8, 8), Reference::BestPeer, 1.0),
    rule("init", 2, (0, 0), Reference::Peer("mpich"), 0.1),
    rule("init/private", 2, (0, 0), Reference::BestPeer, 1.0),
];

const fn rule(
    benchmark: &'static str,
    ranks: usize,
    sizes: (usize, usize),
    reference: Reference,
    factor: f64,
) -> Rule {
    Rule {
        benchmark,
        ranks,
        sizes,
        reference,
        factor,
    }
}

/// The outcome of a threshold's check, as text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RuleOutcome {
    pub(crate) what: String,
    pub(crate) wanted: String,
    /// The measured value at the size that has the smallest margin.
    pub(crate) ours: String,
    pub(crate) reference: String,
    pub(crate) ratio: String,
    /// For a rule about several sizes: the sizes that miss it, or the one with the smallest margin.
    pub(crate) remark: String,
    pub(crate) met: bool,
}

/// The outcomes of all rules for which there are figures.
pub(crate) fn judge(all: &[Measurement], own: &str) -> Vec<RuleOutcome> {
    RULES
        .iter()
        .filter_map(|rule| rule.judge(all, own))
        .chain(growth(all, own))
        .collect()
}

impl Rule {
    fn judge(&self, all: &[Measurement], own: &str) -> Option<RuleOutcome> {
        let (first, last) = self.sizes;
        let fits = |m: &&Measurement| {
            m.label == own
                && m.benchmark == self.benchmark
                && m.ranks == self.ranks
                && (first..=last).contains(&m.size)
                && (m.size == 0 || m.size.is_power_of_two())
        };
        let unit = all.iter().find(fits)?.unit;
        let pairs = all
            .iter()
            .filter(fits)
            .filter_map(|ours| Some((ours.size, ours.median(), self.reference(all, own, ours)?)));
        let pairs: Vec<(usize, f64, f64)> = pairs.collect();
        // The larger the value, the worse.
        let badness = |&(_, ours, theirs): &(usize, f64, f64)| {
            if unit.more_is_better() {
                theirs / ours
            } else {
                ours / theirs
            }
        };
        let &(size, ours, theirs) = pairs
            .iter()
            .max_by(|a, b| badness(a).total_cmp(&badness(b)))?;
        let meets = |&(_, ours, theirs): &(usize, f64, f64)| self.met(unit, ours / theirs);
        let failing: Vec<String> = pairs
            .iter()
            .filter(|pair| !meets(pair))
            .map(|pair| size_label(pair.0))
            .collect();
        let remark = match (pairs.len(), failing.len()) {
            (1, _) => String::new(),
            (_, 0) => format!("smallest margin at {}", size_label(size)),
            (sizes, _) => format!(
                "missed at {} of {sizes} sizes: {}",
                failing.len(),
                failing.join(", ")
            ),
        };
        Some(RuleOutcome {
            what: self.what(),
            wanted: self.wanted(unit),
            ours: format!("{} {}", number(ours, unit), unit.shown()),
            reference: format!("{} {}", number(theirs, unit), unit.shown()),
            ratio: ratio(ours / theirs),
            remark,
            met: failing.is_empty(),
        })
    }

    fn reference(&self, all: &[Measurement], own: &str, ours: &Measurement) -> Option<f64> {
        let same = |m: &&Measurement| {
            m.label != own
                && m.benchmark == ours.benchmark
                && m.ranks == ours.ranks
                && m.size == ours.size
        };
        match self.reference {
            Reference::BestPeer => {
                let peers: Vec<f64> = all.iter().filter(same).map(Measurement::median).collect();
                (!peers.is_empty()).then(|| best(&peers, ours.unit))
            }
            Reference::Peer(name) => {
                let peer = all.iter().filter(same).find(|m| m.label.contains(name));
                peer.map(Measurement::median)
            }
            Reference::Limit(name, _) => all
                .iter()
                .find(|m| m.benchmark == name)
                .map(Measurement::median),
            Reference::LargerSizes => {
                let larger = |m: &&Measurement| {
                    m.label == own
                        && m.benchmark == ours.benchmark
                        && m.ranks == ours.ranks
                        && m.size > ours.size
                        && m.size.is_power_of_two()
                };
                let larger: Vec<f64> = all.iter().filter(larger).map(Measurement::median).collect();
                (!larger.is_empty()).then(|| best(&larger, ours.unit))
            }
        }
    }

    fn met(&self, unit: Unit, ratio: f64) -> bool {
        if unit.more_is_better() {
            ratio >= self.factor
        } else {
            ratio <= self.factor
        }
    }

    fn what(&self) -> String {
        let (first, last) = self.sizes;
        let name = match self.benchmark {
            "mbw-mr" => "message rate",
            "init" => "launcher, Init and Finalize",
            "init/private" => "private memory after Init",
            other => other,
        };
        let sizes = match (first, last) {
            (0, 0) => String::new(),
            (first, last) if first == last => format!(", {}", size_label(first)),
            (first, last) => format!(", {} to {}", size_label(first), size_label(last)),
        };
        format!("{name}{sizes}, {} ranks", self.ranks)
    }

    fn wanted(&self, unit: Unit) -> String {
        let side = if unit.more_is_better() {
            "at least"
        } else {
            "at most"
        };
        let whose = match self.reference {
            Reference::BestPeer => "the best peer's",
            Reference::Peer(name) => &format!("{name}'s"),
            Reference::Limit(_, name) => &format!("{name}'s"),
            Reference::LargerSizes => "that of any larger size",
        };
        format!("{side} {} × {whose}", self.factor)
    }
}

/// Checks that ranks cost nothing unless this rank sends to them or receives from them: its private
/// memory must be equal with eight and with two ranks, up to the kernel's rounding. `None`: these
/// were not measured.
fn growth(all: &[Measurement], own: &str) -> Option<RuleOutcome> {
    const ROUNDING_KIB: f64 = 64.0;
    let private = |ranks: usize| {
        let of =
            |m: &&Measurement| m.label == own && m.benchmark == "init/private" && m.ranks == ranks;
        all.iter().find(of).map(Measurement::median)
    };
    let (few, many) = (private(2)?, private(8)?);
    let text = |kib| {
        format!(
            "{} {}",
            number(kib, Unit::Kibibytes),
            Unit::Kibibytes.shown()
        )
    };
    Some(RuleOutcome {
        what: "private memory after Init, 8 ranks".into(),
        wanted: "as with 2 ranks".into(),
        ours: text(many),
        reference: text(few),
        ratio: ratio(many / few),
        remark: String::new(),
        met: many <= few + ROUNDING_KIB,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(label: &str, benchmark: &str, size: usize, unit: Unit, value: f64) -> Measurement {
        crate::measurement::tests::measured(label, benchmark, size, unit, &[value])
    }

    #[test]
    fn times_are_judged_by_the_slowest_and_against_the_fastest_peer() {
        let us = |label, size, value| measured(label, "latency", size, Unit::Microseconds, value);
        let mut all = vec![
            us("own", 8, 0.3),
            us("own", 16, 0.5),
            us("own", 24, 99.0),
            us("own", 32, 0.45),
            us("a", 8, 0.6),
            us("a", 16, 0.4),
            us("a", 24, 1.0),
            us("b", 8, 0.9),
            us("b", 16, 0.9),
            us("b", 24, 1.0),
        ];
        all.push(measured(
            "machine",
            "limits/ring-latency",
            8,
            Unit::Microseconds,
            0.2,
        ));
        let verdicts = judge(&all, "own");
        assert_eq!(verdicts.len(), 4);
        assert!(verdicts[0].met, "{:?}", verdicts[0]);
        assert_eq!(verdicts[0].ratio, "0.50");
        assert!(
            !verdicts[1].met,
            "0.3 is above 1.4 × 0.2: {:?}",
            verdicts[1]
        );
        assert!(!verdicts[2].met);
        assert_eq!(verdicts[2].remark, "missed at 1 of 2 sizes: 16 B");
        // 16 B takes longer than 32 B; 24 is not a power of two.
        assert!(!verdicts[3].met);
        assert_eq!(verdicts[3].remark, "missed at 1 of 2 sizes: 16 B");
    }

    #[test]
    fn rates_are_judged_by_the_lowest_and_against_the_highest_peer() {
        let mb = |label, size, value| measured(label, "bw", size, Unit::MegabytesPerSecond, value);
        let all = [
            mb("own", 64, 98.0),
            mb("a", 64, 100.0),
            mb("b", 64, 50.0),
            mb("own", 1024, 110.0),
            mb("a", 1024, 100.0),
            mb("b", 1024, 50.0),
        ];
        let verdicts = judge(&all, "own");
        assert_eq!(verdicts.len(), 2);
        assert!(verdicts[0].met);
        assert_eq!(verdicts[0].remark, "smallest margin at 64 B");
        assert!(!verdicts[1].met, "1.10 is below 1.15");
    }

    #[test]
    fn memory_must_not_grow_with_silent_ranks() {
        let kib = |ranks, value| Measurement {
            ranks,
            ..measured("own", "init/private", 0, Unit::Kibibytes, value)
        };
        assert!(judge(&[kib(2, 1000.0), kib(8, 1004.0)], "own")[0].met);
        assert!(!judge(&[kib(2, 1000.0), kib(8, 1600.0)], "own")[0].met);
        assert!(judge(&[kib(2, 1000.0)], "own").is_empty());
    }
}
