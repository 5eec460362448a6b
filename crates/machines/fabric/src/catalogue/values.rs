//! The values of a part of the catalogue and of the parts within it by path, to be listed and
//! changed.

use super::kinds::keys;
use super::problem::{Location, Problem, instead};
use super::sheet::{Field, FieldValue, Sheet};
use crate::components::{Key, KeyType};
use crate::quantity::Raw;

/// A value of a part of the catalogue, or of a part within it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// The keys that lead to the value, such as `hca.send` or `rails.1.cable.length`.
    pub path: String,
    /// The kind of the part that has the value.
    pub kind: &'static str,
    /// The name of the part that has the value; empty for a part of a list.
    pub part: String,
    /// The key of the value in the part that has it.
    pub key: &'static str,
    /// The value, as its file writes it.
    pub raw: Raw,
    /// The source of the value: a standing, a colon, and a reference.
    pub source: String,
    /// The line that defines the value. Values with one key and one line are one value of the
    /// catalogue.
    pub location: Location,
}

impl Sheet {
    /// All values of this part and of the parts within it, in the order of the tables.
    pub fn values(&self) -> Vec<NamedValue> {
        let mut values = Vec::new();
        self.visit("", &mut |path, part, field| {
            if let FieldValue::Value(raw) = &field.value {
                values.push(NamedValue {
                    path: path.to_owned(),
                    kind: part.kind,
                    part: part.name.clone(),
                    key: field.key.name,
                    raw: raw.clone(),
                    source: field.source.clone(),
                    location: field.location.clone(),
                });
            }
        });
        values
    }

    /// Calls `see` for every field of this part and of the parts within it, with its path and its
    /// part, in the order of the keys. A part comes before its own fields.
    pub(super) fn visit(&self, above: &str, see: &mut impl FnMut(&str, &Sheet, &Field)) {
        for field in &self.fields {
            let path = format!("{above}{}", field.key.name);
            see(&path, self, field);
            match &field.value {
                FieldValue::Value(_) => {}
                FieldValue::Part(part) => part.visit(&format!("{path}."), see),
                FieldValue::List(parts) => {
                    for (number, part) in parts.iter().enumerate() {
                        part.visit(&format!("{path}.{number}."), see);
                    }
                }
            }
        }
    }

    /// Changes the value at `path`, or adds one that may be left out. The value is checked when the
    /// part is built.
    pub fn set(&mut self, path: &str, raw: Raw, source: &str) -> Result<(), Problem> {
        if let (Some(key), None) = (self.left_out(path), self.field(path)) {
            self.put(Field {
                key,
                location: self.location.clone(),
                source: source.to_owned(),
                value: FieldValue::Value(raw),
            });
            self.sort();
            return Ok(());
        }
        let (field, rest) = self.step(path)?;
        match (&mut field.value, rest) {
            (FieldValue::Value(value), None) => {
                *value = raw;
                source.clone_into(&mut field.source);
                Ok(())
            }
            (FieldValue::Part(part), Some(rest)) => part.set(rest, raw, source),
            (FieldValue::List(parts), Some(rest)) => {
                let (number, rest) = rest.split_once('.').unwrap_or((rest, ""));
                let count = parts.len();
                let part = number.parse().ok().and_then(|at: usize| parts.get_mut(at));
                let part = part.ok_or_else(|| {
                    let what = format!(
                        "{path}: {number} is not valid; valid are 0 to {}",
                        count - 1
                    );
                    Problem::anywhere(what)
                })?;
                part.set(rest, raw, source)
            }
            (FieldValue::Value(_), Some(rest)) => {
                Err(Problem::anywhere(format!("{path}: a value has no {rest}")))
            }
            (_, None) => Err(Problem::anywhere(format!(
                "{path}: it is a part; name one of its values"
            ))),
        }
    }

    /// The key with this name, if its value may be left out.
    fn left_out(&self, name: &str) -> Option<&'static Key> {
        let mut keys = keys(self.kind).iter();
        keys.find(|key| {
            key.name == name && key.optional && matches!(key.holds, KeyType::Value { .. })
        })
    }

    /// The parts of these kinds within this part: the path, the kind and the name of each.
    pub fn parts_of(&self, kinds: &[&str]) -> Vec<(String, &'static str, String)> {
        let mut parts: Vec<(String, &'static str, String)> = Vec::new();
        self.visit("", &mut |path, _, field| {
            if let FieldValue::Part(inner) = &field.value
                && kinds.contains(&inner.kind)
            {
                parts.push((path.to_owned(), inner.kind, inner.name.clone()));
            }
        });
        parts
    }

    /// The field of the first key of `path`, and the rest of the path.
    fn step<'a>(&mut self, path: &'a str) -> Result<(&mut Field, Option<&'a str>), Problem> {
        let (first, rest) = match path.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (path, None),
        };
        let at = self.fields.iter().position(|field| field.key.name == first);
        match at {
            Some(at) => Ok((&mut self.fields[at], rest)),
            None => {
                let valid: Vec<&str> = self.fields.iter().map(|field| field.key.name).collect();
                let instead = instead(first, &valid);
                let what = format!("{}: there is no {first}; {instead}", self.path);
                Err(Problem::anywhere(what))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::components::Part;
    use crate::system::System;

    fn sheet(name: &str) -> Sheet {
        Catalogue::builtin().sheet(System::KIND, name).unwrap()
    }

    #[test]
    fn every_value_can_be_set_to_itself_and_the_machine_stays() {
        for name in ["qdr", "2x-unequal", "mpich2-2003"] {
            let mut changed = sheet(name);
            for value in changed.values() {
                changed.set(&value.path, value.raw, "test").unwrap();
            }
            assert!(changed.values().iter().all(|value| value.source == "test"));
            let same = sheet(name).build::<System>().unwrap();
            assert_eq!(changed.build::<System>().unwrap(), same);
        }
    }

    #[test]
    fn a_change_reaches_the_machine() {
        let mut changed = sheet("2x-unequal");
        let text = |text: &str| Raw::Text(text.into());
        changed
            .set("rails.1.hca.send", text("1 us"), "test")
            .unwrap();
        changed.set("host.post", text("5 ns"), "test").unwrap();
        let system = changed.build::<System>().unwrap();
        let send = [0, 1].map(|rail| system.rail(rail).hca.send.to_string());
        assert_eq!(
            (send[1].as_str(), system.host.post.as_nanos()),
            ("1 us", 5.0)
        );
        assert_ne!(send[0], send[1]);
    }

    #[test]
    fn a_wrong_path_is_named_with_the_valid_ones() {
        for (path, says) in [
            ("hca.sned", "did you mean send?"),
            ("hcb.send", "did you mean hca?"),
            ("hca", "it is a part"),
            ("hca.send.x", "a value has no x"),
            ("rails.7.hca.send", "valid are 0 to 1"),
        ] {
            let why = sheet("2x-unequal").set(path, Raw::Integer(1), "test");
            let why = why.unwrap_err().to_string();
            assert!(why.contains(says), "{path}: {why}");
        }
    }
}
