//! Errors of a catalogue file for its author: the line, the key, and the valid values.

use std::fmt;
use std::sync::Arc;

/// A line of a catalogue file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The name of the file, as the user gave it.
    pub file: Arc<str>,
    /// The number of the line in the file, counted from 1.
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// An error in a catalogue file, or in a request to the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line of the error; `None` for a request that names an unknown part.
    pub location: Option<Location>,
    /// The text of the error, without its location.
    pub what: String,
}

impl Problem {
    pub(super) fn at(location: &Location, what: String) -> Problem {
        Problem {
            location: Some(location.clone()),
            what,
        }
    }

    pub(super) fn anywhere(what: String) -> Problem {
        Problem {
            location: None,
            what,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.location {
            Some(location) => write!(f, "{location}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Problem {}

/// All errors of a file, in order of lines, without repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    pub(super) fn new(mut all: Vec<Problem>) -> Problems {
        all.sort();
        all.dedup();
        Problems(all)
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}

/// The end of an error message about an unknown key: the valid key that is spelled most like it,
/// and all valid ones.
pub(super) fn instead(word: &str, valid: &[&str]) -> String {
    let near = near(word, valid);
    let meant = near.first().map(|name| format!("did you mean {name}? "));
    format!("{}valid: {}", meant.unwrap_or_default(), valid.join(", "))
}

/// The end of an error message about an unknown name of a part: the nearest names, and all of them
/// if they are few.
pub(super) fn instead_of_part(kind: &str, name: &str, valid: &[&str]) -> String {
    const FEW: usize = 8;
    if valid.len() <= FEW {
        return instead(name, valid);
    }
    let near = near(name, valid);
    let meant = match near.split_last() {
        None => String::new(),
        Some((one, [])) => format!("did you mean {one}? "),
        Some((last, others)) => format!("did you mean {} or {last}? ", others.join(", ")),
    };
    format!(
        "{meant}`fishplate fabric list {kind}` lists all {}",
        valid.len()
    )
}

/// The valid names that are spelled much like `word`, the nearest first.
fn near<'a>(word: &str, valid: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 4;
    let word = word.to_lowercase();
    let mut near: Vec<(usize, &str)> = valid
        .iter()
        .map(|name| {
            let distance = strsim::damerau_levenshtein(&word, &name.to_lowercase());
            (distance, *name)
        })
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    near.into_iter().map(|(_, name)| name).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_come_first_and_a_long_list_is_named() {
        let many = [
            "sdr", "ddr", "qdr", "fdr", "edr", "ndr", "hdr", "2xqdr", "tcp",
        ];
        let all = "`fishplate fabric list system` lists all 9";
        assert_eq!(
            instead_of_part("system", "2xqrd", &many),
            format!("did you mean 2xqdr? {all}")
        );
        let several = instead_of_part("system", "qdrr", &many);
        assert!(several.starts_with("did you mean qdr"), "{several}");
        assert_eq!(instead_of_part("system", "nothing", &many), all);
        let few = instead_of_part("system", "qd", &many[..3]);
        assert_eq!(few, "did you mean qdr? valid: sdr, ddr, qdr");
    }
}
