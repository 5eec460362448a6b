//! Checks of statements about the catalogue: values of its systems, and machines that it accepts or
//! refuses.

use fabric::System;
use fabric::catalogue::{Catalogue, FieldValue, Sheet};
use fabric::components::Part;
use fabric::quantity::Raw;

use super::{Check, Evidence, Figure, Finding};
use crate::document::Machine;

impl Check {
    /// The finding of a check of the catalogue. `None`: the check is of another kind, or the system
    /// or the key does not exist.
    pub(super) fn part(&self, evidence: &Evidence) -> Option<Finding> {
        match self {
            Check::Catalogue {
                system,
                key,
                is,
                published,
                unit,
            } => {
                let value = value(&with(evidence.machines, system), system, key)?;
                match published {
                    Some(published) => {
                        let figure = Figure {
                            published: *published,
                            predicted: number(&value)?,
                            unit: unit.clone().unwrap_or_default(),
                            is_bound: false,
                            precision: 0.0,
                        };
                        Some(figure.finding())
                    }
                    None => {
                        let holds = is.as_ref() == Some(&value);
                        Some(Finding::of(holds, format!("{system}: {key} {value}")))
                    }
                }
            }
            Check::Refused { machine, because } => {
                let refused = refusal(evidence.machines, machine)?;
                let holds = refused.as_ref().is_some_and(|why| why.contains(because));
                let shown = refused.unwrap_or_else(|| "accepted".into());
                Some(Finding::of(holds, format!("{machine}: {shown}")))
            }
            Check::Accepted { machine } => {
                let refused = refusal(evidence.machines, machine)?;
                let holds = refused.is_none();
                let shown = refused.unwrap_or_else(|| "accepted".into());
                Some(Finding::of(holds, format!("{machine}: {shown}")))
            }
            _ => None,
        }
    }
}

/// The built-in catalogue, extended by the machine of the document with this name, if there is one.
fn with(machines: &[Machine], name: &str) -> Catalogue {
    let mut catalogue = Catalogue::builtin();
    if let Some(own) = machines.iter().find(|machine| machine.name == name) {
        // A refused machine is then missing in the catalogue.
        let _ = catalogue.add(name, &own.text);
    }
    catalogue
}

/// The reason why a machine of the document is refused; `Some(None)` if it is accepted, `None` if
/// there is no such machine.
fn refusal(machines: &[Machine], name: &str) -> Option<Option<String>> {
    let machine = machines.iter().find(|machine| machine.name == name)?;
    let added = Catalogue::builtin().add(name, &machine.text);
    Some(added.err().map(|why| why.to_string()))
}

/// A value of a system: by its path in the catalogue, or computed from several values. `None`: the
/// system or the value does not exist.
fn value(catalogue: &Catalogue, name: &str, key: &str) -> Option<String> {
    let sheet = catalogue.sheet(System::KIND, name).ok()?;
    let system: System = sheet.build().ok()?;
    let rail = system.rail(0);
    let shown = match key {
        "data-rate" => system.link_rate().to_string(),
        "signal-rate" => (rail.link().lane * rail.hca.width).to_string(),
        "bus-rate" => {
            let rate = rail.bus().lane * rail.bus_lanes();
            format!("{} MB/s", rate.as_mb_per_sec())
        }
        path => return written(&sheet, path),
    };
    Some(shown)
}

/// A value as the catalogue writes it, or the name of a part; `None` if the path leads to neither.
fn written(sheet: &Sheet, path: &str) -> Option<String> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let field = sheet.fields.iter().find(|field| field.key.name == first)?;
    match (&field.value, rest) {
        (FieldValue::Part(part), Some(rest)) => written(part, rest),
        (FieldValue::Part(part), None) => Some(part.name.clone()),
        (FieldValue::Value(Raw::Text(text)), None) => Some(text.clone()),
        (FieldValue::Value(value), None) => Some(value.to_string()),
        _ => None,
    }
}

/// The number at the beginning of a text with a unit; `None` if there is none.
fn number(value: &str) -> Option<f64> {
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_catalogue_have_paths() {
        let catalogue = Catalogue::builtin();
        let value = |system, key| value(&catalogue, system, key);
        assert_eq!(value("r620-fdr", "hca.lanes").as_deref(), Some("8"));
        assert_eq!(value("r620-fdr", "hca.bus").as_deref(), Some("pcie-3"));
        assert_eq!(value("lanl-qdr", "data-rate").as_deref(), Some("32 Gb/s"));
        let bus = value("mpich2-2003", "bus-rate").unwrap();
        assert!((number(&bus).unwrap() - 1066.7).abs() < 0.1, "{bus}");
        assert_eq!(value("lanl-qdr", "hca.colour"), None);
        assert_eq!(value("nowhere", "data-rate"), None);
    }
}
