//! Inheritance in the catalogue: the values of a part are those of its table, and otherwise those
//! of the part that it starts from.

use std::sync::Arc;

use super::problem::{Location, Problem, instead_of_part};
use super::read::{GivenValue, WrittenPart};
use super::sheet::{Field, FieldValue, PendingList, Sheet};
use crate::components::{Key, KeyType};

/// `part` with the values that it inherits. `above` contains the parts that are being resolved, to
/// detect cycles.
pub(super) fn sheet(
    parts: &[Arc<WrittenPart>],
    part: &WrittenPart,
    above: &mut Vec<(&'static str, String)>,
) -> Result<Sheet, Problem> {
    let mut sheet = Sheet {
        kind: part.kind,
        name: part.name.clone(),
        path: format!("{}.{}", part.kind, part.name),
        location: part.location.clone(),
        fields: Vec::new(),
        lists: Vec::new(),
    };
    if let Some((name, location)) = &part.from {
        let base = named(parts, part.kind, name, location, above)?;
        (sheet.fields, sheet.lists) = (base.fields, base.lists);
        if sheet.name.is_empty() {
            sheet.name.clone_from(name);
        }
    }
    overlay(parts, &mut sheet, part, part.source.as_deref(), above)?;
    Ok(sheet)
}

/// Replaces fields of `sheet` by those that `part` defines. `source` is the source of values that
/// give none of their own.
pub(super) fn overlay(
    parts: &[Arc<WrittenPart>],
    sheet: &mut Sheet,
    part: &WrittenPart,
    source: Option<&str>,
    above: &mut Vec<(&'static str, String)>,
) -> Result<(), Problem> {
    for given in &part.entries {
        let mut own = source;
        let same = |key: &'static Key| key.name == given.key.name;
        sheet.lists.retain(|list| !same(list.key));
        let value = match &given.what {
            GivenValue::List(listed) => {
                sheet.fields.retain(|field| !same(field.key));
                sheet.lists.push(PendingList {
                    key: given.key,
                    location: given.location.clone(),
                    source: own.map(str::to_owned),
                    parts: listed.clone(),
                });
                continue;
            }
            GivenValue::Value { raw, source } => {
                own = source.as_deref().or(own);
                FieldValue::Value(raw.clone())
            }
            GivenValue::Name(name) => {
                let KeyType::Part { kind, .. } = given.key.holds else {
                    unreachable!("a name names a part")
                };
                FieldValue::Part(named(parts, kind, name, &given.location, above)?)
            }
            GivenValue::Table(inner) => {
                own = inner.source.as_deref().or(own);
                let mut base = match (&inner.from, sheet.field(given.key.name)) {
                    (Some((name, location)), _) => named(parts, inner.kind, name, location, above)?,
                    (
                        None,
                        Some(Field {
                            value: FieldValue::Part(inherited),
                            ..
                        }),
                    ) => inherited.clone(),
                    // Nothing to inherit: the table must be complete.
                    (None, _) => Sheet {
                        kind: inner.kind,
                        name: "its own".to_owned(),
                        path: String::new(),
                        location: inner.location.clone(),
                        fields: Vec::new(),
                        lists: Vec::new(),
                    },
                };
                base.path = format!("{}.{}", sheet.path, given.key.name);
                overlay(parts, &mut base, inner, own, above)?;
                FieldValue::Part(base)
            }
        };
        let source = own.map_or_else(|| format!("file {}", given.location), str::to_owned);
        sheet.put(Field {
            key: given.key,
            location: given.location.clone(),
            source,
            value,
        });
    }
    sheet.sort();
    Ok(())
}

fn named(
    parts: &[Arc<WrittenPart>],
    kind: &'static str,
    name: &str,
    location: &Location,
    above: &mut Vec<(&'static str, String)>,
) -> Result<Sheet, Problem> {
    let Some(part) = find(parts, kind, name).map(|at| &parts[at]) else {
        let what = unknown_name(parts, kind, name, Some(location));
        return Err(Problem::at(location, what));
    };
    let step = (kind, name.to_owned());
    if above.contains(&step) {
        return Err(Problem::at(
            location,
            format!("{kind}.{name} inherits from itself; remove one `from` of this cycle"),
        ));
    }
    above.push(step);
    let found = sheet(parts, part, above);
    above.pop();
    found
}

/// The number of the part with this kind and name. A name in another case counts where no part has
/// it as written.
pub(super) fn find(parts: &[Arc<WrittenPart>], kind: &str, name: &str) -> Option<usize> {
    let exact = parts.iter().position(|part| part.names(kind, name));
    let any_case =
        |part: &Arc<WrittenPart>| part.kind == kind && part.name.eq_ignore_ascii_case(name);
    exact.or_else(|| parts.iter().position(any_case))
}

/// The error message for a name that no part of a kind has. It does not suggest the part whose
/// table contains `location`: a part cannot inherit from itself.
pub(super) fn unknown_name(
    parts: &[Arc<WrittenPart>],
    kind: &str,
    name: &str,
    location: Option<&Location>,
) -> String {
    let user = location.and_then(|location| {
        let above = parts.iter().filter(|part| part.location <= *location);
        above
            .filter(|part| part.location.file == location.file)
            .max_by_key(|part| part.location.line)
    });
    let is_user = |part: &WrittenPart| user.is_some_and(|user| std::ptr::eq(&**user, part));
    let names: Vec<&str> = parts
        .iter()
        .filter(|part| part.kind == kind && !is_user(part))
        .map(|part| part.name.as_str())
        .collect();
    let instead = instead_of_part(kind, name, &names);
    format!("there is no {kind} named {name}; {instead}")
}

pub(super) fn twice(first: &WrittenPart, second: &WrittenPart) -> Problem {
    let (kind, name) = (second.kind, &second.name);
    let what = format!(
        "{kind}.{name}: this name is already used ({}); choose another, such as [{kind}.my-{name}] with from = \"{name}\"",
        first.location
    );
    Problem::at(&second.location, what)
}

#[cfg(test)]
mod tests {
    use crate::catalogue::Catalogue;

    #[test]
    fn a_name_counts_in_any_case_where_none_is_as_written() {
        let mut catalogue = Catalogue::builtin();
        assert_eq!(
            catalogue.system("EDR").unwrap(),
            catalogue.system("edr").unwrap()
        );
        let own = "[system.Edr]\nfrom = \"QDR\"\nsource = \"published: a test\"\n";
        catalogue.add("own.toml", own).unwrap();
        let link = |name: &str| catalogue.system(name).unwrap().hca.link;
        assert_eq!([link("Edr"), link("edr")], [link("qdr"), link("EDR")]);
        let why = catalogue.system("EDDR").unwrap_err().to_string();
        assert!(why.contains("did you mean ddr, edr or Edr?"), "{why}");
    }
}
