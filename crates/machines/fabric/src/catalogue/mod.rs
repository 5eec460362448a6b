//! The catalogue: named parts (components and systems) whose values each have a source, and users'
//! files on top of it.
//!
//! A file holds tables `[KIND.NAME]`. With `from`, a table inherits from another part of its kind
//! and gives only the differences. A value is written with its unit, and as `{ value = …, source =
//! "…" }` if its source is not that of the whole table. A part within a part is a name or a table
//! `{ from = "NAME", … }`; without `from` such a table changes the inherited part. A list of
//! parts is an array of such tables; one that inherits replaces the whole list. A source begins
//! with its standing: one of [`STANDINGS`].

mod hosts;
mod lists;
mod problem;
mod read;
mod resolve;
mod slips;
mod uncertain;
mod values;

pub use hosts::{HOST_KEYS, HostParts};
pub use problem::{Location, Problem, Problems};
pub use resolve::{Field, FieldValue, Sheet};
pub use uncertain::UncertainValue;
pub use values::NamedValue;

use std::sync::{Arc, LazyLock};

use crate::components::{Bus, Cable, Hca, Host, Key, Link, Part, Switch};
use crate::kernel::Kernel;
use crate::rails::{OwnRails, Rail};
use crate::software::Software;
use crate::storage::Storage;
use crate::system::System;
use read::WrittenPart;

/// The standings of a source, from the firmest: the first word of every source.
pub const STANDINGS: [&str; 5] = [
    "specification",
    "datasheet",
    "published",
    "inferred",
    "assumed",
];

const FILES: [(&str, &str); 8] = [
    ("links.toml", include_str!("../../catalogue/links.toml")),
    ("buses.toml", include_str!("../../catalogue/buses.toml")),
    ("hosts.toml", include_str!("../../catalogue/hosts.toml")),
    ("hcas.toml", include_str!("../../catalogue/hcas.toml")),
    ("network.toml", include_str!("../../catalogue/network.toml")),
    (
        "software.toml",
        include_str!("../../catalogue/software.toml"),
    ),
    ("kernels.toml", include_str!("../../catalogue/kernels.toml")),
    ("systems.toml", include_str!("../../catalogue/systems.toml")),
];

/// The kinds of parts with the tables of their keys.
pub const KINDS: [(&str, &[Key]); 10] = [
    (System::KIND, System::KEYS),
    (Host::KIND, Host::KEYS),
    (Hca::KIND, Hca::KEYS),
    (Link::KIND, Link::KEYS),
    (Bus::KIND, Bus::KEYS),
    (Cable::KIND, Cable::KEYS),
    (Switch::KIND, Switch::KEYS),
    (Software::KIND, Software::KEYS),
    (Kernel::KIND, Kernel::KEYS),
    (Storage::KIND, Storage::KEYS),
];

/// The kinds of parts that exist only in lists of a system, without names.
const LISTED: [(&str, &[Key]); 2] = [(Rail::KIND, Rail::KEYS), (OwnRails::KIND, OwnRails::KEYS)];

fn keys(kind: &str) -> &'static [Key] {
    KINDS
        .iter()
        .chain(&LISTED)
        .find(|(name, _)| *name == kind)
        .map_or(&[], |(_, keys)| keys)
}

/// A set of parts, found by kind and name. Copies share the parts.
#[derive(Clone, Default)]
pub struct Catalogue {
    parts: Vec<Arc<WrittenPart>>,
}

static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut catalogue = Catalogue::default();
    for (name, text) in FILES {
        if let Err(problems) = catalogue.add(name, text) {
            panic!("the catalogue is damaged: {problems}");
        }
    }
    catalogue
});

/// A part of the catalogue, without its values.
pub struct CatalogueEntry<'a> {
    /// The kind of part.
    pub kind: &'static str,
    /// The part's name among those of its kind.
    pub name: &'a str,
    /// A description in a few words.
    pub about: &'a str,
    /// The file that defines it.
    pub file: &'a str,
}

impl Catalogue {
    /// The catalogue of this project, without users' files.
    pub fn builtin() -> Catalogue {
        BUILTIN.clone()
    }

    /// Adds the parts of a file with the content `text`. All of them are checked, used or not; a
    /// file with an error adds nothing.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Problems> {
        let known = self.parts.len();
        let mut problems = read::read(file, text, &mut self.parts);
        // A table may refer to any other, so only a file without errors of syntax is resolved.
        if problems.is_empty() {
            for at in known..self.parts.len() {
                let part = &self.parts[at];
                let checked = self.part_at(at).and_then(|sheet| {
                    let checked = sheet.check();
                    checked.map_err(|problem| problem.in_file_of(&sheet))
                });
                let twice = self.parts[..at]
                    .iter()
                    .find(|other| other.names(part.kind, &part.name));
                problems.extend(twice.map(|first| resolve::twice(first, part)));
                problems.extend(checked.err());
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        self.parts.truncate(known);
        Err(Problems::new(problems))
    }

    /// All parts, in the order of the files.
    pub fn entries(&self) -> impl Iterator<Item = CatalogueEntry<'_>> {
        self.parts.iter().map(|part| CatalogueEntry {
            kind: part.kind,
            name: &part.name,
            about: &part.about,
            file: &part.location.file,
        })
    }

    /// The names of the systems that a file added.
    pub fn systems_of(&self, file: &str) -> Vec<&str> {
        self.entries()
            .filter(|entry| entry.kind == System::KIND && entry.file == file)
            .map(|entry| entry.name)
            .collect()
    }

    /// Builds a system by its name.
    pub fn system(&self, name: &str) -> Result<System, Problem> {
        self.sheet(System::KIND, name)?.build()
    }

    /// The part that `word` names, as `KIND.NAME` or as a name of any kind, and the other kinds
    /// that have a part of this name.
    pub fn find(&self, word: &str) -> Result<(Sheet, Vec<&'static str>), Problem> {
        if let Some((kind, name)) = word.split_once('.')
            && let Some((kind, _)) = KINDS.iter().find(|(known, _)| *known == kind)
        {
            return Ok((self.sheet(kind, name)?, Vec::new()));
        }
        let mut having = KINDS.iter().map(|(kind, _)| *kind).filter(|kind| {
            let mut parts = self.parts.iter();
            parts.any(|part| part.names(kind, word))
        });
        // An unknown name is most likely meant to be a system.
        let sheet = self.sheet(having.next().unwrap_or(System::KIND), word)?;
        Ok((sheet, having.collect()))
    }

    /// A part with all its values, their locations and sources.
    pub fn sheet(&self, kind: &'static str, name: &str) -> Result<Sheet, Problem> {
        self.part_at(self.position(kind, name)?)
    }

    /// The number of the part of this kind and name.
    fn position(&self, kind: &str, name: &str) -> Result<usize, Problem> {
        let at = self.parts.iter().position(|part| part.names(kind, name));
        at.ok_or_else(|| Problem::anywhere(resolve::unknown_name(self, kind, name, None)))
    }

    fn part_at(&self, at: usize) -> Result<Sheet, Problem> {
        self.part_with(at, &[])
    }

    /// A part with these fields in the place of its own.
    fn part_with(&self, at: usize, fields: &[Field]) -> Result<Sheet, Problem> {
        let mut sheet = resolve::sheet(self, &self.parts[at], &mut Vec::new())?;
        fields.iter().for_each(|field| sheet.put(field.clone()));
        lists::complete(self, &mut sheet)?;
        Ok(sheet)
    }
}
