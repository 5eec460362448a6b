//! Remarks on what surprises in the curves of a study: each says why, and is shown beside the
//! curves where the measured values have the surprise.

use anyhow::{Result, bail};
use results::sizes::parse_bytes;
use serde::Deserialize;

use crate::curves::Curves;
use crate::document::Document;

/// A remark on a curve of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Remark {
    /// The name of the measurement.
    of: String,
    curve: String,
    /// The surprise: two sizes, or values of the swept parameter. The curve is lower at the second.
    falls: Option<[String; 2]>,
    /// The surprise: another curve, and a size at which that one is better.
    behind: Option<[String; 2]>,
    /// The reason, in one sentence without its point.
    why: String,
}

impl Remark {
    /// An error if the remark has not one surprise, or is about what the document does not have.
    pub(crate) fn check(&self, document: &Document) -> Result<()> {
        let Remark { of, curve, .. } = self;
        if self.falls.is_some() == self.behind.is_some() {
            bail!("the remark on {curve} of {of} needs either `falls` or `behind`");
        }
        let mut curves = vec![curve];
        curves.extend(self.behind.iter().map(|[other, _]| other));
        if let Some(unknown) = curves.into_iter().find(|one| !document.has_curve(one)) {
            bail!("a remark on {of} is about {unknown:?}, which is no curve");
        }
        if !document.measures.iter().any(|known| known.name == *of) {
            bail!("a remark is about {of:?}, which is no measurement");
        }
        Ok(())
    }

    /// The remark as a sentence. `None`: the measured curves have no such surprise.
    fn sentence(&self, curves: &Curves) -> Option<String> {
        let Remark { of, curve, why, .. } = self;
        let at = |curve: &str, place: &str| {
            let swept = curves.swept(of, curve, place);
            swept.or_else(|| curves.at(of, curve, parse_bytes(place).ok()?))
        };
        let surprise = match (&self.falls, &self.behind) {
            (Some([from, to]), _) => {
                let falls = at(curve, to)? < at(curve, from)?;
                falls.then(|| format!("{curve} falls from {from} to {to}"))
            }
            (_, Some([other, place])) => {
                let [own, other_value] = [at(curve, place)?, at(other, place)?];
                let is_behind = match curves.unit(of).more_is_better() {
                    true => own < other_value,
                    false => own > other_value,
                };
                is_behind.then(|| format!("{curve} is behind {other} at {place}"))
            }
            _ => None,
        };
        surprise.map(|surprise| format!("{surprise}: {why}."))
    }
}

/// The remarks on a measurement, whose surprises the measured curves have.
pub(crate) fn remarks(document: &Document, curves: &Curves, of: &str) -> Vec<String> {
    let own = document.remarks.iter().filter(|remark| remark.of == of);
    own.filter_map(|remark| remark.sentence(curves)).collect()
}

#[cfg(test)]
mod tests {
    use bench::modelled::Curve;

    use super::*;
    use crate::benchmark::Benchmark;
    use crate::curves::Measured;
    use crate::outcome::STUDIES;

    fn curves(benchmark: Benchmark, all: &[(&str, &[(usize, f64)])]) -> Curves {
        let curves = all.iter().map(|(label, points)| Curve {
            label: (*label).into(),
            points: points.to_vec(),
        });
        let measured = Measured {
            benchmark,
            swept: Vec::new(),
            curves: curves.collect(),
        };
        Curves([("m".to_owned(), measured)].into())
    }

    fn remark(falls: Option<[&str; 2]>, behind: Option<[&str; 2]>) -> Remark {
        let own = |pair: [&str; 2]| pair.map(String::from);
        Remark {
            of: "m".into(),
            curve: "a".into(),
            falls: falls.map(own),
            behind: behind.map(own),
            why: "it has a reason".into(),
        }
    }

    #[test]
    fn a_remark_is_shown_where_the_curves_have_its_surprise() {
        let falls = remark(Some(["4K", "8K"]), None);
        let bw = |second| curves(Benchmark::Bw, &[("a", &[(4096, 2.0), (8192, second)])]);
        assert_eq!(
            falls.sentence(&bw(1.0)).unwrap(),
            "a falls from 4K to 8K: it has a reason."
        );
        assert_eq!(falls.sentence(&bw(3.0)), None);
        assert_eq!(falls.sentence(&Curves::default()), None);
        let behind = remark(None, Some(["b", "4K"]));
        let both = |benchmark, own| {
            let all: [(&str, &[(usize, f64)]); 2] = [("a", &[(4096, own)]), ("b", &[(4096, 2.0)])];
            curves(benchmark, &all)
        };
        assert!(behind.sentence(&both(Benchmark::Bw, 1.0)).is_some());
        assert!(behind.sentence(&both(Benchmark::Bw, 3.0)).is_none());
        assert!(behind.sentence(&both(Benchmark::Latency, 3.0)).is_some());
    }

    #[test]
    fn each_remark_of_a_document_is_about_its_curves() {
        let mut count = 0;
        for (name, data) in STUDIES {
            let document = Document::read(name, data).unwrap();
            count += document.remarks.len();
            let mut wrong = document.clone();
            for remark in &mut wrong.remarks {
                remark.curve = "none".into();
                assert!(remark.check(&document).is_err());
            }
        }
        assert!(count > 0);
    }
}
