//! The kinds of published figures (latency or bandwidth, by message size), and the table of the
//! errors of their predictions.

use super::case::Case;

/// A kind of figure: latency or bandwidth, with a range of message sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FigureKind {
    /// Latency of messages of at most 128 B.
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

/// The errors of the predictions of one kind of figure in one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The kind of figure to which these errors belong.
    pub kind: FigureKind,
    /// The case to which these errors belong.
    pub case: Case,
    /// The number of published figures from which the errors come; for ratios, of pairs of figures.
    pub figures: usize,
    /// The number of systems on which these figures were measured.
    pub systems: usize,
    /// The median of the absolute errors, as a share of the published figure.
    pub median: f64,
    /// The lower end of the interval that contains nine in ten figures, as a multiple of the
    /// prediction.
    pub low: f64,
    /// The upper end of the interval that contains nine in ten figures, as a multiple of the
    /// prediction.
    pub high: f64,
}

impl FigureKind {
    /// All kinds of figures, in the order of tables.
    pub const ALL: [FigureKind; 6] = [
        FigureKind::ShortLatency,
        FigureKind::MiddleLatency,
        FigureKind::LongLatency,
        FigureKind::ShortStream,
        FigureKind::MiddleStream,
        FigureKind::LongBandwidth,
    ];

    /// The kind of a latency of messages of `size` bytes.
    pub fn latency(size: u64) -> FigureKind {
        match size {
            ..129 => FigureKind::ShortLatency,
            129..65536 => FigureKind::MiddleLatency,
            _ => FigureKind::LongLatency,
        }
    }

    /// The kind of a bandwidth of messages of `size` bytes.
    pub fn bandwidth(size: u64) -> FigureKind {
        match size {
            ..2048 => FigureKind::ShortStream,
            2048..65536 => FigureKind::MiddleStream,
            _ => FigureKind::LongBandwidth,
        }
    }

    /// True if figures of this kind are latencies.
    pub fn is_latency(self) -> bool {
        self <= FigureKind::LongLatency
    }

    /// The name of this kind of figure, as tables of accuracy show it.
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

    /// The errors of this kind in a case. `None`: too few systems are published.
    pub fn accuracy(self, case: Case) -> Option<Accuracy> {
        lines(TABLE).find(|one| (one.kind, one.case) == (self, case))
    }
}

/// The table of errors: a line for each case and kind.
const TABLE: &str = include_str!("../../data/accuracy.csv");

/// The first line of the table, with the names of its columns.
pub const HEADER: &str = "case,kind,figures,systems,median,low,high";

/// The errors in the lines of a table. Lines without valid errors, such as the first, are left out.
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
    /// The errors as a line of a table.
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

    /// The interval around a prediction that contains nine in ten figures.
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
