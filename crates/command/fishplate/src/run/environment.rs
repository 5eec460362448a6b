//! The environment of ranks: variables that the user sets, and variables that ranks inherit.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use knobs::Knobs;
use launch::{Inherited, Program};

/// The variables that options set; the last of several with one name counts. NAME alone means the
/// launcher's value.
pub(super) fn variables(
    option: &str,
    words: &[OsString],
) -> Result<Vec<(OsString, OsString)>, String> {
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for word in words {
        let (name, value) = match word.as_bytes().iter().position(|&byte| byte == b'=') {
            Some(at) => {
                let (name, value) = word.as_bytes().split_at(at);
                (
                    OsStr::from_bytes(name).to_owned(),
                    OsString::from_vec(value[1..].to_vec()),
                )
            }
            None => {
                let value = std::env::var_os(word).ok_or_else(|| {
                    let name = word.to_string_lossy();
                    format!("{option} {name}: this variable is not set; set it, or write {option} {name}=VALUE")
                })?;
                (word.clone(), value)
            }
        };
        if name.is_empty() {
            return Err(format!(
                "{option} {}: the variable's name is missing: write {option} NAME=VALUE",
                word.to_string_lossy()
            ));
        }
        variables.retain(|(other, _)| *other != name);
        variables.push((name, value));
    }
    Ok(variables)
}

/// The launcher's variables that ranks inherit, from the options of a program or of the job.
pub(super) fn inherited(list: &Option<String>, none: bool) -> Inherited {
    match list {
        Some(list) => Inherited::Only(list.split(',').map(OsString::from).collect()),
        None if none => Inherited::Only(Vec::new()),
        None => Inherited::All,
    }
}

/// The environment of each program's ranks, as text.
pub(super) fn of_ranks(
    programs: &[Program],
    variables: &[(OsString, OsString)],
) -> Vec<Vec<(String, String)>> {
    let of = |program: &Program| {
        let set: Vec<&(OsString, OsString)> = variables.iter().chain(&program.variables).collect();
        let own = std::env::vars_os();
        let own = own.filter(|(name, _)| !set.iter().any(|(other, _)| other == name));
        knobs::decode(own.chain(set.iter().copied().cloned())).collect()
    };
    programs.iter().map(of).collect()
}

/// Checks the settings in these environments, so that an invalid one is reported once and not by
/// every rank. Returns the settings of the first program.
pub(super) fn check(of_ranks: &[Vec<(String, String)>]) -> Result<Knobs, String> {
    let mut said: Vec<String> = Vec::new();
    let mut first = None;
    for variables in of_ranks {
        let knobs = Knobs::parse(variables.iter().cloned());
        let knobs = knobs.map_err(|error| terminal_text::line(&error.to_string()))?;
        first.get_or_insert(knobs);
        for notice in knobs::notices(variables.iter().cloned()) {
            if !said.contains(&notice) {
                eprintln!("fishplate: {}", terminal_text::line(&notice));
                said.push(notice);
            }
        }
    }
    Ok(first.unwrap_or_default())
}
