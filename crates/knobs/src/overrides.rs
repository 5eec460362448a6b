//! Choices of algorithms for collectives. Their names are checked by the crate that owns the algorithms; here only the
//! form is.

use crate::value::{Bytes, Value};

/// One choice: for this collective, from this size on, that algorithm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    pub collective: String,
    /// The smallest message it is for.
    pub from: Bytes,
    pub algorithm: String,
}

/// Choices in the order in which they were written; of several that fit, the one with the largest `from` counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides(pub Vec<Override>);

impl Overrides {
    /// The algorithm chosen for a message of this size, if any was.
    pub fn choose(&self, collective: &str, size: usize) -> Option<&str> {
        let fits =
            |choice: &&Override| choice.collective == collective && choice.from.get() <= size;
        let best = self
            .0
            .iter()
            .filter(fits)
            .max_by_key(|choice| choice.from)?;
        Some(&best.algorithm)
    }
}

impl Value for Overrides {
    const KIND: &'static str = "name[@bytes]=algorithm,...";
    const EXPECTED: &'static str = "choices separated by commas, each COLLECTIVE[@BYTES]=ALGORITHM, such as \
                                    bcast=binomial,allreduce@1K=ring";

    fn parse(text: &str) -> Option<Self> {
        let choices = text
            .split(',')
            .map(str::trim)
            .filter(|choice| !choice.is_empty());
        choices
            .map(choice)
            .collect::<Option<Vec<_>>>()
            .map(Overrides)
    }

    fn show(&self) -> String {
        let choices = self.0.iter().map(|choice| match choice.from {
            Bytes(0) => format!("{}={}", choice.collective, choice.algorithm),
            from => format!("{}@{from}={}", choice.collective, choice.algorithm),
        });
        choices.collect::<Vec<_>>().join(",")
    }
}

fn choice(text: &str) -> Option<Override> {
    let (left, algorithm) = text.split_once('=')?;
    let (collective, from) = match left.split_once('@') {
        Some((collective, size)) => (collective, Bytes::parse(size)?),
        None => (left, Bytes(0)),
    };
    let word = |word: &str| {
        !word.is_empty()
            && word
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
    };
    let sound = word(collective) && word(algorithm);
    sound.then(|| Override {
        collective: collective.to_ascii_lowercase(),
        from,
        algorithm: algorithm.to_string(),
    })
}
