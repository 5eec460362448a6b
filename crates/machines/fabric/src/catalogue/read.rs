//! Parser of a catalogue file into tables of known keys, each with its line.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kinds::{KINDS, keys};
use super::problem::{Location, Problem, instead};
use crate::components::{Key, KeyType};
use crate::quantity::Raw;

/// A part as a file writes it, without inherited values.
#[derive(Clone, Debug)]
pub(super) struct WrittenPart {
    pub kind: &'static str,
    pub name: String,
    pub location: Location,
    pub about: String,
    pub from: Option<(String, Location)>,
    pub source: Option<String>,
    pub entries: Vec<WrittenKey>,
}

impl WrittenPart {
    pub(super) fn names(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && self.name == name
    }
}

/// One key of a table, with its value.
#[derive(Clone, Debug)]
pub(super) struct WrittenKey {
    pub key: &'static Key,
    pub location: Location,
    pub what: GivenValue,
}

#[derive(Clone, Debug)]
pub(super) enum GivenValue {
    Value { raw: Raw, source: Option<String> },
    Name(String),
    Table(WrittenPart),
    List(Vec<WrittenPart>),
}

/// Parses `text`, appends its parts to `parts`, and returns its errors.
pub(super) fn read(file: &str, text: &str, parts: &mut Vec<Arc<WrittenPart>>) -> Vec<Problem> {
    let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let mut reader = Reader {
        file: file.into(),
        text,
        line_ends: ends.map(|(at, _)| at).collect(),
        problems: Vec::new(),
    };
    match DeTable::parse(text) {
        Err(error) => {
            let location = reader.location(error.span().unwrap_or(0..0));
            let what = format!("this is not TOML: {}", error.message());
            reader.problems.push(Problem::at(&location, what));
        }
        Ok(table) => reader.kinds(table.get_ref(), parts),
    }
    reader.problems
}

struct Reader<'a> {
    file: Arc<str>,
    text: &'a str,
    /// The position of the end of each line.
    line_ends: Vec<usize>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn location(&self, span: Range<usize>) -> Location {
        Location {
            file: self.file.clone(),
            line: 1 + self.line_ends.partition_point(|end| *end < span.start),
        }
    }

    fn wrong(&mut self, location: &Location, what: String) {
        self.problems.push(Problem::at(location, what));
    }

    fn kinds(&mut self, table: &DeTable, parts: &mut Vec<Arc<WrittenPart>>) {
        let names = KINDS.map(|(kind, _)| kind);
        for (word, value) in table {
            let location = self.location(word.span());
            let Some(kind) = names.into_iter().find(|kind| kind == word.get_ref()) else {
                let instead = instead(word.get_ref(), &names);
                self.wrong(
                    &location,
                    format!("{}: not a kind of part; {instead}", word.get_ref()),
                );
                continue;
            };
            let DeValue::Table(named) = value.get_ref() else {
                self.wrong(
                    &location,
                    format!("{kind}: must be a table with a name, such as [{kind}.mine]"),
                );
                continue;
            };
            for (name, value) in named {
                let location = self.location(name.span());
                let path = format!("{kind}.{}", name.get_ref());
                match value.get_ref() {
                    DeValue::Table(body) => {
                        let mut part = self.part(kind, &path, location, body);
                        part.name = name.get_ref().to_string();
                        parts.push(Arc::new(part));
                    }
                    _ => self.wrong(
                        &location,
                        format!("{path}: must be part of a named table, such as [{kind}.mine]"),
                    ),
                }
            }
        }
    }

    fn part(
        &mut self,
        kind: &'static str,
        path: &str,
        location: Location,
        table: &DeTable,
    ) -> WrittenPart {
        let mut part = WrittenPart {
            kind,
            name: String::new(),
            location,
            about: String::new(),
            from: None,
            source: None,
            entries: Vec::new(),
        };
        for (word, value) in table {
            let location = self.location(word.span());
            let path = format!("{path}.{}", word.get_ref());
            match word.get_ref().as_ref() {
                "about" => part.about = self.text(&path, &location, value).unwrap_or_default(),
                "source" => part.source = self.text(&path, &location, value),
                "from" => {
                    part.from = self
                        .text(&path, &location, value)
                        .map(|name| (name, location))
                }
                other => match keys(kind).iter().find(|key| key.name == other) {
                    Some(key) => {
                        let what = match key.holds {
                            KeyType::Value { .. } => self.value(&path, value),
                            KeyType::Part { kind, .. } => self.inner(kind, &path, value),
                            KeyType::List { kind, number, .. } => {
                                self.list(kind, number, &path, value)
                            }
                        };
                        part.entries.extend(what.map(|what| WrittenKey {
                            key,
                            location,
                            what,
                        }));
                    }
                    None => {
                        let mut valid: Vec<&str> = keys(kind).iter().map(|key| key.name).collect();
                        valid.extend(["from", "about", "source"]);
                        let instead = instead(other, &valid);
                        self.wrong(
                            &location,
                            format!("{path}: not a key of a {kind}; {instead}"),
                        );
                    }
                },
            }
        }
        part
    }

    fn text(
        &mut self,
        path: &str,
        location: &Location,
        value: &Spanned<DeValue>,
    ) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                self.wrong(location, format!("{path}: must be a string in quotes"));
                None
            }
        }
    }

    /// A value, alone or in a table with its source.
    fn value(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<GivenValue> {
        let DeValue::Table(table) = value.get_ref() else {
            return Some(GivenValue::Value {
                raw: self.raw(value),
                source: None,
            });
        };
        let (mut raw, mut source) = (None, None);
        for (word, value) in table {
            let location = self.location(word.span());
            match word.get_ref().as_ref() {
                "value" => raw = Some(self.raw(value)),
                "source" => source = self.text(path, &location, value),
                other => self.wrong(
                    &location,
                    format!("{path}.{other}: a value has no such key; valid: value, source"),
                ),
            }
        }
        if raw.is_none() {
            let location = self.location(value.span());
            self.wrong(
                &location,
                format!("{path}: the value itself is missing: {{ value = …, source = \"…\" }}"),
            );
        }
        raw.map(|raw| GivenValue::Value { raw, source })
    }

    fn inner(
        &mut self,
        kind: &'static str,
        path: &str,
        value: &Spanned<DeValue>,
    ) -> Option<GivenValue> {
        let location = self.location(value.span());
        match value.get_ref() {
            DeValue::String(name) => Some(GivenValue::Name(name.to_string())),
            DeValue::Table(table) => {
                Some(GivenValue::Table(self.part(kind, path, location, table)))
            }
            _ => {
                self.wrong(
                    &location,
                    format!(
                        "{path}: must be the name of a {kind}, or a table {{ from = \"NAME\", … }}"
                    ),
                );
                None
            }
        }
    }

    /// A list of tables, or the number of equal parts that represents a list.
    fn list(
        &mut self,
        kind: &'static str,
        number: Option<&str>,
        path: &str,
        value: &Spanned<DeValue>,
    ) -> Option<GivenValue> {
        let location = self.location(value.span());
        let DeValue::Array(items) = value.get_ref() else {
            if number.is_some() && !is_table_without_value(value) {
                return self.value(path, value);
            }
            let or = number.map_or(String::new(), |number| format!("{number}, or "));
            self.wrong(
                &location,
                format!(
                    "{path}: must be {or}a list of tables, one for each {kind}: [{{ … }}, {{ … }}]"
                ),
            );
            return None;
        };
        let mut parts = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let (location, path) = (self.location(item.span()), format!("{path}.{at}"));
            let DeValue::Table(table) = item.get_ref() else {
                self.wrong(
                    &location,
                    format!(
                        "{path}: must be a table with keys of a {kind}, such as {{ {} = … }}",
                        keys(kind)[0].name
                    ),
                );
                continue;
            };
            let part = self.part(kind, &path, location, table);
            if let Some((_, location)) = &part.from {
                self.wrong(location, format!("{path}.from: a {kind} has no name to start from; its keys come from the system"));
            }
            parts.push(part);
        }
        Some(GivenValue::List(parts))
    }

    fn raw(&self, value: &Spanned<DeValue>) -> Raw {
        let written = || self.text.get(value.span()).unwrap_or_default().to_owned();
        match value.get_ref() {
            DeValue::String(text) => Raw::Text(text.to_string()),
            DeValue::Boolean(truth) => Raw::Boolean(*truth),
            DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
                .map_or_else(|_| Raw::Other(written()), Raw::Integer),
            _ => Raw::Other(written()),
        }
    }
}

fn is_table_without_value(value: &Spanned<DeValue>) -> bool {
    let table = value.get_ref().as_table();
    table.is_some_and(|table| !table.iter().any(|(word, _)| word.get_ref() == "value"))
}
