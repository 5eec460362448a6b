//! Remarks on measurements that are not reliable: rounds that differ more than usual, ranks that
//! shared their cores, ratios between different states of the cores; each with the reason, if one
//! was seen.

use conditions::{Conditions, Disturbances};
use results::Unit;
use results::sizes::size_label;
use results::stats::unusual_spread;
use results::table::distinct;

use crate::measurement::Measurement;

/// The remarks on one measurement.
pub(crate) fn on(one: &Measurement, conditions: Option<&Conditions>) -> Vec<String> {
    let mut all = Vec::new();
    let seen = joined(one.disturbances.iter());
    match spread(one) {
        Some(factor) => all.push(format!(
            "the rounds differ by a factor of {factor:.1}, more than usual; {}",
            reasons(&seen)
        )),
        None if seen.are_severe() => all.push(format!("{BUSY}; {}", reasons(&seen))),
        None => {}
    }
    all.extend(changed(conditions));
    all
}

const BUSY: &str = "the ranks did not have their cores to themselves";

/// The remarks on all measurements of a run, and the conditions; each is a line.
pub(crate) fn lines(all: &[Measurement], conditions: Option<&Conditions>) -> Vec<String> {
    let mut lines = Vec::new();
    let labels = distinct(all.iter().map(|one| one.label.as_str()));
    for label in &labels {
        let own: Vec<&Measurement> = all.iter().filter(|one| one.label == *label).collect();
        let subject = match labels.len() {
            1 => String::new(),
            _ => format!(" on {label}"),
        };
        lines.extend(of_library(&own).map(|text| format!("Remark{subject}: {text}.")));
    }
    lines.extend(changed(conditions).map(|text| format!("Remark: {text}.")));
    lines.extend(conditions.map(|conditions| conditions.line() + "."));
    lines
}

/// The remark on a library's measurements. `None`: they are reliable.
fn of_library(own: &[&Measurement]) -> Option<String> {
    // The figures of one job share the job's disturbances.
    let jobs = distinct(own.iter().map(|one| &one.disturbances));
    let seen = joined(jobs.into_iter().flatten());
    let spreads = own.iter().filter_map(|one| Some((spread(one)?, *one)));
    let spreads: Vec<(f64, &Measurement)> = spreads.collect();
    let worst = spreads
        .iter()
        .max_by(|one, other| one.0.total_cmp(&other.0));
    match worst {
        Some((factor, one)) => {
            let at = match one.is_sized {
                true => format!(" at {}", size_label(one.size)),
                false => String::new(),
            };
            Some(format!(
                "these medians are uncertain: the rounds differ more than usual in {} of {} \
                 rows, by a factor of up to {factor:.1}{at}; {}",
                spreads.len(),
                own.len(),
                reasons(&seen)
            ))
        }
        None if seen.are_severe() => Some(format!(
            "these are figures of a busy machine: {BUSY}; {}",
            reasons(&seen)
        )),
        None => None,
    }
}

/// The quotient of the ends of the median's confidence interval, if it is unusually large for a
/// time or a rate.
fn spread(one: &Measurement) -> Option<f64> {
    match one.unit {
        Unit::Kibibytes | Unit::Percent => None,
        _ => unusual_spread(&one.rounds),
    }
}

fn joined<'a>(all: impl Iterator<Item = &'a Disturbances>) -> Disturbances {
    all.fold(Disturbances::default(), |sum, one| sum.and(*one))
}

fn reasons(seen: &Disturbances) -> String {
    match seen.reasons() {
        none if none.is_empty() => "the kernel's counters show no reason".into(),
        all => format!("seen meanwhile: {}", all.join(", ")),
    }
}

/// The remark about ranks whose cores changed during a run. `None`: they did not change, or are
/// unknown.
fn changed(conditions: Option<&Conditions>) -> Option<String> {
    let conditions = conditions.filter(|conditions| !conditions.is_of_one_state())?;
    let (before, after) = (conditions.cores_before?, conditions.cores_after?);
    Some(format!(
        "the cores changed from {} to {} during the run: its figures and ratios mix different states",
        before.words(),
        after.words()
    ))
}

#[cfg(test)]
mod tests {
    use conditions::{Machine, Proximity};
    use proptest::prelude::*;

    use super::*;
    use crate::measurement::tests::measured;

    fn rounds(label: &str, size: usize, rounds: &[f64]) -> Measurement {
        measured(label, "latency", size, Unit::Microseconds, rounds)
    }

    fn conditions(before: Proximity, after: Proximity) -> Conditions {
        Conditions {
            machine: Machine::now(),
            cache_line_ns_before: Some(60),
            cache_line_ns_after: Some(60),
            cores_before: Some(before),
            cores_after: Some(after),
            load: 0.0,
        }
    }

    const WAITING: Disturbances = Disturbances {
        load: 0.0,
        processors: 2,
        stolen: 0.0,
        throttled: 0.0,
        involuntary_switches: 0,
        waited: 0.4,
        seconds: 1.0,
    };

    #[test]
    fn steady_rounds_have_no_remark() {
        let steady = rounds("own", 8, &[0.2, 0.21, 0.22]);
        assert!(on(&steady, None).is_empty() && lines(&[steady], None).is_empty());
        let memory = measured("own", "init/private", 0, Unit::Kibibytes, &[10.0, 90.0]);
        assert!(on(&memory, None).is_empty());
    }

    #[test]
    fn a_spread_is_named_with_its_place_and_its_reason() {
        let mut wild = rounds("own", 8, &[0.25, 1000.0, 0.5]);
        let steady = rounds("own", 16, &[0.25, 0.25, 0.25]);
        let all = [wild.clone(), steady];
        assert_eq!(
            lines(&all, None),
            [
                "Remark: these medians are uncertain: the rounds differ more than usual in 1 of 2 \
              rows, by a factor of up to 4000.0 at 8 B; the kernel's counters show no reason."
            ]
        );
        wild.disturbances = vec![WAITING];
        let remark = &on(&wild, None)[0];
        assert!(
            remark.ends_with("a rank waited 40 % of the time for a core"),
            "{remark}"
        );
    }

    #[test]
    fn steady_figures_of_a_busy_machine_are_named() {
        let mut one = rounds("own", 8, &[900.0, 900.0]);
        one.disturbances = vec![WAITING; 2];
        let other = rounds("other", 8, &[1.0, 1.0]);
        let found = lines(&[one, other], None);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].starts_with("Remark on own: these are figures of a busy"),
            "{found:?}"
        );
    }

    #[test]
    fn ratios_between_different_states_are_named() {
        let moved = conditions(Proximity::Near, Proximity::Far);
        let [one, other] = [rounds("own", 8, &[1.0]), rounds("other", 8, &[2.0])];
        let found = lines(&[one.clone(), other], Some(&moved));
        assert!(
            found[0].contains("from near cores to far cores"),
            "{found:?}"
        );
        assert!(on(&one, Some(&moved))[0].contains("its figures and ratios mix different states"));
        let stayed = conditions(Proximity::Near, Proximity::Near);
        assert!(on(&one, Some(&stayed)).is_empty());
    }

    proptest! {
        #[test]
        fn a_remark_stands_in_both_forms_or_in_none(
            values in proptest::collection::vec(0.1..10.0f64, 1..7), waited in 0.0..1.0f64,
        ) {
            let mut one = rounds("own", 8, &values);
            one.disturbances = vec![Disturbances { waited, ..WAITING }; values.len()];
            let (json, text) = (on(&one, None), lines(std::slice::from_ref(&one), None));
            prop_assert_eq!(json.len(), text.len());
        }
    }
}
