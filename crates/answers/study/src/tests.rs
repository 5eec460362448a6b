use std::collections::BTreeSet;

use super::*;
use crate::check::Evidence;
use crate::document::{Kind, Role};
use crate::verdict::Verdict;

fn all() -> Vec<Results> {
    STUDIES
        .iter()
        .map(|study| Results::without(*study).unwrap())
        .collect()
}

#[test]
fn every_statement_is_there_once() {
    let numbers = [("A", 31), ("B", 25), ("C", 15), ("D", 13), ("E", 38)];
    for (results, (letter, count)) in all().iter().zip(numbers) {
        let ids: BTreeSet<String> = results
            .document
            .claims
            .iter()
            .map(|c| c.id.clone())
            .collect();
        let wanted = (1..=count).map(|number| format!("{letter}{number:02}"));
        assert_eq!(ids, wanted.collect());
        assert_eq!(ids.len(), results.document.claims.len());
    }
}

#[test]
fn statements_without_contradiction_are_as_many_as_the_aims_say() {
    let all = all();
    let judged: Vec<_> = all.iter().flat_map(Results::judge).collect();
    let shapes = judged.iter().filter(|judged| !judged.kind.is_number());
    assert_eq!(shapes.clone().count(), 43);
    let shown = shapes.filter(|j| !j.is_beyond && j.verdict != Verdict::Contradicted);
    assert_eq!(shown.count(), 36);
}

#[test]
fn statements_that_repeat_others_name_them() {
    for results in &all() {
        let claims = &results.document.claims;
        for claim in claims.iter().filter(|claim| claim.repeats.is_some()) {
            let named = claim.repeats.as_deref().unwrap_or_default();
            let other = claims.iter().find(|other| named.starts_with(&other.id));
            let other = other.unwrap_or_else(|| panic!("{}: {named}", claim.id));
            assert!(
                other.repeats.is_none() && claim.kind.is_number(),
                "{}",
                claim.id
            );
        }
    }
}

#[test]
fn settings_are_no_predictions() {
    for results in &all() {
        for claim in &results.document.claims {
            assert!(
                claim.setting.is_none() || claim.role == Role::Setting,
                "{}",
                claim.id
            );
        }
    }
}

#[test]
fn comparisons_and_tables_are_of_curves_that_there_are() {
    for results in &all() {
        let document = &results.document;
        let known = |name: &str| document.curves.iter().any(|curve| curve.name == name);
        for comparison in &document.comparisons {
            assert!(known(&comparison.first) && known(&comparison.second));
        }
        for column in document.tables.iter().flat_map(|table| &table.columns) {
            let mut measures = document.measures.iter();
            assert!(known(&column.curve) && measures.any(|measure| measure.name == column.of));
        }
    }
}

#[test]
fn machines_are_in_the_catalogue_or_in_the_document() {
    use fabric::catalogue::Catalogue;
    for results in &all() {
        for curve in &results.document.curves {
            let mut catalogue = Catalogue::builtin();
            let mut own = results.document.machines.iter();
            if let Some(machine) = own.find(|machine| machine.name == curve.fabric) {
                let added = catalogue.add(&machine.name, &machine.text);
                added.map_err(|why| why.to_string()).unwrap();
            }
            assert!(catalogue.system(&curve.fabric).is_ok(), "{}", curve.fabric);
        }
    }
}

#[test]
fn verdicts_come_from_the_data_or_from_measurements() {
    let all = all();
    let starts = |id: &str, wanted: Verdict, text: &str| {
        let judged = all.iter().flat_map(Results::judge);
        let found = judged
            .into_iter()
            .find(|judged| judged.claim == id)
            .unwrap();
        assert_eq!(found.verdict, wanted, "{id}");
        assert!(found.measured.starts_with(text), "{}", found.measured);
    };
    starts("A03", Verdict::NotModelled, "noise");
    starts("A14", Verdict::Setting, "FISHPLATE_STRIPE_THRESHOLD");
    starts("A15", Verdict::Differs, "not measured");
    starts(
        "A29",
        Verdict::Contradicted,
        "not measured; contradicts physics",
    );
}

#[test]
fn statements_about_the_catalogue_need_no_measurement() {
    let all = all();
    let judged: Vec<_> = all.iter().flat_map(Results::judge).collect();
    for id in [
        "A01", "B01", "B05", "C15", "D02", "D04", "D12", "E14", "E23", "E24",
    ] {
        let found = judged.iter().find(|judged| judged.claim == id).unwrap();
        assert_eq!(found.verdict, Verdict::Holds, "{id}: {}", found.measured);
        assert!(found.kind == Kind::Absolute || id == "D04");
    }
}

#[test]
fn a_machine_that_the_catalogue_accepts_is_not_refused() {
    let generations = Results::without(STUDIES[4]).unwrap();
    let mut claims = generations.document.claims.iter();
    let copper = claims.find(|claim| claim.id == "E14").unwrap();
    let mut machines = generations.document.machines.clone();
    for machine in &mut machines {
        machine.text = machine.text.replace("11 m", "9 m");
    }
    let evidence = Evidence {
        curves: &generations.curves,
        machines: &machines,
        missing: &generations.missing,
    };
    let holds: Vec<bool> = copper
        .checks
        .iter()
        .map(|c| c.decide(&evidence).holds)
        .collect();
    assert_eq!(holds, [true, false, true]);
}

#[test]
fn a_skew_is_a_time() {
    assert_eq!(crate::skew("2.5"), Ok(2.5));
    for wrong in ["-1", "nan", "inf", "2us", ""] {
        let said = crate::skew(wrong);
        assert_eq!(said, Err("valid are microseconds from 0".into()), "{wrong}");
    }
}
