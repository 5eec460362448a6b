//! The user's choices of algorithms for collective operations. This crate checks only the syntax;
//! the crate that owns the algorithms checks their names.

use crate::value::{Bytes, KnobValue};

/// One choice: the algorithm of a collective operation for messages of at least some size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmChoice {
    /// The name of the collective operation.
    pub collective: String,
    /// The smallest message that the choice applies to.
    pub from: Bytes,
    /// The name of the algorithm.
    pub algorithm: String,
}

/// All choices, in the order in which they were written. Of several that apply to a message, the
/// one with the largest `from` is used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlgorithmChoices(pub Vec<AlgorithmChoice>);

impl AlgorithmChoices {
    /// The algorithm chosen for a message of `size` bytes, if any.
    pub fn choose(&self, collective: &str, size: usize) -> Option<&str> {
        let fits = |choice: &&AlgorithmChoice| {
            choice.collective == collective && choice.from.get() <= size
        };
        let best = self
            .0
            .iter()
            .filter(fits)
            .max_by_key(|choice| choice.from)?;
        Some(&best.algorithm)
    }
}

impl KnobValue for AlgorithmChoices {
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
            .map(AlgorithmChoices)
    }

    fn show(&self) -> String {
        let choices = self.0.iter().map(|choice| match choice.from {
            Bytes(0) => format!("{}={}", choice.collective, choice.algorithm),
            from => format!("{}@{from}={}", choice.collective, choice.algorithm),
        });
        choices.collect::<Vec<_>>().join(",")
    }
}

fn choice(text: &str) -> Option<AlgorithmChoice> {
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
    let valid = word(collective) && word(algorithm);
    valid.then(|| AlgorithmChoice {
        collective: collective.to_ascii_lowercase(),
        from,
        algorithm: algorithm.to_string(),
    })
}

/// The most children of a rank in a k-ary tree.
pub const MOST_BRANCHES: usize = 64;

/// The number of children of each rank in k-ary trees, or automatic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeArity(Option<usize>);

impl TreeArity {
    /// Automatic: the number with the least predicted time.
    pub const AUTO: TreeArity = TreeArity(None);

    /// The number that the user has chosen, if it is not automatic.
    pub fn fixed(self) -> Option<usize> {
        self.0
    }
}

impl KnobValue for TreeArity {
    const KIND: &'static str = "count|auto";
    const EXPECTED: &'static str = "a number of branches from 1 to 64, or auto";

    fn parse(text: &str) -> Option<Self> {
        if text.eq_ignore_ascii_case("auto") {
            return Some(TreeArity::AUTO);
        }
        let count = usize::parse(text).filter(|count| (1..=MOST_BRANCHES).contains(count))?;
        Some(TreeArity(Some(count)))
    }

    fn show(&self) -> String {
        self.0.map_or("auto".into(), |count| count.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arity_is_a_number_in_its_limits_or_automatic() {
        assert_eq!(TreeArity::parse("Auto"), Some(TreeArity::AUTO));
        let four = TreeArity::parse("4").unwrap();
        assert_eq!((four.fixed(), four.show()), (Some(4), "4".to_string()));
        assert_eq!(TreeArity::AUTO.fixed(), None);
        for text in ["0", "65", "-1", "many", ""] {
            assert_eq!(TreeArity::parse(text), None, "{text}");
        }
    }
}
