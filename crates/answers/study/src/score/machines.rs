//! The machines of published figures: systems of a file, or of the catalogue.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use fabric::System;
use fabric::accuracy::{self, Case};
use fabric::catalogue::{Catalogue, Sheet};
use fabric::components::Part;

use super::figures::PublishedFigure;
use crate::calibrate::Base;

/// The systems of a file and of the catalogue, by name.
pub(super) struct FigureMachines {
    /// The name of the file with systems. A built-in one is written to `written`, and exists as
    /// long as this value.
    file: String,
    written: Option<File>,
    in_file: Vec<String>,
    in_catalogue: Vec<String>,
    catalogue: Catalogue,
    text: String,
}

impl FigureMachines {
    /// Reads the systems of a file, or the text `own` if no file is named.
    pub(super) fn read(file: Option<&Path>, own: &str) -> Result<FigureMachines> {
        let (name, text) = match file {
            None => ("published.toml".to_owned(), own.to_owned()),
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?;
                (file.display().to_string(), text)
            }
        };
        let mut catalogue = Catalogue::builtin();
        let known = systems(&catalogue);
        catalogue
            .add(&name, &text)
            .map_err(|why| anyhow!("{why}"))?;
        let written = match file {
            Some(_) => None,
            None => Some(written(&text).context("cannot write a file of machines")?),
        };
        let in_file = catalogue.systems_of(&name).into_iter().map(str::to_owned);
        let in_file = in_file.collect();
        Ok(FigureMachines {
            in_file,
            in_catalogue: known,
            file: name,
            written,
            catalogue,
            text,
        })
    }

    /// A system as the base of a calibration; `None`: there is no such system.
    pub(super) fn base(&self, system: &str) -> Option<Base> {
        let has = |names: &[String]| names.iter().any(|name| name == system);
        let text = match has(&self.in_file) {
            true => self.text.clone(),
            false if has(&self.in_catalogue) => String::new(),
            false => return None,
        };
        Some(Base {
            catalogue: self.catalogue.clone(),
            name: system.to_owned(),
            text,
        })
    }

    /// The case of a figure's machine, or of both machines of a quotient: libraries are named or
    /// assumed, or messages travel by TCP. `own`: our library is predicted instead of the one that
    /// the machine names. `None`: there is no such machine.
    pub(super) fn case(&self, figure: &PublishedFigure, own: bool) -> Option<Case> {
        let of = |machine: &Sheet| {
            let is_named = figure.is_of_devices() || !own && accuracy::names_library(machine);
            Some(Case::of(&machine.build::<System>().ok()?, is_named))
        };
        let machine = self.sheet(&figure.model_cfg)?;
        let Some(below) = figure.below() else {
            return of(&machine);
        };
        let below = self.sheet(below)?;
        let are_equal = accuracy::have_equal_hosts(&machine, &below);
        Some(Case::of_ratio(of(&machine)?, of(&below)?, are_equal))
    }

    /// True if hosts and MPI libraries of two systems have the same costs.
    pub(super) fn have_equal_hosts(&self, one: &str, other: &str) -> bool {
        let both = self.sheet(one).zip(self.sheet(other));
        both.is_some_and(|(one, other)| accuracy::have_equal_hosts(&one, &other))
    }

    /// A system, compiled; `None`: there is no such system.
    pub(super) fn system(&self, name: &str) -> Option<System> {
        self.catalogue.system(name).ok()
    }

    fn sheet(&self, system: &str) -> Option<Sheet> {
        self.catalogue.sheet(System::KIND, system).ok()
    }

    /// The name of a system on command lines, or the reason why there is none.
    pub(super) fn word(&self, system: &str) -> Result<String, String> {
        let has = |names: &[String]| names.iter().any(|name| name == system);
        if has(&self.in_file) {
            let written = self.written.as_ref().map(path);
            let file = written.unwrap_or_else(|| PathBuf::from(&self.file));
            let file = file.display();
            // Without a folder or a suffix the name would mean a system of the catalogue.
            let folder = match file.to_string().contains('/') {
                true => "",
                false => "./",
            };
            return Ok(format!("{folder}{file}:{system}"));
        }
        match has(&self.in_catalogue) {
            true => Ok(system.into()),
            false => {
                let file = &self.file;
                Err(format!("no system {system} in {file} or in the catalogue"))
            }
        }
    }
}

fn systems(catalogue: &Catalogue) -> Vec<String> {
    let entries = catalogue.entries().filter(|entry| entry.kind == "system");
    entries.map(|entry| entry.name.to_owned()).collect()
}

/// A file without a name, so that it disappears with this process.
fn written(text: &str) -> std::io::Result<File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    Ok(file)
}

/// A path by which child processes can open the file.
fn path(file: &File) -> PathBuf {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[system.one]
from = "qdr"
cable = { from = "copper", length = "3 m", source = "assumed: ours" }
source = "assumed: ours"
[system.two]
from = "one"
cable = { from = "copper", length = "5 m", source = "assumed: ours" }
source = "assumed: ours"
"#;

    #[test]
    fn systems_of_the_file_are_named_with_it_and_others_alone() {
        let machines = FigureMachines::read(None, FILE).unwrap();
        let word = machines.word("two").unwrap();
        let (file, name) = word.rsplit_once(':').unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), FILE);
        assert_eq!(name, "two");
        assert_eq!(machines.word("fdr").unwrap(), "fdr");
        let unknown = machines.word("three").unwrap_err();
        assert!(unknown.contains("published.toml"), "{unknown}");
    }

    #[test]
    fn files_of_users_stay_where_they_are() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), FILE).unwrap();
        let machines = FigureMachines::read(Some(file.path()), "").unwrap();
        let path = file.path().display();
        assert_eq!(machines.word("one").unwrap(), format!("{path}:one"));
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        let wrong = FILE.replace("5 m", "50 m");
        let error = FigureMachines::read(None, &wrong).err().unwrap();
        assert!(error.to_string().contains("published.toml:8"), "{error}");
    }

    #[test]
    fn the_machines_of_this_project_are_sound() {
        FigureMachines::read(None, super::super::MACHINES).unwrap();
        FigureMachines::read(None, super::super::unseen::MACHINES).unwrap();
    }
}
