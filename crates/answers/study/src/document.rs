//! A document's statements as data: machines, curves, measurements, claims, and the checks of each.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::benchmark::Benchmark;
use crate::check::Check;

/// Environment variables and their values.
pub(crate) type Settings = BTreeMap<String, String>;

/// The experiments and claims of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Its title.
    pub(crate) document: String,
    /// Named sets of settings.
    #[serde(default)]
    settings: BTreeMap<String, Settings>,
    /// Machines that are not in the catalogue.
    #[serde(default, rename = "machine")]
    pub(crate) machines: Vec<Machine>,
    /// The configurations that it compares.
    #[serde(rename = "curve")]
    pub(crate) curves: Vec<Configuration>,
    /// A curve, and the curve of the same machine if its description is read in another sense.
    pub(crate) other_reading: Option<[String; 2]>,
    /// The measurements, in the order of the report. Those of one name make one.
    #[serde(rename = "measure")]
    pub(crate) measures: Vec<Measure>,
    /// Tables that show several measurements side by side.
    #[serde(default, rename = "table")]
    pub(crate) tables: Vec<Table>,
    /// Pairs of curves whose comparison answers the document's question.
    #[serde(default, rename = "comparison")]
    pub(crate) comparisons: Vec<Comparison>,
    /// Its statements.
    #[serde(rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

/// A machine of the study's own, as a file of the catalogue's form.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A machine and the settings of the library.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) about: String,
    /// The name in pictures that answer a question [default: `name`].
    shown: Option<String>,
    /// A system of the catalogue, or a machine of the document.
    pub(crate) fabric: String,
    /// The name of a set of settings of this library; none: the library that the machine names.
    settings: Option<String>,
    /// Settings that replace those of the set.
    #[serde(default)]
    changed: Settings,
    /// Options of `fishplate perf`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
}

/// A benchmark that some curves run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Measure {
    /// Its name in checks.
    pub(crate) name: String,
    pub(crate) benchmark: Benchmark,
    title: Option<String>,
    /// The name of its picture's file, without suffix.
    pub(crate) picture: Option<String>,
    /// The label of the horizontal axis.
    pub(crate) quantity: Option<String>,
    /// The curves that run it; none: all.
    #[serde(default)]
    curves: Vec<String>,
    /// Message sizes; none: those of `fishplate perf`.
    sizes: Option<String>,
    /// Message sizes of a quick study; none: the same; empty: not measured.
    quick: Option<String>,
    /// Ranks, one on each host.
    #[serde(default = "two")]
    pub(crate) ranks: usize,
    /// The system that `hpl` solves, and its ranks.
    pub(crate) hpl: Option<HplSystem>,
    pub(crate) iterations: Option<usize>,
    /// Options of `fishplate perf`.
    #[serde(default)]
    pub(crate) options: Vec<String>,
    pub(crate) sweep: Option<Sweep>,
    #[serde(default)]
    pub(crate) reads: Reads,
}

/// A run of the kernel `hpl`, without the order of its system.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HplSystem {
    /// Columns of a panel.
    pub(crate) block: usize,
    /// Rows and columns of the grid of ranks.
    pub(crate) grid: [usize; 2],
    /// Ranks of a host.
    pub(crate) ppn: usize,
    /// Each rank's rates in products, triangular solutions and panels, in Gflop/s.
    pub(crate) gflops: String,
}

fn two() -> usize {
    2
}

/// A parameter that takes several values, at one message size.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sweep {
    /// An option of `fishplate perf` with its dashes, an environment variable, `pairs`: the number
    /// of pairs of ranks between two hosts, or `order`: that of the system that `hpl` solves.
    pub(crate) over: String,
    pub(crate) values: Vec<String>,
}

/// The figure of a benchmark's results that makes its curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reads {
    #[default]
    Median,
    /// The rate of received bytes.
    Received,
}

/// Columns of a table by message size.
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
    /// The policy of the first one.
    pub(crate) policy: String,
    pub(crate) first: String,
    pub(crate) second: String,
    /// The names of the two in answers.
    pub(crate) names: [String; 2],
    /// The picture of the answer has a panel for this pair of curves.
    #[serde(default = "yes")]
    pub(crate) drawn: bool,
}

fn yes() -> bool {
    true
}

/// A statement of the document, and either its checks or the reason that it has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) about: String,
    pub(crate) kind: Kind,
    pub(crate) role: Role,
    /// All must hold.
    #[serde(default)]
    pub(crate) checks: Vec<Check>,
    /// The statement whose figure this one gives again, rounded or as a quotient. Such a statement
    /// has a verdict, and is not counted.
    pub(crate) repeats: Option<String>,
    /// The part of the experiments that the statement fixes.
    pub(crate) setting: Option<String>,
    /// The statement or the physics that this statement contradicts.
    pub(crate) contradicts: Option<String>,
    /// The reason that no experiment can ever repeat it on a model: scatter, other software.
    pub(crate) beyond: Option<String>,
    /// The reason that no experiment repeats it yet.
    pub(crate) not_modelled: Option<String>,
}

/// The kind of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// A figure.
    Absolute,
    /// A quotient of two figures.
    Ratio,
    /// An order of two curves, or a shape of one.
    Ordering,
    /// A size at which something changes.
    Crossover,
}

impl Kind {
    /// True if the statement is about a number, and not about a shape.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Kind::Absolute | Kind::Ratio)
    }
}

/// The part that a statement had in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// A constant of the catalogue, or the reading of the statement, used it.
    Calibration,
    /// Nothing used it.
    Prediction,
    /// It is an input of the catalogue or of the experiments.
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
    /// Parses a document's data. `name` is its name in errors.
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

    fn has_curve(&self, name: &str) -> bool {
        self.curves.iter().any(|curve| curve.name == name)
    }

    /// The environment variables of a configuration.
    pub(crate) fn settings(&self, of: &Configuration) -> Settings {
        let set = of.settings.as_ref().and_then(|set| self.settings.get(set));
        let mut all = set.cloned().unwrap_or_default();
        all.extend(of.changed.clone());
        all
    }

    /// The configurations that run a measurement.
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
    /// The name in pictures that answer a question: one that says the settings.
    pub(crate) fn shown(&self) -> &str {
        self.shown.as_deref().unwrap_or(&self.name)
    }

    /// True if the configuration is of the library that the machine names, and not of this one.
    pub(crate) fn is_of_named_library(&self) -> bool {
        self.settings.is_none()
    }
}

impl Measure {
    /// The title of its table and picture.
    pub(crate) fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(self.benchmark.title())
    }

    /// The measurement with another order of the system that `hpl` solves, if one is given.
    pub(crate) fn with_order(mut self, order: Option<usize>) -> Measure {
        if let (Some(_), Some(order), Some(sweep)) = (&self.hpl, order, &mut self.sweep) {
            sweep.values = vec![order.to_string()];
        }
        self
    }

    /// Its message sizes. The inner none: those of `fishplate perf`; the outer one: it is not
    /// measured.
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
