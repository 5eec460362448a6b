//! The parser of the settings.

use std::ffi::OsString;

use crate::table::{Knobs, TABLE};
use crate::{CONTRACT, Error, PREFIX, nearest};

impl Knobs {
    /// Reads the settings among `vars`. Ignores other variables; an empty value means the default.
    pub fn parse(vars: impl Iterator<Item = (String, String)>) -> Result<Knobs, Error> {
        let mut knobs = Knobs::default();
        let mut seen: Vec<(&'static str, String, String)> = Vec::new();
        for (variable, text) in vars {
            if !variable.starts_with(PREFIX) || CONTRACT.iter().any(|row| row.env == variable) {
                continue;
            }
            let Some(knob) = TABLE.iter().find(|knob| knob.answers_to(&variable)) else {
                return Err(unknown(variable));
            };
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            if let Some((_, first, other)) = seen.iter().find(|(name, ..)| *name == knob.name)
                && other != text
            {
                return Err(Error::Twice {
                    first: first.clone(),
                    second: variable,
                });
            }
            knobs.assign(&variable, text)?;
            seen.push((knob.name, variable, text.to_string()));
        }
        Ok(knobs)
    }
}

fn unknown(variable: String) -> Error {
    let known = TABLE
        .iter()
        .flat_map(|knob| std::iter::once(knob.env).chain(knob.aliases.iter().copied()));
    let nearest = nearest::nearest(
        &variable[PREFIX.len()..],
        known.map(|env| &env[PREFIX.len()..]),
    );
    Error::Unknown {
        nearest: nearest.map(|rest| format!("{PREFIX}{rest}")),
        variable,
    }
}

/// Converts the system's variables to text. Omits names that are not UTF-8, which cannot be ours.
/// Converts such values with replacement characters, so that the error about one can show it.
pub fn decode(
    vars: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (String, String)> {
    vars.filter_map(|(name, value)| {
        Some((
            name.into_string().ok()?,
            value.to_string_lossy().into_owned(),
        ))
    })
}
