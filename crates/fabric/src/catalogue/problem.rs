//! What is wrong with a file: where, which key, what is valid.

use std::fmt;
use std::rc::Rc;

/// A line of a file, from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub file: Rc<str>,
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// `None` for what was asked for, not read.
    pub place: Option<Place>,
    pub what: String,
}

impl Problem {
    pub(super) fn at(place: &Place, what: String) -> Problem {
        Problem {
            place: Some(place.clone()),
            what,
        }
    }

    pub(super) fn anywhere(what: String) -> Problem {
        Problem { place: None, what }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for Problem {}

/// All that is wrong with a file, by line, each once.
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

/// The end of a sentence about a name that is not known: the nearest, and all that are.
pub(super) fn instead(word: &str, valid: &[&str]) -> String {
    let near = valid
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance);
    let meant = near.map_or(String::new(), |(_, name)| format!("did you mean {name}? "));
    format!("{meant}valid: {}", valid.join(", "))
}
