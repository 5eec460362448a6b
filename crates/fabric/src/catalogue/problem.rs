//! Errors of a catalogue file: the line, the key, and the valid values.

use std::fmt;
use std::sync::Arc;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file's name as it was given.
    pub file: Arc<str>,
    /// The line, counted from 1.
    pub line: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The line; `None` for a request that names an unknown part.
    pub location: Option<Location>,
    /// The error, without the line.
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

/// All errors of a file, by line, without repetitions.
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

/// The end of an error about an unknown name: the nearest valid name, and all of them.
pub(super) fn instead(word: &str, valid: &[&str]) -> String {
    let near = valid
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance);
    let meant = near.map_or(String::new(), |(_, name)| format!("did you mean {name}? "));
    format!("{meant}valid: {}", valid.join(", "))
}
