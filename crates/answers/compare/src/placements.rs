//! The choice of placements of a compared job on its machines.

use model::placement::{Placement, PlacementRule};
use profile::Summary;

/// The number of placements by chance, unless the user wants another.
pub const RANDOM: u64 = 5;

/// The placements that a comparison takes for one: several by chance have a median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementChoice {
    /// The name of the choice, as the user writes it.
    pub name: String,
    /// The placements of the choice; at least one.
    pub each: Vec<Placement>,
}

impl Default for PlacementChoice {
    fn default() -> PlacementChoice {
        PlacementChoice::of(Placement::default())
    }
}

impl PlacementChoice {
    fn of(placement: Placement) -> PlacementChoice {
        PlacementChoice {
            name: placement.to_string(),
            each: vec![placement],
        }
    }

    /// The choices that words such as `packed,random` or `0,4,8-11` name. Numbers beside each other
    /// are one list of hosts. `random` without a seed stands for `count` placements.
    ///
    /// # Errors
    /// A word that names no placement, or that stands there twice.
    pub fn parse(words: &[String], count: u64) -> Result<Vec<PlacementChoice>, String> {
        let mut choices: Vec<PlacementChoice> = Vec::new();
        for words in words {
            let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
            let parts: Vec<&str> = words.split(',').collect();
            for run in parts.chunk_by(|one, next| is_number(one) && is_number(next)) {
                let choice = match run {
                    ["random"] => PlacementChoice {
                        name: "random".into(),
                        each: (1..=count)
                            .map(|seed| Placement::Rule(PlacementRule::Random, seed))
                            .collect(),
                    },
                    run => PlacementChoice::of(run.join(",").parse()?),
                };
                if choices.iter().any(|known| known.name == choice.name) {
                    return Err(format!("{} is named twice", choice.name));
                }
                choices.push(choice);
            }
        }
        if choices.is_empty() {
            choices.push(PlacementChoice::default());
        }
        Ok(choices)
    }

    /// True if the job fills the first hosts of each machine, as without a choice.
    pub fn is_packed(&self) -> bool {
        self.each.iter().all(Placement::is_packed)
    }

    /// True if the choice is of several placements.
    pub fn is_several(&self) -> bool {
        self.each.len() > 1
    }
}

/// A run of a row's program with one of several placements.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The placement.
    pub placement: Placement,
    /// The summary of the run.
    pub summary: Summary,
    /// The time by which machines are compared, in seconds. `None`: it is unknown.
    pub value: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], count: u64) -> Result<Vec<(String, usize)>, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let choices = PlacementChoice::parse(&words, count)?.into_iter();
        Ok(choices
            .map(|choice| (choice.name, choice.each.len()))
            .collect())
    }

    #[test]
    fn numbers_beside_each_other_are_one_list() {
        let found = names(&["packed,random,0,4,8-11,spread", "1,2"], 5).unwrap();
        let wanted = [
            ("packed", 1),
            ("random", 5),
            ("0,4,8-11", 1),
            ("spread", 1),
            ("1-2", 1),
        ];
        assert_eq!(found, wanted.map(|(name, count)| (name.into(), count)));
        assert_eq!(names(&[], 5), Ok(vec![("packed".into(), 1)]));
        assert_eq!(names(&["random:3"], 5), Ok(vec![("random:3".into(), 1)]));
        for (words, says) in [
            ("packed,packed", "packed is named twice"),
            ("0,1,0", "host 0 is named twice"),
            ("random:x", "'x' is not a seed"),
            ("packed,", "'' is no placement"),
        ] {
            let why = names(&[words], 5).unwrap_err();
            assert!(why.contains(says), "{words}: {why}");
        }
    }
}
