//! Judges how sure the answer of a comparison is, by the weakest of three criteria.
//!
//! - By the recordings: the answer is unsure if it changes without one of them, or if the times
//!   spread by more than [`SPREAD`]. Of one recording, parts of the iterations are left out;
//!   without a loop its spread is unknown, and nothing is sure. In a trace, the choice of sources
//!   by time is the same to it ([`crate::free_sources`]).
//! - By the model: the errors of ratios of two machines, on systems that were not used to build it
//!   ([`fabric::accuracy`]), applied to the shares of the time that the network costs.
//! - By the values that are assumed or inferred ([`crate::sensitivity`]).

use fabric::accuracy::Certainty;

use crate::advice::Advice;
use crate::free_sources::FreeSources;
use crate::model_word::ModelWord;
use crate::row::{EQUAL, SPREAD};
use crate::sensitivity::Sensitivity;

impl Sensitivity {
    fn certainty(&self) -> Certainty {
        match (self.holds_for_all, self.deciding.as_slice()) {
            (true, _) => Certainty::Sure,
            (false, []) => Certainty::FairlySure,
            (false, _) => Certainty::Unsure,
        }
    }
}

impl Advice {
    /// The weakest of the three certainties. `None`: the sensitivity to assumptions is unknown.
    pub fn certainty(&self) -> Option<Certainty> {
        let model = self.model.map_or(Certainty::Sure, |word| word.certainty);
        let assumptions = self.sensitivity.as_ref()?.certainty();
        let is_unsettled = self.recordings.0 > 0 || self.is_spread();
        let is_unsettled = is_unsettled || self.depends_on_placement();
        match is_unsettled || self.free_sources.is_some_and(|found| found.decides()) {
            true => Some(Certainty::Unsure),
            false if self.has_unknown_spread => {
                Some(model.min(assumptions).min(Certainty::FairlySure))
            }
            false => Some(model.min(assumptions)),
        }
    }

    fn is_spread(&self) -> bool {
        self.times_spread.is_some_and(|spread| spread > SPREAD)
    }

    /// The sentence about the certainty.
    pub(crate) fn certainty_sentence(&self) -> String {
        let (changing, all) = self.recordings;
        let part = match self.from_iterations {
            true => "a part of the iterations",
            false => "one of the recordings",
        };
        if changing > 0 {
            return format!(
                "this is unsure: without {part} the answer is another one ({changing} of {all}); record on a quieter computer"
            );
        }
        if let Some(spread) = self.times_spread.filter(|_| self.is_spread()) {
            return format!(
                "this is unsure: without {part} a time is up to {:.0} % another one; record on a quieter computer",
                spread * 100.0
            );
        }
        if let Some(found) = self.free_sources.filter(FreeSources::decides) {
            return found.sentence();
        }
        if self.depends_on_placement() {
            return "this is unsure: by chance it is another one".into();
        }
        let Some(found) = &self.sensitivity else {
            return "nothing is known about how sure this is (--quick)".into();
        };
        let model = self.model.map_or(Certainty::Sure, |word| word.certainty);
        // If both certainties are equal, name the assumptions: they say more than the model's
        // error.
        let said = match self.model.filter(|_| model < found.certainty()) {
            Some(word) => self.said_of_model(&word, found),
            None => self.said_of_assumptions(found),
        };
        match (self.has_unknown_spread, said.strip_prefix("this is sure")) {
            (false, _) => said,
            (true, None) => format!("{said}, beside one recording, whose spread is unknown"),
            (true, Some(rest)) => format!(
                "this is fairly sure, and not more, because the spread of one recording is unknown{rest}"
            ),
        }
    }

    /// The greatest difference, in percent, with which all machines still count as equal. `None`:
    /// the machines are not all equal.
    fn equal_percent(&self) -> Option<f64> {
        self.rival.is_none().then_some(2.0 * EQUAL * 100.0)
    }

    /// The sentence if the error of the model is what makes the answer less than sure.
    fn said_of_model(&self, word: &ModelWord, found: &Sensitivity) -> String {
        let errors = word.errors();
        match (word.certainty, self.equal_percent()) {
            (Certainty::Unsure, None) => format!(
                "this is unsure: {errors}, and such an error changes it, but none of the {} assumed or inferred values alone",
                found.assumptions
            ),
            (Certainty::Unsure, Some(percent)) => format!(
                "it would matter, by more than {percent:.0} %, if the model were off as far as it may be: {errors}"
            ),
            (_, None) => {
                format!(
                    "this is fairly sure: {errors}; such an error does not change it, but twice the error does"
                )
            }
            (_, Some(percent)) => format!(
                "this is fairly sure: {errors}; such an error makes no difference of {percent:.0} %, but twice the error does"
            ),
        }
    }

    /// The sentence if assumed or inferred values make the answer less than sure, or if nothing
    /// does.
    fn said_of_assumptions(&self, found: &Sensitivity) -> String {
        let count = found.assumptions;
        let best = self.name(self.best());
        match (
            found.holds_for_all,
            found.deciding.as_slice(),
            self.equal_percent(),
        ) {
            (true, _, None) => format!(
                "this is sure: {best} stays ahead even if all {count} assumed or inferred values are off by 20 % at once"
            ),
            (true, _, Some(percent)) => format!(
                "this is sure: the difference stays below {percent:.0} % even if all {count} assumed or inferred values are off by 20 % at once"
            ),
            (false, [], None) => format!(
                "this is fairly sure: none of the {count} assumed or inferred values changes it by being off by 20 %, but several at once do"
            ),
            (false, [], Some(percent)) => format!(
                "this is fairly sure: none of the {count} assumed or inferred values makes a difference of {percent:.0} % by being off by 20 %, but several at once do"
            ),
            (false, [one], None) => format!(
                "this is unsure: it changes if {} is off by 20 %",
                one.assumption.name
            ),
            (false, many, None) => format!(
                "this is unsure: it changes if one of {} values is off by 20 %",
                many.len()
            ),
            (false, [one], Some(percent)) => format!(
                "it would matter, by more than {percent:.0} %, if {} were off by 20 %",
                one.assumption.name
            ),
            (false, many, Some(percent)) => format!(
                "it would matter, by more than {percent:.0} %, if one of {} values were off by 20 %",
                many.len()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounds::Bounds;
    use crate::check;
    use crate::machine::Machine;
    use crate::row::FreeTimes;
    use crate::row::{Outcome, Row};
    use fabric::System;
    use fabric::accuracy::{Case, FigureKind};
    use fabric::catalogue::Catalogue;
    use fabric::components::Part;
    use profile::Summary;

    fn machine(name: &str) -> Machine {
        let sheet = Catalogue::builtin().sheet(System::KIND, name).unwrap();
        Machine::new(name, sheet).unwrap()
    }

    /// A row of eight ranks with this time; `network` is the share of it that latencies cost.
    fn row(machine: usize, seconds: f64, network: f64) -> Row {
        let summary = Summary {
            virtual_s: Some(seconds),
            ..Summary::default()
        };
        Row {
            machine,
            ranks: 8,
            outcome: Outcome::Ran(Box::new(summary)),
            bounds: Some(Bounds::of_latency(network)),
            no_bounds: None,
            start: Some(0.0),
            prediction: None,
            iteration: None,
            value: Some(seconds),
            cost: Err("no price of its host".into()),
            free: None,
            without: vec![seconds; 3],
            is_of_iterations: false,
            placed: Vec::new(),
        }
    }

    fn advice(rows: &[Row], machines: [&str; 2]) -> Advice {
        let mut advice = Advice::of(rows, &machines.map(machine));
        advice.sensitivity = Some(Sensitivity {
            assumptions: 40,
            estimated: (0, 0),
            holds_for_all: true,
            deciding: Vec::new(),
        });
        advice
    }

    /// The advice for two machines, of which the first takes `lead` times as long as the second.
    fn led_by(lead: f64, network: f64, machines: [&str; 2]) -> Advice {
        advice(&[row(0, lead, network), row(1, 1.0, network)], machines)
    }

    #[test]
    fn the_word_follows_the_error_of_ratios_of_such_machines() {
        const FAR: [&str; 2] = ["qdr", "edr"];
        let factor = Case::RatioAssumed.ratio_factor(FigureKind::ShortLatency);
        let word = |lead: f64, network: f64| {
            let found = led_by(lead, network, FAR);
            assert_eq!(found.headline(), "Take edr with 8 ranks");
            let certainty = found.certainty().unwrap();
            assert_eq!(found.certainty_word(), certainty.name());
            (certainty, found.certainty_sentence())
        };
        // The network costs all of the time: a lead smaller than the model's error is not a lead.
        let (certainty, says) = word(1.0 + (factor - 1.0) / 2.0, 1.0);
        assert_eq!(certainty, Certainty::Unsure);
        let wanted = "unsure: nine in ten published ratios of two machines of which one has an assumed library";
        assert!(says.contains(wanted), "{says}");
        let (certainty, says) = word(factor * 1.1, 1.0);
        assert_eq!(certainty, Certainty::FairlySure);
        assert!(
            says.contains("fairly sure") && says.contains("but twice the error does"),
            "{says}"
        );
        let (certainty, says) = word(factor * factor * 1.1, 1.0);
        assert_eq!(certainty, Certainty::Sure);
        assert!(says.contains("this is sure: edr stays ahead"), "{says}");
        // The network costs a hundredth of the time: a small lead is safe.
        assert_eq!(word(1.1, 0.01).0, Certainty::Sure);
    }

    #[test]
    fn machines_with_equal_hosts_share_the_error_of_these() {
        let lead = Case::RatioEqual.ratio_factor(FigureKind::ShortLatency) * 1.05;
        assert!(lead < Case::RatioAssumed.ratio_factor(FigureKind::ShortLatency));
        let equal = led_by(lead, 1.0, ["qdr", "2xqdr"]);
        assert_eq!(equal.model.unwrap().case, Case::RatioEqual);
        assert_eq!(equal.certainty(), Some(Certainty::FairlySure));
        assert_eq!(
            led_by(lead, 1.0, ["qdr", "edr"]).certainty(),
            Some(Certainty::Unsure)
        );
    }

    #[test]
    fn the_weakest_word_counts() {
        let mut found = led_by(20.0, 0.5, ["qdr", "edr"]);
        assert_eq!(found.certainty(), Some(Certainty::Sure));
        found.sensitivity.as_mut().unwrap().holds_for_all = false;
        assert_eq!(found.certainty(), Some(Certainty::FairlySure));
        let says = found.certainty_sentence();
        assert!(
            says.contains("fairly sure: none of the 40 assumed"),
            "{says}"
        );
        found.sensitivity = None;
        assert_eq!(found.certainty(), None);
        assert_eq!(found.certainty_word(), "certainty unknown");
    }

    #[test]
    fn a_recording_of_unknown_spread_is_never_sure() {
        let mut found = led_by(20.0, 0.5, ["qdr", "edr"]);
        found.has_unknown_spread = true;
        assert_eq!(found.certainty(), Some(Certainty::FairlySure));
        let says = found.certainty_sentence();
        assert!(
            says.starts_with("this is fairly sure, and not more, because the spread of one recording is unknown: edr"),
            "{says}"
        );
        found.sensitivity.as_mut().unwrap().holds_for_all = false;
        let says = found.certainty_sentence();
        assert!(
            says.ends_with(", beside one recording, whose spread is unknown"),
            "{says}"
        );
    }

    #[test]
    fn the_error_of_the_check_counts_in_place_of_that_of_published_figures() {
        let rows = [row(0, 1.5, 1.0), row(1, 1.0, 1.0)];
        let machines = ["qdr", "edr"].map(machine);
        let checked = |error: f64| {
            let kind = |replayed| check::Kind {
                name: check::WHOLE.into(),
                recorded: 1.0,
                replayed,
            };
            let check = check::Check {
                machine: "edr".into(),
                ranks: 8,
                per_host: 1,
                is_placed_alike: true,
                outcome: Ok(check::Checked {
                    kinds: vec![kind(1.0 + error)],
                    null: 1.0,
                    network: 0.5,
                    interrupted: 0.0,
                }),
            };
            let mut found = advice(&rows, ["qdr", "edr"]);
            found.take_checks(&[check], &rows, &machines);
            (found.certainty().unwrap(), found.certainty_sentence())
        };
        assert_eq!(
            advice(&rows, ["qdr", "edr"]).certainty(),
            Some(Certainty::Unsure)
        );
        // An error of 20 % in what the network costs, and one of 60 %.
        assert_ne!(checked(0.1).0, Certainty::Unsure);
        let (certainty, says) = checked(0.3);
        assert_eq!(certainty, Certainty::Unsure);
        assert!(
            says.contains("within a factor of 1.60 of what was recorded"),
            "{says}"
        );
    }

    #[test]
    fn times_that_spread_are_unsure() {
        let mut rows = [row(0, 20.0, 0.5), row(1, 1.0, 0.5)];
        rows[1].without = vec![0.96, 1.0, 1.05];
        assert_eq!(
            advice(&rows, ["qdr", "edr"]).certainty(),
            Some(Certainty::Sure)
        );
        rows[1].without = vec![0.94, 1.0, 1.05];
        let found = advice(&rows, ["qdr", "edr"]);
        assert_eq!(found.certainty(), Some(Certainty::Unsure));
        let says = found.certainty_sentence();
        assert!(says.contains("up to 11 % another one"), "{says}");
    }

    #[test]
    fn sources_that_time_chooses_make_an_answer_unsure() {
        let mut rows = [row(0, 20.0, 0.5), row(1, 1.0, 0.5)];
        let mut with_free = |times: [f64; 2]| {
            for (row, time) in rows.iter_mut().zip(times) {
                row.free = Some(FreeTimes {
                    whole: time,
                    value: time,
                });
            }
            let found = advice(&rows, ["qdr", "edr"]);
            (found.certainty().unwrap(), found.certainty_sentence())
        };
        assert_eq!(with_free([20.5, 0.95]).0, Certainty::Sure);
        let (certainty, says) = with_free([20.0, 1.12]);
        assert_eq!(certainty, Certainty::Unsure);
        assert!(says.contains("a time is up to 12 % another one"), "{says}");
        let (certainty, says) = with_free([0.9, 1.0]);
        assert_eq!(certainty, Certainty::Unsure);
        assert!(says.contains("the answer is another one"), "{says}");
    }

    #[test]
    fn equal_machines_may_differ_by_the_error() {
        let found = led_by(1.001, 1.0, ["qdr", "edr"]);
        assert_eq!(found.headline(), "With 8 ranks the choice hardly matters");
        assert_eq!(found.certainty_word(), "unsure");
        let says = found.certainty_sentence();
        let wanted = "it would matter, by more than 4 %, if the model";
        assert!(says.starts_with(wanted), "{says}");
    }

    #[test]
    fn machines_that_differ_in_speed_alone_have_no_error_of_ratios() {
        let (slow, fast) = (machine("qdr"), machine("qdr").with_speed(1.2));
        let rows = [row(0, 1.05, 1.0), row(1, 1.0, 1.0)];
        assert_eq!(Advice::of(&rows, &[slow, fast]).model, None);
    }
}
