//! A part of the catalogue with all its values, from which a component is built.

use super::kinds::keys;
use super::problem::{Location, Problem};
use super::read::WrittenPart;
use crate::components::{
    Bus, Cable, Hca, Host, Key, KeyType, Link, Part, PartList, PartSource, Switch,
};
use crate::kernel::Kernel;
use crate::quantity::{Quantity, Raw};
use crate::software::Software;
use crate::storage::Storage;
use crate::system::System;

/// A part of the catalogue with every value that it defines or inherits.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// The kind of the part that the table describes.
    pub kind: &'static str,
    /// The name of the part; without one, the name of the part from which it starts.
    pub name: String,
    /// The path of the part in messages: `KIND.NAME`, or the keys that lead to it within another
    /// part.
    pub path: String,
    /// The line of the file in which the part's table begins.
    pub location: Location,
    /// The values of the part, in the order of the kind's table.
    pub fields: Vec<Field>,
    /// The lists that the part defines or inherits, before they are resolved into fields.
    pub(super) lists: Vec<PendingList>,
}

/// A list of parts as a file writes it. The listed parts inherit from the part that contains the
/// list, so they are resolved after that part has all its values.
#[derive(Clone, Debug)]
pub(super) struct PendingList {
    pub key: &'static Key,
    pub location: Location,
    pub source: Option<String>,
    pub parts: Vec<WrittenPart>,
}

/// One value of a part, or one part within it.
#[derive(Clone, Debug)]
pub struct Field {
    /// The key under which the field's value stands.
    pub key: &'static Key,
    /// The line of the file that defines the field.
    pub location: Location,
    /// The source of the value: a standing, a colon, and a reference.
    pub source: String,
    /// The value of the field, or the parts under its key.
    pub value: FieldValue,
}

/// The value of a field of a part's table.
#[derive(Clone, Debug)]
pub enum FieldValue {
    /// A value of a field, as the file writes it.
    Value(Raw),
    /// A part within the part that has the field.
    Part(Sheet),
    /// Several parts within the part that has the field.
    List(Vec<Sheet>),
}

impl Sheet {
    /// Builds the component. An error if a value is missing or not valid.
    pub fn build<P: Part>(&self) -> Result<P, Problem> {
        let part = P::build(&mut &*self)?;
        part.check().map_err(|wrong| {
            let location = self
                .field(wrong.key)
                .map_or(&self.location, |field| &field.location);
            Problem::at(
                location,
                format!("{}.{}: {}", self.path, wrong.key, wrong.why),
            )
        })?;
        Ok(part)
    }

    /// Checks that the component can be built. An error if a value is missing or not valid.
    pub fn check(&self) -> Result<(), Problem> {
        match self.kind {
            System::KIND => self.build::<System>().map(drop),
            Host::KIND => self.build::<Host>().map(drop),
            Hca::KIND => self.build::<Hca>().map(drop),
            Link::KIND => self.build::<Link>().map(drop),
            Bus::KIND => self.build::<Bus>().map(drop),
            Cable::KIND => self.build::<Cable>().map(drop),
            Switch::KIND => self.build::<Switch>().map(drop),
            Kernel::KIND => self.build::<Kernel>().map(drop),
            Storage::KIND => self.build::<Storage>().map(drop),
            _ => self.build::<Software>().map(drop),
        }
    }

    /// Adds a field, or replaces the field with its key.
    pub(super) fn put(&mut self, field: Field) {
        let mut fields = self.fields.iter_mut();
        match fields.find(|old| old.key.name == field.key.name) {
            Some(old) => *old = field,
            None => self.fields.push(field),
        }
    }

    /// Sorts the fields into the order of the kind's table.
    pub(super) fn sort(&mut self) {
        let keys = keys(self.kind);
        let place = |field: &Field| keys.iter().position(|key| key.name == field.key.name);
        self.fields.sort_by_key(place);
    }

    /// The name of the part that this part has under the key `key`, such as the host of a system.
    pub fn part(&self, key: &str) -> Option<&str> {
        match &self.field(key)?.value {
            FieldValue::Part(part) => Some(&part.name),
            _ => None,
        }
    }

    pub(super) fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key.name == key)
    }

    /// The error `problem` of this part, with a line of the file that contains the part's table: if
    /// the wrong value is inherited from another file, the line of the first key in that table.
    pub(super) fn in_its_file(&self, problem: Problem) -> Problem {
        let inherited = problem.location.as_ref();
        let inherited = inherited.filter(|location| location.file != self.location.file);
        match inherited {
            None => problem,
            Some(from) => {
                let what = format!("{} (the value is inherited: {from})", problem.what);
                Problem::at(self.own_line(), what)
            }
        }
    }

    /// The line of the first field that the file of this part defines, or else of the part's table.
    pub(super) fn own_line(&self) -> &Location {
        let own = |field: &&Field| field.location.file == self.location.file;
        let lines = self.fields.iter().filter(own).map(|field| &field.location);
        lines.min().unwrap_or(&self.location)
    }

    /// The required keys of the part that have no value.
    fn missing(&self) -> Vec<&'static Key> {
        let is_missing = |key: &&Key| match key.holds {
            // A list without a number form has a default.
            KeyType::List { number: None, .. } => false,
            _ => !key.optional && self.field(key.name).is_none(),
        };
        keys(self.kind).iter().filter(is_missing).collect()
    }

    fn needed(&self, name: &'static str) -> Result<&Field, Problem> {
        self.field(name).ok_or_else(|| {
            let key = keys(self.kind).iter().find(|key| key.name == name);
            let (doc, valid) = key.map_or(("", String::new()), |key| (key.doc.trim_end_matches('.'), valid(key)));
            let others = self.missing().into_iter().map(|key| key.name);
            let others: Vec<&str> = others.filter(|other| *other != name).collect();
            let others = match others.is_empty() {
                true => String::new(),
                false => format!("; also missing: {}", others.join(", ")),
            };
            let what = format!(
                "{}: {name} is missing ({doc}); give it {valid}, or start from a named {} with from = \"NAME\"{others}",
                self.path, self.kind
            );
            Problem::at(&self.location, what)
        })
    }
}

fn valid(key: &Key) -> String {
    match key.holds {
        KeyType::Value { valid } => valid.to_owned(),
        KeyType::Part { kind, .. } => format!("the name of a {kind}"),
        KeyType::List { kind, number, .. } => match number {
            Some(number) => format!("{number}, or a list of tables, one for each {kind}"),
            None => format!("a list of tables, one for each {kind}"),
        },
    }
}

impl PartSource for &Sheet {
    type Error = Problem;

    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, Problem> {
        let field = self.needed(key)?;
        let FieldValue::Value(raw) = &field.value else {
            unreachable!("{key} holds a value")
        };
        Q::read(raw).ok_or_else(|| {
            let what = format!(
                "{}.{key}: {raw} is not valid; valid is {}",
                self.path,
                Q::VALID
            );
            Problem::at(&field.location, what)
        })
    }

    fn optional<T>(&mut self, key: &'static str) -> Result<Option<T>, Problem>
    where
        Option<T>: Quantity,
    {
        match self.field(key) {
            None => Ok(None),
            Some(_) => self.value(key),
        }
    }

    fn part<P: Part>(&mut self, key: &'static str) -> Result<P, Problem> {
        match &self.needed(key)?.value {
            FieldValue::Part(sheet) => sheet.build(),
            _ => unreachable!("{key} holds a part"),
        }
    }

    fn extra<P: Part>(&mut self, key: &'static str) -> Result<Option<P>, Problem> {
        match self.field(key) {
            None => Ok(None),
            Some(_) => self.part(key).map(Some),
        }
    }

    fn list<L: PartList>(&mut self, key: &'static str) -> Result<L, Problem> {
        if let (None, Some(absent)) = (self.field(key), L::absent()) {
            return Ok(absent);
        }
        let field = self.needed(key)?;
        let (list, given) = match &field.value {
            FieldValue::List(sheets) => {
                let parts: Result<Vec<L::Item>, Problem> =
                    sheets.iter().map(Sheet::build).collect();
                (L::of_parts(&parts?), format!("{} of them", sheets.len()))
            }
            FieldValue::Value(raw) => (u32::read(raw).and_then(L::of_number), raw.to_string()),
            FieldValue::Part(_) => unreachable!("{key} holds a list"),
        };
        list.ok_or_else(|| {
            let what = format!(
                "{}.{key}: {given} is not valid; valid is {}, with at most {} entries",
                self.path,
                valid(field.key),
                L::MOST
            );
            Problem::at(&field.location, what)
        })
    }
}
