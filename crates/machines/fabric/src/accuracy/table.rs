//! Kinds of figures, and the table of the errors of each.

use super::case::Case;

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FigureKind {
    /// Latency of messages to 128 B.
    ShortLatency,
    /// Latency of messages from 129 B to 63 KiB.
    MiddleLatency,
    /// Latency of messages from 64 KiB on.
    LongLatency,
    /// Bandwidth of messages below 2 KiB.
    ShortStream,
    /// Bandwidth of messages from 2 to 63 KiB.
    MiddleStream,
    /// Bandwidth of messages from 64 KiB on.
    LongBandwidth,
}

/// The errors of a kind of figure in a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The kind.
    pub kind: FigureKind,
    /// The case.
    pub case: Case,
    /// Published figures that it rests on; for ratios, pairs of figures.
    pub figures: usize,
    /// Systems that these figures were measured on.
    pub systems: usize,
    /// The median of the errors without signs, as a share of the published figure.
    pub median: f64,
    /// Lower end of the interval of nine in ten, as a multiple of the prediction.
    pub low: f64,
    /// Upper end of the interval of nine in ten, as a multiple of the prediction.
    pub high: f64,
}

impl FigureKind {
    /// All kinds, in the order of tables.
    pub const ALL: [FigureKind; 6] = [
        FigureKind::ShortLatency,
        FigureKind::MiddleLatency,
        FigureKind::LongLatency,
        FigureKind::ShortStream,
        FigureKind::MiddleStream,
        FigureKind::LongBandwidth,
    ];

    /// The kind of a latency of messages of this size.
    pub fn latency(size: u64) -> FigureKind {
        match size {
            ..129 => FigureKind::ShortLatency,
            129..65536 => FigureKind::MiddleLatency,
            _ => FigureKind::LongLatency,
        }
    }

    /// The kind of a bandwidth of messages of this size.
    pub fn bandwidth(size: u64) -> FigureKind {
        match size {
            ..2048 => FigureKind::ShortStream,
            2048..65536 => FigureKind::MiddleStream,
            _ => FigureKind::LongBandwidth,
        }
    }

    /// Figures of this kind are times.
    pub fn is_latency(self) -> bool {
        self <= FigureKind::LongLatency
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            FigureKind::ShortLatency => "latency to 128 B",
            FigureKind::MiddleLatency => "latency 129 B to 63 KiB",
            FigureKind::LongLatency => "latency from 64 KiB",
            FigureKind::ShortStream => "stream below 2 KiB",
            FigureKind::MiddleStream => "stream 2 to 63 KiB",
            FigureKind::LongBandwidth => "bandwidth from 64 KiB",
        }
    }

    /// The errors of this kind in a case; none: too few systems are published.
    pub fn accuracy(self, case: Case) -> Option<Accuracy> {
        lines(TABLE).find(|one| (one.kind, one.case) == (self, case))
    }
}

/// The table: a line for each case and kind.
const TABLE: &str = include_str!("../../data/accuracy.csv");

/// The first line of the table.
pub const HEADER: &str = "case,kind,figures,systems,median,low,high";

/// The lines of a table; those that are none are left out.
pub fn lines(table: &str) -> impl Iterator<Item = Accuracy> {
    table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let [case, kind, figures, systems, median, low, high] = cells[..] else {
            return None;
        };
        Some(Accuracy {
            case: Case::ALL.into_iter().find(|own| own.name() == case)?,
            kind: FigureKind::ALL.into_iter().find(|own| own.name() == kind)?,
            figures: figures.parse().ok()?,
            systems: systems.parse().ok()?,
            median: median.parse().ok()?,
            low: low.parse().ok()?,
            high: high.parse().ok()?,
        })
    })
}

impl Accuracy {
    /// The line of a table.
    pub fn line(&self) -> String {
        let Accuracy {
            kind,
            case,
            figures,
            systems,
            median,
            low,
            high,
        } = self;
        let (case, kind) = (case.name(), kind.name());
        format!("{case},{kind},{figures},{systems},{median:.3},{low:.3},{high:.3}")
    }

    /// The interval around a prediction.
    pub fn interval(&self, predicted: f64) -> [f64; 2] {
        [predicted * self.low, predicted * self.high]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_case_and_a_kind_once() {
        let all: Vec<Accuracy> = lines(TABLE).collect();
        assert_eq!(all.len() + 1, TABLE.lines().count());
        assert!(all.is_sorted_by_key(|one| (one.case, one.kind)));
        for one in &all {
            assert!(
                one.low < 1.0 && one.high > 1.0 && one.median >= 0.0,
                "{one:?}"
            );
            assert!(one.systems > 1, "{one:?}");
            assert_eq!(one.kind.accuracy(one.case), Some(*one));
            assert!(TABLE.contains(&one.line()), "{}", one.line());
        }
        assert!(TABLE.starts_with(HEADER));
    }

    #[test]
    fn a_ratio_is_as_wrong_in_one_direction_as_in_the_other() {
        let ratios = lines(TABLE).filter(|one| one.case.is_ratio());
        for one in ratios {
            assert!((one.low - 1.0 / one.high).abs() < 1e-3, "{one:?}");
        }
    }

    #[test]
    fn intervals_hold_their_prediction() {
        let one = Accuracy {
            kind: FigureKind::ShortStream,
            case: Case::Named,
            figures: 10,
            systems: 3,
            median: 0.1,
            low: 0.8,
            high: 1.1,
        };
        assert_eq!(one.interval(100.0), [80.0, 100.0 * 1.1]);
        assert_eq!(FigureKind::latency(128), FigureKind::ShortLatency);
        assert_eq!(FigureKind::latency(65535), FigureKind::MiddleLatency);
        assert_eq!(FigureKind::bandwidth(2047), FigureKind::ShortStream);
        assert_eq!(FigureKind::bandwidth(65536), FigureKind::LongBandwidth);
        assert!(FigureKind::LongLatency.is_latency() && !FigureKind::ShortStream.is_latency());
    }
}
