//! The catalogue as a set of parts, found by kind and name, and the built-in files that define
//! them.

use std::sync::{Arc, LazyLock};

use super::kinds::KINDS;
use super::problem::{Problem, Problems};
use super::read::{self, WrittenPart};
use super::sheet::{Field, Sheet};
use super::{lists, named_files, resolve};
use crate::components::Part;
use crate::system::System;

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

/// A set of parts, found by kind and name. Copies share the parts.
#[derive(Clone, Default)]
pub struct Catalogue {
    pub(super) parts: Vec<Arc<WrittenPart>>,
}

/// A reader of files by name. It returns the path of the file, and its text.
pub type Open<'a> = dyn Fn(&str) -> Result<(String, String), String> + 'a;

/// The built-in parts. A test checks them all; a command reads them each time, and uses a few.
static BUILTIN: LazyLock<Catalogue> = LazyLock::new(|| {
    let mut catalogue = Catalogue::default();
    for (name, text) in FILES {
        let problems = read::read(name, text, &mut catalogue.parts);
        assert!(problems.is_empty(), "the catalogue is damaged");
    }
    catalogue
});

/// A part of the catalogue, without its values.
pub struct CatalogueEntry<'a> {
    /// The kind of the catalogue's part, such as a cable.
    pub kind: &'static str,
    /// The part's name among those of its kind.
    pub name: &'a str,
    /// A description of the part in a few words.
    pub about: &'a str,
    /// The file that defines the catalogue's part.
    pub file: &'a str,
}

impl Catalogue {
    /// The catalogue of this project, without users' files.
    pub fn builtin() -> Catalogue {
        BUILTIN.clone()
    }

    /// Adds the parts of a file with the content `text`. All of them are checked, used or not; a
    /// file with an error adds nothing. The file may not name further files.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), Problems> {
        self.add_with(file, text, &|_| Err("no other file is read here".into()))
    }

    /// Adds the parts of a file as [`add`](Catalogue::add). `open` reads the files that it names,
    /// such as the graph of a network, by their names relative to the file.
    pub fn add_with(&mut self, file: &str, text: &str, open: &Open) -> Result<(), Problems> {
        let known = self.parts.len();
        let mut problems = read::read(file, text, &mut self.parts);
        problems.extend(named_files::open_all(&mut self.parts[known..], open));
        // A table may refer to any other, so only a file without errors of syntax is resolved.
        if problems.is_empty() {
            for at in known..self.parts.len() {
                let part = &self.parts[at];
                let checked = self.part_at(at).and_then(|sheet| {
                    let checked = sheet.check();
                    checked.map_err(|problem| sheet.in_its_file(problem))
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

    /// All parts of the catalogue, in the order of the files.
    pub fn entries(&self) -> impl Iterator<Item = CatalogueEntry<'_>> {
        self.parts.iter().map(|part| CatalogueEntry {
            kind: part.kind,
            name: &part.name,
            about: &part.about,
            file: &part.location.file,
        })
    }

    /// The names of the systems that the file `file` added.
    pub fn systems_of(&self, file: &str) -> Vec<&str> {
        self.entries()
            .filter(|entry| entry.kind == System::KIND && entry.file == file)
            .map(|entry| entry.name)
            .collect()
    }

    /// Builds a system by its name. An error if there is none of this name.
    pub fn system(&self, name: &str) -> Result<System, Problem> {
        self.sheet(System::KIND, name)?.build()
    }

    /// The part that the argument `word` names, as `KIND.NAME` or as a name of any kind. Also
    /// returns the other kinds that have a part of this name.
    pub fn find(&self, word: &str) -> Result<(Sheet, Vec<&'static str>), Problem> {
        if let Some((kind, name)) = word.split_once('.')
            && let Some((kind, _)) = KINDS.iter().find(|(known, _)| *known == kind)
        {
            return Ok((self.sheet(kind, name)?, Vec::new()));
        }
        let mut having = KINDS
            .iter()
            .map(|(kind, _)| *kind)
            .filter(|kind| resolve::find(&self.parts, kind, word).is_some());
        // An unknown name is most likely meant to be a system.
        let sheet = self.sheet(having.next().unwrap_or(System::KIND), word)?;
        Ok((sheet, having.collect()))
    }

    /// A part with all its values, with their locations and sources.
    pub fn sheet(&self, kind: &'static str, name: &str) -> Result<Sheet, Problem> {
        self.part_at(self.position(kind, name)?)
    }

    /// The number of the part of this kind and name, in upper or lower case.
    pub(super) fn position(&self, kind: &str, name: &str) -> Result<usize, Problem> {
        let at = resolve::find(&self.parts, kind, name);
        at.ok_or_else(|| Problem::anywhere(resolve::unknown_name(&self.parts, kind, name, None)))
    }

    pub(super) fn part_at(&self, at: usize) -> Result<Sheet, Problem> {
        self.part_with(at, &[])
    }

    /// A part in which `fields` replace the fields with the same keys.
    pub(super) fn part_with(&self, at: usize, fields: &[Field]) -> Result<Sheet, Problem> {
        let mut sheet = resolve::sheet(&self.parts, &self.parts[at], &mut Vec::new())?;
        fields.iter().for_each(|field| sheet.put(field.clone()));
        lists::complete(&self.parts, &mut sheet)?;
        Ok(sheet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_builtin_parts_have_no_problems() {
        let mut catalogue = Catalogue::default();
        for (name, text) in FILES {
            if let Err(problems) = catalogue.add(name, text) {
                panic!("the catalogue is damaged: {problems}");
            }
        }
        assert_eq!(catalogue.parts.len(), Catalogue::builtin().parts.len());
    }
}
