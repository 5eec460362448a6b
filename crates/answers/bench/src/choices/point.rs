//! One point: a benchmark with a number of ranks and a size, measured with the default settings and
//! with every forced choice; and its regret. All functions are pure.
//!
//! Statistics use only the rounds in which the cores had the most frequent proximity, because
//! ratios of medians over several states are meaningless.

use conditions::Proximity;
use results::Unit;
use results::stats::{median, ratio_bound};

/// The name of the choice that is measured with default settings.
pub(super) const DEFAULT: &str = "default";
/// The fewest rounds with one proximity of the cores that are evaluated by themselves. With fewer,
/// all rounds are evaluated.
const FEWEST: usize = 3;
/// The greatest regret that is accepted after the noise of the measurement has been subtracted: for
/// messages, and for collectives.
const LIMITS: [f64; 2] = [1.05, 1.10];

/// One point: a benchmark with a number of ranks and a size.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) benchmark: String,
    /// The modelled machine on which the point was measured, if any.
    pub(super) fabric: Option<String>,
    pub(super) ranks: usize,
    pub(super) size: usize,
    pub(super) is_sized: bool,
    pub(super) is_collective: bool,
    pub(super) unit: Unit,
    /// The proximity of the ranks' cores in each round. `None`: it changed during the round, or
    /// could not be determined.
    pub(super) places: Vec<Option<Proximity>>,
    /// The choice that the library made with its default settings.
    pub(super) taken: String,
    /// The name of the forced choice that equals the choice of the default settings. `None`: no
    /// forced choice does.
    pub(super) own: Option<String>,
    /// The value that the default settings reached in each round.
    pub(super) default: Vec<f64>,
    pub(super) choices: Vec<Choice>,
}

/// A choice that settings force, with the values that were measured with it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) name: String,
    /// The environment variables that force the choice, with their values.
    pub(super) settings: Vec<(String, String)>,
    /// The value that the choice reached in each round.
    pub(super) rounds: Vec<f64>,
}

/// The regret of a point.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Regret<'a> {
    pub(super) best: &'a Choice,
    /// The median time with the default settings, divided by that with the best choice. A rate
    /// counts as the time of a unit.
    pub(super) ratio: f64,
    /// The upper bound of the regret as a ratio of times, with a confidence of 95 %.
    pub(super) bound: f64,
    /// The noise of the measurement: the relative difference between the default settings and the
    /// default's choice, forced. `None`: the choice cannot be forced.
    pub(super) noise: Option<f64>,
    /// The greatest `bound` of an acceptable regret.
    pub(super) limit: f64,
}

impl Regret<'_> {
    pub(super) fn is_met(&self) -> bool {
        self.bound <= self.limit
    }

    /// True if the best choice differs from the choice of the default settings.
    pub(super) fn is_of_choice(&self, point: &Point) -> bool {
        point.own.as_deref() != Some(&*self.best.name)
    }
}

impl Point {
    /// The most frequent proximity of the cores: only its rounds are evaluated. `None`: too few
    /// rounds have it, so all rounds are evaluated.
    pub(super) fn place(&self) -> Option<Proximity> {
        let count = |place: &Proximity| {
            let same = self.places.iter().filter(|one| **one == Some(*place));
            same.count()
        };
        let seen = self.places.iter().flatten();
        let most = seen.copied().max_by_key(count)?;
        (count(&most) >= FEWEST.min(self.places.len())).then_some(most)
    }

    /// Those of the rounds' values that are evaluated: the rounds with the proximity of the point.
    pub(super) fn counted(&self, rounds: &[f64]) -> Vec<f64> {
        let place = self.place();
        let counts = |at: &usize| place.is_none() || self.places.get(*at) == Some(&place);
        let counted = (0..rounds.len()).filter(counts);
        counted.map(|at| rounds[at]).collect()
    }

    /// The values of the rounds that are evaluated, as times: a rate becomes the time of a unit.
    fn times(&self, rounds: &[f64]) -> Vec<f64> {
        let counted = self.counted(rounds);
        match self.unit.more_is_better() {
            true => counted.iter().map(|value| 1.0 / value).collect(),
            false => counted,
        }
    }

    /// The median time with default settings, divided by that of a forced choice.
    pub(super) fn ratio(&self, choice: &Choice) -> f64 {
        median(&self.times(&self.default)) / median(&self.times(&choice.rounds))
    }

    /// The regret of the point's default choice; `None` if no choice can be forced.
    pub(super) fn regret(&self) -> Option<Regret<'_>> {
        let best = *self.ranked().first()?;
        let own = self.own.as_deref();
        let own = own.and_then(|own| self.choices.iter().find(|one| one.name == own));
        let noise = own
            .map(|own| self.ratio(own))
            .map(|ratio| ratio.max(1.0 / ratio) - 1.0);
        Some(Regret {
            best,
            ratio: self.ratio(best),
            bound: ratio_bound(&self.times(&self.default), &self.times(&best.rounds)),
            noise,
            limit: self.limit() + noise.unwrap_or(0.0),
        })
    }

    /// The greatest acceptable bound of the point's regret, without an allowance for noise.
    pub(super) fn limit(&self) -> f64 {
        LIMITS[usize::from(self.is_collective)]
    }

    /// The choices from the best to the worst; equal ones keep their order.
    pub(super) fn ranked(&self) -> Vec<&Choice> {
        let mut all: Vec<&Choice> = self.choices.iter().collect();
        all.sort_by(|one, other| self.ratio(other).total_cmp(&self.ratio(one)));
        all
    }
}

/// The state of the cores in each round, from the states before, between and after the rounds.
/// `None` if it changed during the round.
pub(super) fn of_rounds(seen: &[Option<Proximity>]) -> Vec<Option<Proximity>> {
    let same = |pair: &[Option<Proximity>]| pair[0].filter(|_| pair[0] == pair[1]);
    seen.windows(2).map(same).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use Proximity::{Far, OneCore};

    pub(in super::super) fn choice(name: &str, rounds: &[f64]) -> Choice {
        Choice {
            name: name.into(),
            settings: vec![("FISHPLATE_X".into(), name.into())],
            rounds: rounds.into(),
        }
    }

    pub(in super::super) fn point(size: usize, default: &[f64], choices: Vec<Choice>) -> Point {
        Point {
            benchmark: "latency".into(),
            fabric: None,
            ranks: 2,
            size,
            is_sized: true,
            is_collective: false,
            unit: Unit::Microseconds,
            places: vec![Some(OneCore); default.len()],
            taken: "eager".into(),
            own: Some("eager".into()),
            default: default.into(),
            choices,
        }
    }

    #[test]
    fn regret_is_the_default_over_the_best_and_noise_the_own_choice() {
        let choices = vec![
            choice("eager", &[2.1, 2.1, 2.1]),
            choice("packets", &[1.0, 1.0, 1.0]),
        ];
        let point = point(8, &[2.0, 2.0, 2.0], choices);
        let regret = point.regret().unwrap();
        assert_eq!(
            (&*regret.best.name, regret.ratio, regret.bound),
            ("packets", 2.0, 2.0)
        );
        assert!((regret.noise.unwrap() - 0.05).abs() < 1e-9);
        assert!((regret.limit - 1.10).abs() < 1e-9);
        assert!(!regret.is_met());
        assert_eq!(point.ranked()[1].name, "eager");
    }

    #[test]
    fn more_is_better_for_rates() {
        let choices = vec![choice("eager", &[90.0; 3]), choice("packets", &[150.0; 3])];
        let point = Point {
            unit: Unit::MegabytesPerSecond,
            ..point(8, &[100.0; 3], choices)
        };
        let regret = point.regret().unwrap();
        assert_eq!(regret.best.name, "packets");
        assert!((regret.ratio - 1.5).abs() < 1e-9);
    }

    #[test]
    fn rounds_of_the_most_frequent_state_count() {
        let choices = vec![choice("eager", &[1.0, 9.0, 1.0, 9.0, 1.0])];
        let mut point = point(8, &[1.0, 5.0, 1.0, 5.0, 1.0], choices);
        point.places = [OneCore, Far, OneCore, Far, OneCore].map(Some).into();
        assert_eq!(point.place(), Some(OneCore));
        assert_eq!(point.counted(&point.default), [1.0; 3]);
        assert_eq!(point.regret().unwrap().bound, 1.0);
        // No state is frequent enough, so all rounds are evaluated.
        point.places = vec![Some(OneCore), Some(Far), None, None, Some(OneCore)];
        assert_eq!(point.place(), None);
        assert_eq!(point.counted(&point.default).len(), 5);
        assert_eq!(
            of_rounds(&[Some(Far), Some(Far), None, None, Some(Far)]),
            [Some(Far), None, None, None]
        );
    }

    #[test]
    fn a_modelled_point_has_one_exact_round() {
        let mut point = point(8, &[3.0], vec![choice("eager", &[3.0])]);
        point.places = vec![None];
        point.is_collective = true;
        let regret = point.regret().unwrap();
        assert_eq!(
            (regret.bound, regret.noise, regret.limit),
            (1.0, Some(0.0), 1.10)
        );
        point.choices.clear();
        assert_eq!(point.regret(), None);
    }
}
