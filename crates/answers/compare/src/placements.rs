//! The choice of placements of a compared job on its machines, and of draws of nodes that vary.

use model::placement::{Placement, PlacementRule};
use profile::Summary;

/// The number of placements by chance, unless the user wants another.
pub const RANDOM: u64 = 5;

/// A job as it may run: its placement, and its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Draw {
    /// The placement.
    pub placement: Placement,
    /// The seed of the speeds of nodes and of the delays of calls. `None`: nodes are equal.
    pub variation: Option<u64>,
}

impl Draw {
    /// True if the job fills the first hosts and nodes are equal, as without a choice.
    pub(crate) fn is_usual(&self) -> bool {
        self.placement.is_packed() && self.variation.is_none()
    }
}

/// The placements that a comparison takes for one: several by chance have a median.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementChoice {
    /// The name of the choice, as the user writes it.
    pub name: String,
    /// The placements and draws of the choice; at least one.
    pub each: Vec<Draw>,
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
            each: vec![Draw {
                placement,
                variation: None,
            }],
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
                            .map(|seed| Draw {
                                placement: Placement::Rule(PlacementRule::Random, seed),
                                variation: None,
                            })
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

    /// The choice with nodes that vary: `draws` draws of one placement, or one of each of several.
    pub fn varied(mut self, draws: u64) -> PlacementChoice {
        if let [one] = &self.each[..] {
            self.each = vec![one.clone(); draws.max(1) as usize];
        }
        for (draw, seed) in self.each.iter_mut().zip(1..) {
            draw.variation = Some(seed);
        }
        self.name += ", nodes vary";
        self
    }

    /// True if the job fills the first hosts of each machine and nodes are equal, as without a
    /// choice.
    pub fn is_packed(&self) -> bool {
        self.each.iter().all(Draw::is_usual)
    }

    /// True if the choice is of several placements.
    pub fn is_several(&self) -> bool {
        self.each.len() > 1
    }
}

/// A run of a row's program with one of several placements.
#[derive(Clone, Debug)]
pub struct PlacedRun {
    /// The placement, and the draw of nodes.
    pub draw: Draw,
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

    #[test]
    fn nodes_vary_in_draws_of_one_placement_or_with_each_of_several() {
        let choices = PlacementChoice::parse(&["packed,random".to_owned()], 3).unwrap();
        let seeds = |choice: &PlacementChoice| {
            let choice = choice.clone().varied(4);
            assert!(choice.name.ends_with(", nodes vary") && !choice.is_packed());
            let seeds = choice.each.iter().map(|draw| draw.variation);
            seeds.collect::<Option<Vec<u64>>>()
        };
        assert_eq!(seeds(&choices[0]), Some(vec![1, 2, 3, 4]));
        assert_eq!(seeds(&choices[1]), Some(vec![1, 2, 3]));
    }
}
