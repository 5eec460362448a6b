//! From tables to parts: what a table starts from is filled in, and the whole is checked.

use super::problem::{Place, Problem, instead};
use super::read::{What, Written};
use super::{Catalogue, keys};
use crate::components::{Bus, Cable, Hca, Holds, Host, Key, Link, Part, Software, Source, Switch};
use crate::quantity::{Quantity, Raw};
use crate::system::System;

/// A part with every value that it gives or inherits.
#[derive(Clone, Debug)]
pub struct Sheet {
    pub kind: &'static str,
    /// Its name, or that of what it starts from.
    pub name: String,
    /// Where it is written: `KIND.NAME`, or the key of the part that it stands in.
    pub path: String,
    pub place: Place,
    /// In the order of the kind's table.
    pub fields: Vec<Field>,
}

/// One value or part within a part.
#[derive(Clone, Debug)]
pub struct Field {
    pub key: &'static Key,
    pub place: Place,
    pub source: String,
    pub held: Held,
}

#[derive(Clone, Debug)]
pub enum Held {
    Value(Raw),
    Part(Sheet),
}

impl Sheet {
    pub fn build<P: Part>(&self) -> Result<P, Problem> {
        let part = P::build(&mut &*self)?;
        part.check().map_err(|wrong| {
            let place = self
                .field(wrong.key)
                .map_or(&self.place, |field| &field.place);
            Problem::at(place, format!("{}.{}: {}", self.path, wrong.key, wrong.why))
        })?;
        Ok(part)
    }

    /// Whether a part can be built from it.
    pub fn check(&self) -> Result<(), Problem> {
        match self.kind {
            System::KIND => self.build::<System>().map(drop),
            Host::KIND => self.build::<Host>().map(drop),
            Hca::KIND => self.build::<Hca>().map(drop),
            Link::KIND => self.build::<Link>().map(drop),
            Bus::KIND => self.build::<Bus>().map(drop),
            Cable::KIND => self.build::<Cable>().map(drop),
            Switch::KIND => self.build::<Switch>().map(drop),
            _ => self.build::<Software>().map(drop),
        }
    }

    fn field(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.key.name == key)
    }

    fn needed(&self, name: &'static str) -> Result<&Field, Problem> {
        self.field(name).ok_or_else(|| {
            let key = keys(self.kind).iter().find(|key| key.name == name);
            let (doc, valid) = key.map_or(("", String::new()), |key| (key.doc.trim_end_matches('.'), valid(key)));
            let what = format!(
                "{}: {name} is missing ({doc}); give it {valid}, or start from a named {} with from = \"NAME\"",
                self.path, self.kind
            );
            Problem::at(&self.place, what)
        })
    }
}

fn valid(key: &Key) -> String {
    match key.holds {
        Holds::Value { valid } => valid.to_owned(),
        Holds::Part { kind, .. } => format!("the name of a {kind}"),
    }
}

impl Source for &Sheet {
    type Error = Problem;

    fn value<Q: Quantity>(&mut self, key: &'static str) -> Result<Q, Problem> {
        let field = self.needed(key)?;
        let Held::Value(raw) = &field.held else {
            unreachable!("{key} holds a value")
        };
        Q::read(raw).ok_or_else(|| {
            let what = format!(
                "{}.{key}: {raw} is not valid; valid is {}",
                self.path,
                Q::VALID
            );
            Problem::at(&field.place, what)
        })
    }

    fn part<P: Part>(&mut self, key: &'static str) -> Result<P, Problem> {
        match &self.needed(key)?.held {
            Held::Part(sheet) => sheet.build(),
            Held::Value(_) => unreachable!("{key} holds a part"),
        }
    }
}

/// `part` on top of what it starts from. `above` are the names on the way here, to find circles.
pub(super) fn sheet(
    catalogue: &Catalogue,
    part: &Written,
    above: &mut Vec<(&'static str, String)>,
) -> Result<Sheet, Problem> {
    let mut sheet = Sheet {
        kind: part.kind,
        name: part.name.clone(),
        path: format!("{}.{}", part.kind, part.name),
        place: part.place.clone(),
        fields: Vec::new(),
    };
    if let Some((name, place)) = &part.from {
        let base = named(catalogue, part.kind, name, place, above)?;
        sheet.fields = base.fields;
        if sheet.name.is_empty() {
            sheet.name.clone_from(name);
        }
    }
    lay(catalogue, &mut sheet, part, part.source.as_deref(), above)?;
    Ok(sheet)
}

/// Lays what `part` gives over what the sheet has.
fn lay(
    catalogue: &Catalogue,
    sheet: &mut Sheet,
    part: &Written,
    source: Option<&str>,
    above: &mut Vec<(&'static str, String)>,
) -> Result<(), Problem> {
    for given in &part.entries {
        let mut own = source;
        let held = match &given.what {
            What::Value { raw, source } => {
                own = source.as_deref().or(own);
                Held::Value(raw.clone())
            }
            What::Name(name) => {
                let Holds::Part { kind, .. } = given.key.holds else {
                    unreachable!("a name names a part")
                };
                Held::Part(named(catalogue, kind, name, &given.place, above)?)
            }
            What::Table(inner) => {
                own = inner.source.as_deref().or(own);
                let mut base = match (&inner.from, sheet.field(given.key.name)) {
                    (Some((name, place)), _) => named(catalogue, inner.kind, name, place, above)?,
                    (
                        None,
                        Some(Field {
                            held: Held::Part(inherited),
                            ..
                        }),
                    ) => inherited.clone(),
                    // Complete in itself.
                    (None, _) => Sheet {
                        kind: inner.kind,
                        name: "its own".to_owned(),
                        path: String::new(),
                        place: inner.place.clone(),
                        fields: Vec::new(),
                    },
                };
                base.path = format!("{}.{}", sheet.path, given.key.name);
                lay(catalogue, &mut base, inner, own, above)?;
                Held::Part(base)
            }
        };
        let source = own.map_or_else(|| format!("file {}", given.place), str::to_owned);
        let field = Field {
            key: given.key,
            place: given.place.clone(),
            source,
            held,
        };
        match sheet
            .fields
            .iter_mut()
            .find(|old| old.key.name == given.key.name)
        {
            Some(old) => *old = field,
            None => sheet.fields.push(field),
        }
    }
    let order = |field: &Field| {
        keys(sheet.kind)
            .iter()
            .position(|key| key.name == field.key.name)
    };
    sheet.fields.sort_by_key(order);
    Ok(())
}

fn named(
    catalogue: &Catalogue,
    kind: &'static str,
    name: &str,
    place: &Place,
    above: &mut Vec<(&'static str, String)>,
) -> Result<Sheet, Problem> {
    let Some(part) = catalogue.parts.iter().find(|part| part.names(kind, name)) else {
        return Err(Problem::at(place, unknown_name(catalogue, kind, name)));
    };
    let step = (kind, name.to_owned());
    if above.contains(&step) {
        return Err(Problem::at(
            place,
            format!("{kind}.{name} starts from itself; let one of them start elsewhere"),
        ));
    }
    above.push(step);
    let found = sheet(catalogue, part, above);
    above.pop();
    found
}

pub(super) fn unknown_name(catalogue: &Catalogue, kind: &str, name: &str) -> String {
    let names: Vec<&str> = catalogue
        .parts
        .iter()
        .filter(|part| part.kind == kind)
        .map(|part| part.name.as_str())
        .collect();
    format!("there is no {kind} named {name}; {}", instead(name, &names))
}

pub(super) fn twice(first: &Written, second: &Written) -> Problem {
    let (kind, name) = (second.kind, &second.name);
    let what = format!(
        "{kind}.{name}: the name is taken ({}); choose another, such as [{kind}.my-{name}] with from = \"{name}\"",
        first.place
    );
    Problem::at(&second.place, what)
}
