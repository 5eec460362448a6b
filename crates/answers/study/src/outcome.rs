//! The results of a study: its document and its measured curves.

use std::path::Path;

use anyhow::Result;

use crate::check::{Evidence, Missing};
use crate::curves::{Curves, Measured};
use crate::document::{Document, Measure};
use crate::experiments::{self, Effort};
use crate::remark::remarks;
use crate::verdict::{Judged, judge};

/// All studies: for each, its name and the data of its document.
pub(crate) const STUDIES: [(&str, &str); 5] = [
    ("dual-rail", include_str!("../data/dual-rail.toml")),
    ("edr", include_str!("../data/edr.toml")),
    ("rdma-channel", include_str!("../data/rdma-channel.toml")),
    ("pcie", include_str!("../data/pcie.toml")),
    ("generations", include_str!("../data/generations.toml")),
];

/// The results of all measurements of a study.
#[derive(Debug)]
pub(crate) struct Results {
    pub(crate) name: &'static str,
    pub(crate) document: Document,
    pub(crate) curves: Curves,
    /// The measurements that have no results, and the reasons.
    pub(crate) missing: Missing,
}

impl Results {
    /// A study before its experiments: `name` as in [`STUDIES`], and the document's data.
    pub(crate) fn without((name, data): (&'static str, &str)) -> Result<Results> {
        Ok(Results {
            name,
            document: Document::read(name, data)?,
            curves: Curves::default(),
            missing: Missing::new(),
        })
    }

    /// Runs the experiments of a study. `command` is the path of the executable that starts jobs
    /// and workers.
    pub(crate) fn run(
        study: (&'static str, &str),
        command: &Path,
        effort: Effort,
    ) -> Result<Results> {
        let mut results = Results::without(study)?;
        (results.curves, results.missing) =
            experiments::run(command, results.name, &results.document, effort)?;
        Ok(results)
    }

    /// The remarks on a measurement whose surprises it has.
    pub(crate) fn remarks(&self, of: &str) -> Vec<String> {
        remarks(&self.document, &self.curves, of)
    }

    /// The verdicts on all statements of the study.
    pub(crate) fn judge(&self) -> Vec<Judged<'_>> {
        let evidence = Evidence {
            curves: &self.curves,
            machines: &self.document.machines,
            missing: &self.missing,
        };
        judge(&self.document, &evidence)
    }

    /// The measurements with their curves, in the order of the document. Of several measurements
    /// with one name only the first is included.
    pub(crate) fn measured(&self) -> impl Iterator<Item = (&Measure, &Measured)> {
        let measures = self.document.measures.iter().enumerate();
        measures.filter_map(|(at, measure)| {
            let mut before = self.document.measures[..at].iter();
            let is_first = before.all(|other| other.name != measure.name);
            let measured = self.curves.0.get(&measure.name)?;
            is_first.then_some((measure, measured))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::Benchmark;

    /// Measurements of one name share their curves, so a page shows them once.
    #[test]
    fn each_name_is_measured_once_in_the_documents_order() {
        for study in STUDIES {
            let mut results = Results::without(study).unwrap();
            let mut names: Vec<String> = Vec::new();
            for measure in &results.document.measures {
                if !names.contains(&measure.name) {
                    names.push(measure.name.clone());
                }
            }
            let measured = Measured {
                benchmark: Benchmark::Latency,
                swept: Vec::new(),
                curves: Vec::new(),
            };
            results.curves.0 = names
                .iter()
                .map(|name| (name.clone(), measured.clone()))
                .collect();
            let found: Vec<_> = results
                .measured()
                .map(|(measure, _)| &measure.name)
                .collect();
            assert_eq!(found, names.iter().collect::<Vec<_>>());
        }
    }
}
