//! The machines of published figures: systems of a file, or of the catalogue.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use fabric::catalogue::Catalogue;
use toml::{Table, Value};

use crate::document::Machine;
use crate::experiments::Machines;

/// Systems by name. Each system of a file is written into a file of its own, as commands take files
/// with one system.
pub(super) struct FigureMachines {
    files: Machines,
    known: Vec<String>,
    name: String,
}

impl FigureMachines {
    /// The systems of a file, or of `own` if none is named.
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
        catalogue
            .add(&name, &text)
            .map_err(|why| anyhow!("{why}"))?;
        let entries = catalogue.entries().filter(|entry| entry.kind == "system");
        let known = entries.map(|entry| entry.name.to_owned()).collect();
        let mut parts: Table = toml::from_str(&text).with_context(|| name.clone())?;
        let systems = match parts.remove("system") {
            Some(Value::Table(systems)) => systems,
            _ => Table::new(),
        };
        let mut machines = Vec::new();
        for system in systems.keys() {
            let mut alone = parts.clone();
            let own = Table::from_iter([(system.clone(), whole(&systems, system, 0)?.into())]);
            alone.insert("system".into(), own.into());
            machines.push(Machine {
                name: system.clone(),
                text: alone.to_string(),
            });
        }
        Ok(FigureMachines {
            files: Machines::write(&machines)?,
            known,
            name,
        })
    }

    /// The word that names a system on command lines, or the reason that there is none.
    pub(super) fn word(&self, system: &str) -> Result<String, String> {
        match self.known.iter().any(|known| known == system) {
            true => Ok(self.files.word(system)),
            false => {
                let name = &self.name;
                Err(format!("no system {system} in {name} or in the catalogue"))
            }
        }
    }
}

/// A system with all that it inherits from systems of the same file. `depth`: the heirs before it.
fn whole(systems: &Table, name: &str, depth: usize) -> Result<Table> {
    let Some(Value::Table(own)) = systems.get(name) else {
        bail!("system.{name} is no table");
    };
    let parent = own.get("from").and_then(Value::as_str);
    let Some(parent) = parent.filter(|parent| systems.contains_key(*parent)) else {
        return Ok(own.clone());
    };
    if depth > systems.len() {
        bail!("system.{name} inherits from itself");
    }
    let mut all = whole(systems, parent, depth + 1)?;
    // What the parent is based on is the base of the heir.
    for (key, value) in own.iter().filter(|(key, _)| *key != "from") {
        match (all.get_mut(key), value) {
            (Some(Value::Table(old)), Value::Table(new)) if !new.contains_key("from") => {
                old.extend(new.clone());
            }
            _ => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[hca.mine]
from = "connectx-3"
inline = { value = "64 B", source = "assumed: ours" }
[system.one]
from = "qdr"
hca = "mine"
cable = { from = "copper", length = "3 m", source = "assumed: ours" }
source = "assumed: ours"
[system.two]
from = "one"
cable = { length = "5 m", source = "assumed: ours" }
source = "assumed: ours"
"#;

    #[test]
    fn each_system_of_a_file_becomes_a_file() {
        let machines = FigureMachines::read(None, FILE).unwrap();
        let word = machines.word("two").unwrap();
        let text = std::fs::read_to_string(&word).unwrap();
        let mut catalogue = Catalogue::builtin();
        catalogue
            .add("two", &text)
            .map_err(|why| why.to_string())
            .unwrap();
        assert_eq!(catalogue.systems_of("two"), ["two"]);
        let system = catalogue.system("two").unwrap();
        assert_eq!(system.cable.length.to_string(), "5 m");
        assert_eq!(system.hca.inline.to_string(), "64 B");
        assert_eq!(machines.word("fdr").unwrap(), "fdr");
        assert!(
            machines
                .word("three")
                .unwrap_err()
                .contains("published.toml")
        );
    }

    #[test]
    fn wrong_files_are_refused_with_the_line() {
        let wrong = FILE.replace("5 m", "50 m");
        let error = FigureMachines::read(None, &wrong).err().unwrap();
        assert!(error.to_string().contains("published.toml:12"), "{error}");
    }

    #[test]
    fn the_machines_of_this_project_are_sound() {
        FigureMachines::read(None, super::super::MACHINES).unwrap();
    }
}
