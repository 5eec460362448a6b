//! What a worker tells the driver: JSON, one object a line on its standard output. A line that is
//! none of these is the library's own word.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "bench-worker", rename_all = "kebab-case")]
pub enum Line {
    /// The library is there and has started.
    Hello { version: String },
    /// One size is measured.
    Sample(Sample),
    /// What Init and Finalize cost, seen from inside.
    Start(Start),
    /// A rank cannot go on.
    Fault { rank: Option<usize>, text: String },
}

/// One size of one run. `value` is in the benchmark's unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub size: usize,
    pub iterations: usize,
    pub value: f64,
    /// Collectives: the ranks with the least and the most time.
    pub ranks: Option<(f64, f64)>,
    pub percentiles: Vec<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Milliseconds, the slowest rank's.
    pub init: f64,
    /// After Init, the largest rank's.
    pub resident_kib: f64,
    pub private_kib: f64,
}

impl Line {
    pub fn parse(text: &str) -> Option<Line> {
        serde_json::from_str(text).ok()
    }

    /// With its end of line, so that it is written in one piece.
    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("numbers and strings are always JSON") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_as_they_went() {
        for line in [
            Line::Hello {
                version: "An MPI \"1\"".into(),
            },
            Line::Sample(Sample {
                size: 8,
                value: 0.25,
                ranks: Some((0.1, 0.5)),
                ..Sample::default()
            }),
            Line::Fault {
                rank: None,
                text: "no\nlibrary".into(),
            },
        ] {
            let text = line.text();
            assert_eq!(text.matches('\n').count(), 1);
            assert_eq!(Line::parse(text.trim()), Some(line));
        }
        assert_eq!(Line::parse("MPI startup(): done"), None);
        assert_eq!(Line::parse("{\"benchmark\":\"latency\"}"), None);
    }
}
