//! The user's choices of algorithms for collective operations. This crate checks only the syntax;
//! the crate that owns the algorithms checks their names.

use crate::value::{Bytes, KnobValue};

/// The name in place of an algorithm that leaves the choice to the library.
pub const AUTO_ALGORITHM: &str = "auto";

/// One choice: the algorithm of a collective operation for messages of at least some size, among at
/// least some ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlgorithmChoice {
    /// The name of the collective operation.
    pub collective: String,
    /// The smallest message that the choice applies to.
    pub from: Bytes,
    /// The smallest number of ranks that the choice applies to.
    pub ranks: usize,
    /// The name of the algorithm, or [`AUTO_ALGORITHM`].
    pub algorithm: String,
}

/// All choices, in the order in which they were written. Of several that apply to a call, the one
/// with the largest `ranks` is used, then the one with the largest `from`, then the last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AlgorithmChoices(pub Vec<AlgorithmChoice>);

impl AlgorithmChoices {
    /// The algorithm chosen for a message of `size` bytes among `ranks` ranks, if any.
    pub fn choose(&self, collective: &str, size: usize, ranks: usize) -> Option<&str> {
        let fits = |choice: &&AlgorithmChoice| {
            choice.collective == collective && choice.from.get() <= size && choice.ranks <= ranks
        };
        let best = self
            .0
            .iter()
            .filter(fits)
            .max_by_key(|choice| (choice.ranks, choice.from))?;
        Some(&best.algorithm)
    }
}

impl KnobValue for AlgorithmChoices {
    const KIND: &'static str = "name[@bytes][/ranks]=algorithm,...";
    const EXPECTED: &'static str = "choices separated by commas, each COLLECTIVE[@BYTES][/RANKS]=ALGORITHM, such \
                                    as bcast=binomial,allreduce@1K=ring,allreduce@8K/16=rabenseifner";

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
        let choices = self.0.iter().map(|choice| {
            let from = match choice.from {
                Bytes(0) => String::new(),
                from => format!("@{from}"),
            };
            let ranks = match choice.ranks {
                0 => String::new(),
                ranks => format!("/{ranks}"),
            };
            format!("{}{from}{ranks}={}", choice.collective, choice.algorithm)
        });
        choices.collect::<Vec<_>>().join(",")
    }
}

fn choice(text: &str) -> Option<AlgorithmChoice> {
    let (left, algorithm) = text.split_once('=')?;
    let (left, ranks) = match left.split_once('/') {
        Some((left, ranks)) => (left, usize::parse(ranks)?),
        None => (left, 0),
    };
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
        ranks,
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
    fn a_choice_may_begin_at_a_number_of_ranks_which_counts_before_the_size() {
        let text = "allreduce=recursive-doubling,allreduce@8K=ring,allreduce/16=auto,allreduce@64K/16=rabenseifner";
        let choices = AlgorithmChoices::parse(text).unwrap();
        let chosen = |size, ranks| choices.choose("allreduce", size, ranks);
        assert_eq!(chosen(8, 15), Some("recursive-doubling"));
        assert_eq!(chosen(1 << 20, 15), Some("ring"));
        assert_eq!(chosen(16 << 10, 16), Some(AUTO_ALGORITHM));
        assert_eq!(chosen(64 << 10, 1000), Some("rabenseifner"));
        assert_eq!(choices.show(), text);
        for wrong in [
            "allreduce/=ring",
            "allreduce/x=ring",
            "allreduce/4@8=ring",
            "a/-1=ring",
        ] {
            assert_eq!(AlgorithmChoices::parse(wrong), None, "{wrong}");
        }
    }

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
