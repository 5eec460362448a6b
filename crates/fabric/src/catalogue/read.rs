//! From a file's text to tables whose keys are known, each with its line.

use std::ops::Range;
use std::rc::Rc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Place, Problem, instead};
use super::{KINDS, keys};
use crate::components::{Holds, Key};
use crate::quantity::Raw;

/// A part as written: what it gives itself, before what it starts from.
#[derive(Debug)]
pub(super) struct Written {
    pub kind: &'static str,
    pub name: String,
    pub place: Place,
    pub about: String,
    pub from: Option<(String, Place)>,
    pub source: Option<String>,
    pub entries: Vec<Given>,
}

impl Written {
    pub fn names(&self, kind: &str, name: &str) -> bool {
        self.kind == kind && self.name == name
    }
}

/// One key of a table.
#[derive(Debug)]
pub(super) struct Given {
    pub key: &'static Key,
    pub place: Place,
    pub what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Value { raw: Raw, source: Option<String> },
    Name(String),
    Table(Written),
}

/// Appends the parts of `text`; gives what is wrong with it.
pub(super) fn read(file: &str, text: &str, parts: &mut Vec<Written>) -> Vec<Problem> {
    let mut reader = Reader {
        file: file.into(),
        text,
        problems: Vec::new(),
    };
    match DeTable::parse(text) {
        Err(error) => {
            let place = reader.place(error.span().unwrap_or(0..0));
            let what = format!("this is not TOML: {}", error.message());
            reader.problems.push(Problem::at(&place, what));
        }
        Ok(table) => reader.kinds(table.get_ref(), parts),
    }
    reader.problems
}

struct Reader<'a> {
    file: Rc<str>,
    text: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn place(&self, span: Range<usize>) -> Place {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        Place {
            file: self.file.clone(),
            line,
        }
    }

    fn wrong(&mut self, place: &Place, what: String) {
        self.problems.push(Problem::at(place, what));
    }

    fn kinds(&mut self, table: &DeTable, parts: &mut Vec<Written>) {
        let names = KINDS.map(|(kind, _)| kind);
        for (word, value) in table {
            let place = self.place(word.span());
            let Some(kind) = names.into_iter().find(|kind| kind == word.get_ref()) else {
                let instead = instead(word.get_ref(), &names);
                self.wrong(
                    &place,
                    format!("{}: no kind of part; {instead}", word.get_ref()),
                );
                continue;
            };
            let DeValue::Table(named) = value.get_ref() else {
                self.wrong(
                    &place,
                    format!("{kind}: must be a table with a name, such as [{kind}.mine]"),
                );
                continue;
            };
            for (name, value) in named {
                let place = self.place(name.span());
                let path = format!("{kind}.{}", name.get_ref());
                match value.get_ref() {
                    DeValue::Table(body) => {
                        let mut part = self.part(kind, &path, place, body);
                        part.name = name.get_ref().to_string();
                        parts.push(part);
                    }
                    _ => self.wrong(
                        &place,
                        format!("{path}: must stand in a table with a name, such as [{kind}.mine]"),
                    ),
                }
            }
        }
    }

    fn part(&mut self, kind: &'static str, path: &str, place: Place, table: &DeTable) -> Written {
        let mut part = Written {
            kind,
            name: String::new(),
            place,
            about: String::new(),
            from: None,
            source: None,
            entries: Vec::new(),
        };
        for (word, value) in table {
            let place = self.place(word.span());
            let path = format!("{path}.{}", word.get_ref());
            match word.get_ref().as_ref() {
                "about" => part.about = self.text(&path, &place, value).unwrap_or_default(),
                "source" => part.source = self.text(&path, &place, value),
                "from" => part.from = self.text(&path, &place, value).map(|name| (name, place)),
                other => match keys(kind).iter().find(|key| key.name == other) {
                    Some(key) => {
                        let what = match key.holds {
                            Holds::Value { .. } => self.value(&path, value),
                            Holds::Part { kind, .. } => self.inner(kind, &path, value),
                        };
                        part.entries
                            .extend(what.map(|what| Given { key, place, what }));
                    }
                    None => {
                        let mut valid: Vec<&str> = keys(kind).iter().map(|key| key.name).collect();
                        valid.extend(["from", "about", "source"]);
                        let instead = instead(other, &valid);
                        self.wrong(&place, format!("{path}: no key of a {kind}; {instead}"));
                    }
                },
            }
        }
        part
    }

    fn text(&mut self, path: &str, place: &Place, value: &Spanned<DeValue>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            _ => {
                self.wrong(place, format!("{path}: must be a text in quotes"));
                None
            }
        }
    }

    /// A value alone, or with its source.
    fn value(&mut self, path: &str, value: &Spanned<DeValue>) -> Option<What> {
        let DeValue::Table(table) = value.get_ref() else {
            return Some(What::Value {
                raw: self.raw(value),
                source: None,
            });
        };
        let (mut raw, mut source) = (None, None);
        for (word, value) in table {
            let place = self.place(word.span());
            match word.get_ref().as_ref() {
                "value" => raw = Some(self.raw(value)),
                "source" => source = self.text(path, &place, value),
                other => self.wrong(
                    &place,
                    format!("{path}.{other}: a value has no such key; valid: value, source"),
                ),
            }
        }
        if raw.is_none() {
            let place = self.place(value.span());
            self.wrong(
                &place,
                format!("{path}: the value itself is missing: {{ value = …, source = \"…\" }}"),
            );
        }
        raw.map(|raw| What::Value { raw, source })
    }

    fn inner(&mut self, kind: &'static str, path: &str, value: &Spanned<DeValue>) -> Option<What> {
        let place = self.place(value.span());
        match value.get_ref() {
            DeValue::String(name) => Some(What::Name(name.to_string())),
            DeValue::Table(table) => Some(What::Table(self.part(kind, path, place, table))),
            _ => {
                self.wrong(
                    &place,
                    format!(
                        "{path}: must be the name of a {kind}, or a table {{ from = \"NAME\", … }}"
                    ),
                );
                None
            }
        }
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
