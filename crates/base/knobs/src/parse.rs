//! Parser of the settings in environment variables: those of this library, and MVAPICH's that set
//! settings of it.

use std::ffi::OsString;
use std::time::Duration;

use crate::mv2::{self, Translated};
use crate::table::{Knobs, TABLE};
use crate::{CONTRACT, Error, PREFIX, RECORD, RECORD_LIMIT, nearest};

/// A setting that has been set: its name, the variable as the user knows it, and the value.
type Assigned = (&'static str, String, String);

/// The additional time for which launcher and agents wait, compared to ranks, during an outage of
/// the network.
const BEYOND_OUTAGE: Duration = Duration::from_secs(30);

impl Knobs {
    /// The longest silence between the launcher and an agent. Zero: no limit.
    pub fn heartbeat(&self) -> Duration {
        match (self.heartbeat.0, self.outage.0) {
            (Some(given), _) => given,
            (None, Some(outage)) => outage + BEYOND_OUTAGE,
            (None, None) => Duration::ZERO,
        }
    }

    /// Reads the settings among `vars`. Ignores other variables; an empty value means the default.
    /// A `FISHPLATE_` variable overrides an alias that begins with `MV2_`.
    pub fn parse(vars: impl Iterator<Item = (String, String)>) -> Result<Knobs, Error> {
        let mut knobs = Knobs::default();
        let mut own: Vec<Assigned> = Vec::new();
        let mut aliases = Vec::new();
        for (variable, text) in vars {
            let text = text.trim();
            if variable.starts_with(mv2::PREFIX) && !text.is_empty() {
                aliases.push((variable, text.to_string()));
                continue;
            }
            let is_known = [RECORD, RECORD_LIMIT].contains(&variable.as_str())
                || CONTRACT.iter().any(|row| row.env == variable);
            if is_known || !variable.starts_with(PREFIX) {
                continue;
            }
            let Some(name) = name(&variable) else {
                return Err(unknown(variable));
            };
            if !text.is_empty() {
                note(&mut own, (name, variable.clone(), text.to_string()))?;
                knobs.assign(&variable, text)?;
            }
        }
        let mut others: Vec<Assigned> = Vec::new();
        for Translated {
            alias,
            typed,
            value,
        } in mv2::translate(&aliases)?
        {
            // An invalid value is an error even if another variable overrides it.
            Knobs::default().assign(&alias, &value)?;
            let Some(name) = name(&alias) else { continue };
            if own.iter().all(|(set, ..)| *set != name) {
                knobs.assign(&alias, &value)?;
                note(&mut others, (name, typed, value))?;
            }
        }
        Ok(knobs)
    }
}

/// The name of the setting that a variable sets.
fn name(variable: &str) -> Option<&'static str> {
    let knob = TABLE.iter().find(|knob| knob.answers_to(variable))?;
    Some(knob.name)
}

/// Records that a setting has been set. An error if another of its variables has set another value.
fn note(set: &mut Vec<Assigned>, new: Assigned) -> Result<(), Error> {
    let known = set.iter().find(|(name, ..)| *name == new.0);
    if let Some((_, first, _)) = known.filter(|(.., value)| *value != new.2) {
        return Err(Error::Twice {
            first: first.clone(),
            second: new.1,
        });
    }
    set.push(new);
    Ok(())
}

fn unknown(variable: String) -> Error {
    let known = TABLE
        .iter()
        .flat_map(|knob| std::iter::once(knob.env).chain(knob.aliases.iter().copied()))
        .filter(|name| name.starts_with(PREFIX));
    let nearest = nearest::nearest(
        &variable[PREFIX.len()..],
        known.map(|env| &env[PREFIX.len()..]),
    );
    Error::Unknown {
        nearest: nearest.map(|rest| format!("{PREFIX}{rest}")),
        variable,
    }
}

/// Converts environment variables to text. Omits names that are not UTF-8, which cannot be ours. In
/// values, replaces bytes that are not UTF-8, so that an error can show the value.
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
