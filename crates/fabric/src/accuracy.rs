//! The errors of predictions, by kind of figure: intervals that hold for nine in ten published
//! figures of machines that were left out when the interval was found.
//!
//! `fishplate study scores --errors` writes the table from the published figures of the studies; a
//! test of that crate compares it with a fresh run.

/// A kind of figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FigureKind {
    /// Latency of messages to 128 B.
    ShortLatency,
    /// Latency of messages from 129 B to 63 KiB.
    MiddleLatency,
    /// Latency of messages from 64 KiB on.
    LongLatency,
    /// Bandwidth or rate of messages to 63 KiB.
    Stream,
    /// Bandwidth of messages from 64 KiB on.
    LongBandwidth,
    /// A latency of one machine over that of another, where one source has both.
    LatencyRatio,
    /// A bandwidth of one machine over that of another, where one source has both.
    BandwidthRatio,
}

/// The errors of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The kind.
    pub kind: FigureKind,
    /// Published figures that it rests on.
    pub figures: usize,
    /// Machines of these figures; for ratios, documents.
    pub sources: usize,
    /// The median of the errors without signs, as a share.
    pub median: f64,
    /// A figure lies within this factor of its prediction, up or down, nine times in ten.
    pub factor: f64,
}

impl FigureKind {
    /// All kinds, in the order of tables.
    pub const ALL: [FigureKind; 7] = [
        FigureKind::ShortLatency,
        FigureKind::MiddleLatency,
        FigureKind::LongLatency,
        FigureKind::Stream,
        FigureKind::LongBandwidth,
        FigureKind::LatencyRatio,
        FigureKind::BandwidthRatio,
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
            ..65536 => FigureKind::Stream,
            _ => FigureKind::LongBandwidth,
        }
    }

    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            FigureKind::ShortLatency => "latency to 128 B",
            FigureKind::MiddleLatency => "latency 129 B to 63 KiB",
            FigureKind::LongLatency => "latency from 64 KiB",
            FigureKind::Stream => "stream to 63 KiB",
            FigureKind::LongBandwidth => "bandwidth from 64 KiB",
            FigureKind::LatencyRatio => "ratio of latencies",
            FigureKind::BandwidthRatio => "ratio of bandwidths",
        }
    }

    /// The errors of this kind; none: too few figures are published.
    pub fn accuracy(self) -> Option<Accuracy> {
        lines(TABLE).find(|one| one.kind == self)
    }
}

/// The table: a line for each kind.
const TABLE: &str = include_str!("../data/accuracy.csv");

/// The first line of the table.
pub const HEADER: &str = "kind,figures,sources,median,factor";

/// The lines of a table; those that are none are left out.
pub fn lines(table: &str) -> impl Iterator<Item = Accuracy> {
    table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let [kind, figures, sources, median, factor] = cells[..] else {
            return None;
        };
        let mut kinds = FigureKind::ALL.into_iter();
        Some(Accuracy {
            kind: kinds.find(|own| own.name() == kind)?,
            figures: figures.parse().ok()?,
            sources: sources.parse().ok()?,
            median: median.parse().ok()?,
            factor: factor.parse().ok()?,
        })
    })
}

impl Accuracy {
    /// The line of a table.
    pub fn line(&self) -> String {
        let Accuracy {
            kind,
            figures,
            sources,
            median,
            factor,
        } = self;
        format!(
            "{},{figures},{sources},{median:.3},{factor:.3}",
            kind.name()
        )
    }

    /// The interval around a prediction.
    pub fn interval(&self, predicted: f64) -> [f64; 2] {
        [predicted / self.factor, predicted * self.factor]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_kind_once() {
        let all: Vec<Accuracy> = lines(TABLE).collect();
        assert_eq!(all.len() + 1, TABLE.lines().count());
        let kinds: Vec<FigureKind> = all.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, FigureKind::ALL);
        for one in &all {
            assert!(one.factor >= 1.0 && one.median >= 0.0, "{one:?}");
            assert!(TABLE.contains(&one.line()), "{}", one.line());
        }
        assert!(TABLE.starts_with(HEADER));
    }

    #[test]
    fn intervals_hold_their_prediction_in_the_middle() {
        let one = Accuracy {
            kind: FigureKind::Stream,
            figures: 10,
            sources: 3,
            median: 0.1,
            factor: 1.25,
        };
        assert_eq!(one.interval(100.0), [80.0, 125.0]);
        assert_eq!(FigureKind::latency(128), FigureKind::ShortLatency);
        assert_eq!(FigureKind::latency(65535), FigureKind::MiddleLatency);
        assert_eq!(FigureKind::bandwidth(65536), FigureKind::LongBandwidth);
    }
}
