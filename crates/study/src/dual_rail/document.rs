//! A document's statements as data: curves, claims, and the checks of each.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::check::Check;
use crate::claims::Role;

/// Environment variables and their values.
pub(crate) type Settings = BTreeMap<String, String>;

/// The curves and claims of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Document {
    /// Its title.
    pub(crate) document: String,
    /// Named sets of settings.
    settings: BTreeMap<String, Settings>,
    /// The configurations that it compares.
    #[serde(rename = "curve")]
    pub(crate) curves: Vec<Configuration>,
    /// A curve, and the curve of the same machine if its description is read in another sense.
    pub(crate) other_reading: [String; 2],
    /// Its statements.
    #[serde(rename = "claim")]
    pub(crate) claims: Vec<Claim>,
}

/// A machine and the settings of the library.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configuration {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) fabric: String,
    /// The name of a set of settings.
    settings: String,
    /// Settings that replace those of the set.
    #[serde(default)]
    changed: Settings,
}

/// A statement of the document, and either its checks or the reason that it has none.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) about: String,
    #[serde(default = "prediction")]
    pub(crate) role: Role,
    /// All must hold.
    #[serde(default)]
    pub(crate) checks: Vec<Check>,
    /// The part of the experiments that the statement fixes.
    pub(crate) setting: Option<String>,
    /// The statement or the physics that this statement contradicts.
    pub(crate) contradicts: Option<String>,
    /// The reason that no experiment can repeat it.
    pub(crate) not_modelled: Option<String>,
}

fn prediction() -> Role {
    Role::Prediction
}

impl Document {
    /// Parses a document's data. `name` is its name in errors.
    pub(crate) fn read(name: &str, text: &str) -> Result<Document> {
        let document: Document =
            toml::from_str(text).with_context(|| format!("cannot read the claims of {name}"))?;
        for curve in &document.curves {
            if !document.settings.contains_key(&curve.settings) {
                let (curve, set) = (&curve.name, &curve.settings);
                bail!("{name}: curve {curve} has settings {set:?}, which are not defined");
            }
        }
        for claim in &document.claims {
            let reasons = [&claim.setting, &claim.not_modelled];
            let reasons = reasons.into_iter().flatten().count();
            if reasons + usize::from(!claim.checks.is_empty()) != 1 {
                let id = &claim.id;
                bail!("{name}: {id} needs either checks, or `setting`, or `not-modelled`");
            }
            let mut checks = claim.checks.clone();
            for curve in checks.iter_mut().flat_map(Check::curves) {
                if !document.curves.iter().any(|known| known.name == *curve) {
                    bail!("{name}: {} is about {curve:?}, which is no curve", claim.id);
                }
            }
        }
        Ok(document)
    }

    /// The environment variables of a configuration.
    pub(crate) fn settings(&self, of: &Configuration) -> Settings {
        let mut all = self.settings.get(&of.settings).cloned().unwrap_or_default();
        all.extend(of.changed.clone());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"
document = "A title"
other_reading = ["one", "one"]
settings.all = { A = "1", B = "2" }
[[curve]]
name = "one"
about = ""
fabric = "qdr"
settings = "all"
changed = { B = "3" }
[[claim]]
id = "X1"
about = ""
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
    fn wrong_data_is_refused() {
        for (from, to, reason) in [
            ("settings = \"all\"", "settings = \"some\"", "not defined"),
            ("curve = \"one\"", "curve = \"two\"", "no curve"),
            ("[[claim]]", "[[claim]]\nsetting = \"x\"", "needs either"),
            ("step-down", "stepdown", "cannot read"),
        ] {
            let error = Document::read("it", &SOUND.replace(from, to)).unwrap_err();
            let text = format!("{error:#}");
            assert!(text.contains(reason), "{text}");
        }
    }
}
