use super::*;

fn document() -> Document {
    Document::read("dual-rail", DOCUMENT).unwrap()
}

#[test]
fn every_statement_is_there_once() {
    let ids: Vec<String> = document()
        .claims
        .into_iter()
        .map(|claim| claim.id)
        .collect();
    let all: Vec<String> = (1..=31).map(|number| format!("A{number:02}")).collect();
    assert_eq!(ids, all);
}

#[test]
fn comparisons_are_of_curves_that_there_are() {
    let document = document();
    let known = |name: &str| document.curves.iter().any(|curve| curve.name == name);
    for comparison in &show::COMPARISONS {
        assert!(known(comparison.rails) && known(comparison.fdr));
    }
    assert!(ONE_RAIL.into_iter().all(known));
}

#[test]
fn verdicts_come_from_the_data_or_from_measurements() {
    let document = document();
    let verdict = |id: &str| {
        let judged = judge(&document, &Curves::default());
        let judged = judged.into_iter().find(|judged| judged.claim == id);
        judged.map(|judged| (judged.verdict, judged.measured))
    };
    let starts = |id: &str, verdict_wanted: Verdict, text: &str| {
        let (found, measured) = verdict(id).unwrap();
        assert_eq!(found, verdict_wanted);
        assert!(measured.starts_with(text), "{measured}");
    };
    starts("A03", Verdict::NotModelled, "noise");
    starts("A14", Verdict::Setting, "FISHPLATE_STRIPE_THRESHOLD");
    starts("A15", Verdict::NotReproduced, "not measured");
    starts(
        "A24",
        Verdict::Contradiction,
        "not measured; contradicts A25",
    );
}
