//! Parsing of arguments that name modelled hardware: a name of the catalogue, or a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ::fabric::System;
use ::fabric::catalogue::{Catalogue, HostParts, Sheet};
use ::fabric::components::Part;
use ::fabric::network::graph::files::MOST_BYTES;
use ::fabric::quantity::Raw;

/// The system that the argument `word` names: one of the catalogue, the only system in a file, or
/// `FILE:NAME`.
pub(crate) fn system(word: &str) -> Result<System, String> {
    let (catalogue, name) = in_catalogue(word)?;
    let name = name.strip_prefix("system.").unwrap_or(&name);
    catalogue.system(name).map_err(|why| why.to_string())
}

/// All values of the system that the argument `word` names, with the given hosts or with its own.
pub(crate) fn sheet(word: &str, hosts: Option<&HostParts>) -> Result<Sheet, String> {
    let (catalogue, name) = in_catalogue(word)?;
    let name = name.strip_prefix("system.").unwrap_or(&name);
    let sheet = match hosts {
        Some(hosts) => catalogue.sheet_in(name, hosts),
        None => catalogue.sheet(System::KIND, name),
    };
    sheet.map_err(|why| why.to_string())
}

/// The hosts that the value `word` of `option` names: a host of the catalogue, or the hosts of a
/// system or of a system in a file.
pub(crate) fn hosts(option: &str, word: &str) -> Result<HostParts, String> {
    let found = in_catalogue(word).and_then(|(catalogue, name)| {
        let parts = catalogue.host_parts(&name, option);
        parts.map_err(|why| why.to_string())
    });
    found.map_err(|why| format!("{option} {word}: {why}"))
}

/// The system that the argument `word` names, with the hosts that `host` names and with changed
/// values.
pub(crate) fn changed_system(
    word: &str,
    host: Option<&str>,
    changes: &[ValueChange],
) -> Result<System, String> {
    if host.is_none() && changes.is_empty() {
        return system(word);
    }
    let hosts = host.map(|word| hosts("--fabric-host", word)).transpose()?;
    let mut sheet = sheet(word, hosts.as_ref())?;
    let wrong = |why: ::fabric::catalogue::Problem| format!("--set: {}", why.what);
    for ValueChange { path, value } in changes {
        let raw = Raw::of_word(value);
        sheet.set(path, raw, "--set").map_err(wrong)?;
    }
    sheet.build().map_err(wrong)
}

/// A change of one value of a machine on the command line: `hca.send=120 ns`.
#[derive(Clone)]
pub(crate) struct ValueChange {
    pub(crate) path: String,
    pub(crate) value: String,
}

impl std::str::FromStr for ValueChange {
    type Err = String;

    fn from_str(text: &str) -> Result<ValueChange, String> {
        let (path, value) = text
            .split_once('=')
            .ok_or("valid is KEY=VALUE, such as hca.send=120ns")?;
        Ok(ValueChange {
            path: path.to_owned(),
            value: value.to_owned(),
        })
    }
}

/// The catalogue that contains `word`, and the part's name in it. A word with a slash or the suffix
/// `.toml` is a file; a colon and the name of a part in the file may follow.
pub(super) fn in_catalogue(word: &str) -> Result<(Catalogue, String), String> {
    let (file, part) = match word.rsplit_once(':') {
        Some((file, part)) if is_file(file) && !part.contains('/') => (file, Some(part)),
        _ => (word, None),
    };
    if !is_file(file) {
        return Ok((Catalogue::builtin(), word.to_owned()));
    }
    let (catalogue, systems) = read(file)?;
    if let Some(part) = part {
        return Ok((catalogue, part.to_owned()));
    }
    match systems.as_slice() {
        [one] => Ok((catalogue, format!("system.{one}"))),
        [] => Err(format!(
            "{word}: holds no system; begin one with [system.mine] and from = \"fdr\""
        )),
        many => Err(format!(
            "{word}: holds several systems ({}); name one of them, such as {word}:{}",
            many.join(", "),
            many[0]
        )),
    }
}

/// The file that a word of the command line names, if it names one.
#[cfg(feature = "whole")]
pub(super) fn file_of(word: &str) -> Option<&str> {
    let file = match word.rsplit_once(':') {
        Some((file, part)) if is_file(file) && !part.contains('/') => file,
        _ => word,
    };
    is_file(file).then_some(file)
}

fn is_file(word: &str) -> bool {
    word.contains('/') || word.ends_with(".toml")
}

/// The catalogue with the parts of a file added, and the names of the systems in the file.
pub(super) fn read(file: &str) -> Result<(Catalogue, Vec<String>), String> {
    let content = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut catalogue = Catalogue::builtin();
    let folder = Path::new(file).parent().unwrap_or(Path::new(""));
    catalogue
        .add_with(file, &content, &|name| open(folder, name))
        .map_err(|why| why.to_string())?;
    let systems = catalogue.systems_of(file).into_iter().map(str::to_owned);
    let systems = systems.collect();
    Ok((catalogue, systems))
}

/// The path of a file in `folder`, and its text.
pub(crate) fn open(folder: &Path, name: &str) -> Result<(String, String), String> {
    let path = folder.join(name);
    let wrong = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::InvalidData => "this is not text in UTF-8".to_owned(),
        std::io::ErrorKind::NotFound => format!("there is no file {}", path.display()),
        _ => format!("{}: {why}", path.display()),
    };
    let mut text = String::new();
    let file = File::open(&path).map_err(wrong)?;
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    read.map_err(wrong)?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(format!(
            "this file is too large; at most {} MiB are read",
            MOST_BYTES >> 20
        )),
        false => Ok((path.display().to_string(), text)),
    }
}
