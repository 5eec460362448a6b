//! A document's statements as data: machines, curves, measurements, claims, and the checks of each
//! claim.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::benchmark::Benchmark;
use crate::check::Check;
use crate::remark::Remark;

/// Environment variables that set the library, with their values.
pub(crate) type Settings = BTreeMap<String, String>;

/// The experiments and claims of a published document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// The title of the published document.
    pub(crate) document: String,
    /// The sets of settings that configurations refer to, by name.
    #[serde(default)]
    settings: BTreeMap<String, Settings>,
    /// Machines of the document that are not in the catalogue.
    #[serde(default, rename = "machine")]
    pub(crate) machines: Vec<Machine>,
    /// The machines and settings that the document compares.
    #[serde(rename = "curve")]
    pub(crate) curves: Vec<Configuration>,
    /// Two curves: one of a machine, and one of the same machine according to another
    /// interpretation of the document's description. `None`: the description has only one
    /// interpretation.
    pub(crate) other_reading: Option<[String; 2]>,
    /// The measurements, in the order of the report. Entries with the same name form one
    /// measurement.
    #[serde(rename = "measure")]
    pub(crate) measures: Vec<Measure>,
    /// Tables that show several measurements side by side.
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    /// Pairs of curves whose comparison answers the document's question.
    #[serde(default, rename = "comparison")]
    pub(crate) comparisons: Vec<Comparison>,
    /// The remarks on what surprises in the curves.
    #[serde(default, rename = "remark")]
    pub(crate) remarks: Vec<Remark>,
    /// The statements of the document, which the study checks.
    #[serde(rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

/// A machine that the study defines, as the text of a machine file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A configuration: a machine and the settings of the library.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) about: String,
    /// The curve's name in the pictures that answer the document's question [default: `name`].
    shown: Option<String>,
    /// The name of a system of the catalogue, or of a machine of the document.
    pub(crate) fabric: String,
    /// The name of a set of settings for our library. `None`: the library that the machine names is
    /// predicted.
    settings: Option<String>,
    /// Settings that replace those of the named set.
    #[serde(default)]
    changed: Settings,
    /// Further options for `fishplate perf`, which the configuration needs.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

/// A benchmark, and the curves for which it is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measure {
    /// The name of the measurement in checks.
    pub(crate) name: String,
    pub(crate) benchmark: Benchmark,
    title: Option<String>,
    /// The name of the file with the measurement's picture, without the suffix.
    pub(crate) picture: Option<String>,
    /// The label of the horizontal axis.
    pub(crate) quantity: Option<String>,
    /// The names of the curves for which the benchmark is run. `None`: all curves.
    #[serde(default)]
    curves: Vec<String>,
    /// The message sizes. `None`: those of `fishplate perf`.
    sizes: Option<String>,
    /// The message sizes in a quick study. `None`: the same ones; empty: the benchmark is not run.
    quick: Option<String>,
    /// The number of ranks, one on each host.
    #[serde(default = "two")]
    pub(crate) ranks: usize,
    /// The linear system that `hpl` solves, and its ranks.
    pub(crate) hpl: Option<HplSystem>,
    pub(crate) iterations: Option<usize>,
    /// Further options for `fishplate perf`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    pub(crate) sweep: Option<Sweep>,
    #[serde(default)]
    pub(crate) reads: Reads,
}

/// A run of the kernel `hpl`; the order of the linear system is swept.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HplSystem {
    /// The number of columns of a panel of HPL.
    pub(crate) block: usize,
    /// The numbers of rows and columns in the grid of HPL's ranks.
    pub(crate) grid: [usize; 2],
    /// The number of ranks on each host.
    pub(crate) ppn: usize,
    /// The rates of a rank in products, triangular solutions and panels, in Gflop/s.
    pub(crate) gflops: String,
}

fn two() -> usize {
    2
}

/// A parameter that is swept over several values, at one message size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sweep {
    /// The parameter: an option of `fishplate perf` with its dashes, an environment variable,
    /// `pairs` (the number of pairs of ranks between two hosts), or `order` (the order of the
    /// linear system that `hpl` solves).
    pub(crate) over: String,
    pub(crate) values: Vec<String>,
}

/// The figure of a benchmark's results that becomes the curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reads {
    #[default]
    Median,
    /// The rate of the bytes that the other side received.
    Received,
}

/// A table with a row for each message size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) title: String,
    pub(crate) columns: Vec<Column>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    pub(crate) of: String,
    pub(crate) curve: String,
}

/// Two curves whose comparison answers the document's question.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comparison {
    /// The rail policy that the first curve of the comparison uses.
    pub(crate) policy: String,
    pub(crate) first: String,
    pub(crate) second: String,
    /// The names of the two curves in the sentences of the answer.
    pub(crate) names: [String; 2],
    /// True if the picture of the answer has a panel for this pair of curves.
    #[serde(default = "yes")]
    pub(crate) drawn: bool,
}

fn yes() -> bool {
    true
}

/// A statement of the document, with either its checks or the reason why it has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) about: String,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    /// The checks of the statement, all of which must hold.
    #[serde(default)]
    pub(crate) checks: Vec<Check>,
    /// The id of the statement whose figure this one repeats, rounded or as a quotient. This
    /// statement has a verdict, but is not counted.
    pub(crate) repeats: Option<String>,
    /// The input of the experiments that the statement defines; `None` if it defines none.
    pub(crate) setting: Option<String>,
    /// The statement or the physics that this statement contradicts, if there is one.
    pub(crate) contradicts: Option<String>,
    /// The reason why no model can repeat the statement, such as scatter or other software; `None`
    /// for other statements.
    pub(crate) beyond: Option<String>,
    /// The reason why no experiment repeats the statement yet; `None` for other statements.
    pub(crate) not_modelled: Option<String>,
}

/// The kind of a statement, by the quantity that it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// The statement is about a single figure.
    Absolute,
    /// The statement is about a quotient of two figures.
    Ratio,
    /// The statement is about the order of two curves, or the shape of a curve.
    Ordering,
    /// The statement is about a size at which something changes.
    Crossover,
}

impl Kind {
    /// True if the statement is about a number, and not about a shape.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Kind::Absolute | Kind::Ratio)
    }
}

/// The part that a statement had in building the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// The statement was used for a constant of the catalogue, or in interpreting the document.
    Calibration,
    /// The statement was not used, so the result is a prediction.
    Prediction,
    /// The statement is an input of the catalogue or of the experiments, so nothing is checked.
    Setting,
}

impl Role {
    pub(crate) const ALL: [Role; 3] = [Role::Prediction, Role::Calibration, Role::Setting];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Calibration => "calibration",
            Role::Prediction => "prediction",
            Role::Setting => "setting",
        }
    }
}

impl Document {
    /// Parses a document's data. `name` is the document's name in errors.
    pub(crate) fn read(name: &str, text: &str) -> Result<Document> {
        let document: Document =
            toml::from_str(text).with_context(|| format!("cannot read the claims of {name}"))?;
        for curve in &document.curves {
            let set = curve.settings.as_ref();
            if let Some(set) = set.filter(|set| !document.settings.contains_key(*set)) {
                let curve = &curve.name;
                bail!("{name}: curve {curve} has settings {set:?}, which are not defined");
            }
        }
        for measure in &document.measures {
            if let Some(unknown) = measure.curves.iter().find(|one| !document.has_curve(one)) {
                let measure = &measure.name;
                bail!("{name}: measurement {measure} is of {unknown:?}, which is no curve");
            }
        }
        for remark in &document.remarks {
            remark.check(&document).context(name.to_owned())?;
        }
        for claim in &document.claims {
            document
                .check(claim)
                .with_context(|| format!("{name}: {}", claim.id))?;
        }
        Ok(document)
    }

    fn check(&self, claim: &Claim) -> Result<()> {
        let reasons = [&claim.setting, &claim.not_modelled, &claim.beyond];
        let reasons = reasons.into_iter().flatten().count();
        if reasons + usize::from(!claim.checks.is_empty()) != 1 {
            bail!("needs either checks, or `setting`, or `not-modelled`, or `beyond`");
        }
        let mut checks = claim.checks.clone();
        for curve in checks.iter_mut().flat_map(Check::curves) {
            if !self.has_curve(curve) {
                bail!("is about {curve:?}, which is no curve");
            }
        }
        let of = claim.checks.iter().flat_map(Check::measures);
        for measure in of {
            if !self.measures.iter().any(|known| known.name == *measure) {
                bail!("is about {measure:?}, which is no measurement");
            }
        }
        Ok(())
    }

    pub(crate) fn has_curve(&self, name: &str) -> bool {
        self.curves.iter().any(|curve| curve.name == name)
    }

    /// The environment variables with which a configuration runs.
    pub(crate) fn settings(&self, of: &Configuration) -> Settings {
        let set = of.settings.as_ref().and_then(|set| self.settings.get(set));
        let mut all = set.cloned().unwrap_or_default();
        all.extend(of.changed.clone());
        all
    }

    /// True if both configurations are one to a program.
    pub(crate) fn is_same_job(&self, one: &Configuration, other: &Configuration) -> bool {
        one.fabric == other.fabric
            && one.is_of_named_library() == other.is_of_named_library()
            && self.settings(one) == self.settings(other)
    }

    /// The configurations for which a measurement is made.
    pub(crate) fn curves_of<'a>(
        &'a self,
        measure: &'a Measure,
    ) -> impl Iterator<Item = &'a Configuration> {
        let named = move |curve: &&Configuration| {
            measure.curves.is_empty() || measure.curves.contains(&curve.name)
        };
        self.curves.iter().filter(named)
    }
}

impl Configuration {
    /// The name in the pictures that answer the document's question. It describes the settings.
    pub(crate) fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.name)
    }

    /// True if the configuration runs the library that its machine names, and not our own.
    pub(crate) fn is_of_named_library(&self) -> bool {
        self.settings.is_none()
    }
}

impl Measure {
    /// The title of the table and of the picture of the measurement.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.benchmark.title())
    }

    /// The measurement, with another order of the linear system that `hpl` solves if one is given.
    pub(crate) fn with_order(mut self, order: Option<usize>) -> Measure {
        if let (Some(_), Some(order), Some(sweep)) = (&self.hpl, order, &mut self.sweep) {
            sweep.values = vec![order.to_string()];
        }
        self
    }

    /// The message sizes of the measurement. `None`: it is not measured; `Some(None)`: those of
    /// `fishplate perf`.
    pub(crate) fn sizes(&self, quick: bool) -> Option<Option<&str>> {
        match (quick, &self.quick) {
            (true, Some(none)) if none.is_empty() => None,
            (true, Some(sizes)) => Some(Some(sizes)),
            _ => Some(self.sizes.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
document = "A title"
settings.all = { A = "1", B = "2" }
[[curve]]
name = "one"
about = ""
fabric = "qdr"
settings = "all"
changed = { B = "3" }
[[measure]]
name = "bw"
benchmark = "bw"
sizes = "1:8"
quick = ""
[[claim]]
id = "X1"
about = ""
kind = "ordering"
role = "prediction"
checks = [{ step-down = { of = "bw", curve = "one", at = 8 } }]
"#;

    #[test]
    fn changes_replace_settings_of_the_set() {
        let document = Document::read("it", SOUND).unwrap();
        let settings = document.settings(&document.curves[0]);
        let pairs: Vec<_> = settings
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(pairs, ["A=1", "B=3"]);
    }

    #[test]
    fn quick_studies_have_their_own_sizes() {
        let mut document = Document::read("it", SOUND).unwrap();
        let measure = &mut document.measures[0];
        assert_eq!(measure.sizes(false), Some(Some("1:8")));
        assert_eq!(measure.sizes(true), None);
        measure.quick = None;
        assert_eq!(measure.sizes(true), Some(Some("1:8")));
        measure.sizes = None;
        assert_eq!(measure.sizes(true), Some(None));
    }

    #[test]
    fn wrong_data_is_refused() {
        for (from, to, reason) in [
            ("settings = \"all\"", "settings = \"some\"", "not defined"),
            ("curve = \"one\"", "curve = \"two\"", "no curve"),
            ("of = \"bw\"", "of = \"latency\"", "no measurement"),
            ("[[claim]]", "[[claim]]\nsetting = \"x\"", "needs either"),
            ("step-down", "stepdown", "cannot read"),
            ("role = \"prediction\"", "", "cannot read"),
        ] {
            let error = Document::read("it", &SOUND.replace(from, to)).unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains(reason), "{text}");
        }
    }
}
