use super::*;
use profile::ResourceUse;

fn using(names: &[&str]) -> Summary {
    let resource = |name: &&str| ResourceUse {
        name: (*name).into(),
        share: 0.5,
        ..ResourceUse::default()
    };
    Summary {
        resources: names.iter().map(resource).collect(),
        ..Summary::default()
    }
}

#[test]
fn what_is_estimated_is_said() {
    let mut comparison = sweep(0.5, 1.0);
    assert!(!remarks(&comparison).join(" ").contains("--fast"));
    comparison.is_estimated = true;
    let shown = remarks(&comparison).join(" ");
    assert!(
        shown.contains("(--fast): the shares of the time."),
        "{shown}"
    );
}

#[test]
fn the_busiest_resource_is_one_of_the_network_if_any_is_known() {
    let computing = "processor of rank 3 (computing)";
    let shown = busiest(&using(&[computing, "link out", "memory"]));
    assert_eq!(shown.as_deref(), Some("link out 50 %"));
    let shown = busiest(&using(&[computing]));
    assert_eq!(shown.as_deref(), Some("processor 50 %"));
    assert_eq!(busiest(&using(&[])), None);
}

/// A comparison of a run with 8 ranks, which takes 2 s, and one with 16 ranks, which takes
/// `seconds`. The ranks together compute for 10 s, and with 16 ranks for `computing` seconds.
fn sweep(seconds: f64, computing: f64) -> Comparison {
    let row = |ranks, seconds| Row {
        machine: 0,
        ranks,
        outcome: Outcome::Ran(Box::new(Summary {
            virtual_s: Some(seconds),
            ..Summary::default()
        })),
        bounds: None,
        no_bounds: None,
        start: Some(0.0),
        prediction: None,
        iteration: None,
        value: Some(seconds),
        cost: Err("no price of its host".into()),
        free: None,
        without: Vec::new(),
        is_of_iterations: false,
        placed: Vec::new(),
    };
    let recorded = |ranks, computing| crate::report::Recorded {
        ranks,
        recordings: 3,
        aligned: true,
        computing,
        found: Err(crate::main_loop::NoLoop::RanksDiffer),
        unevenness: None,
    };
    let rows = vec![row(8, 2.0), row(16, seconds)];
    Comparison {
        program: "./a".into(),
        trace: None,
        notes: Vec::new(),
        is_measured: false,
        checks: Vec::new(),
        is_estimated: false,
        per_host: 1,
        placement: crate::PlacementChoice::default(),
        setting: Vec::new(),
        terms: crate::cost::Terms::default(),
        machines: Vec::new(),
        advice: crate::advice::Advice::of(&rows, &[]),
        measure: Measure::Rest,
        iterations: None,
        rows,
        recorded: vec![recorded(8, 10.0), recorded(16, computing)],
    }
}

#[test]
fn an_efficiency_above_100_percent_is_explained() {
    assert_eq!(remarks(&sweep(1.1, 10.0)), Vec::<String>::new());
    let less = remarks(&sweep(0.8, 8.0));
    assert!(
        less[0].contains("efficiency of 16 ranks is above 100 %")
            && less[0].contains("compute 20 % less"),
        "{less:?}"
    );
    let waits = remarks(&sweep(0.8, 10.5));
    assert!(
        waits[0].contains("they wait less for each other"),
        "{waits:?}"
    );
    assert_eq!((less.len(), waits.len()), (1, 1));
}

#[test]
fn running_text_is_wrapped_between_words() {
    let text = "word ".repeat(60);
    let lines = wrapped(text.trim_end());
    assert!(lines.lines().all(|line| line.chars().count() <= WIDE));
    assert_eq!(lines.replace('\n', " "), text.trim_end());
}

#[test]
fn a_trace_is_named_with_what_it_cannot_tell() {
    let mut comparison = sweep(1.0, 10.0);
    for of in &mut comparison.recorded {
        of.recordings = 1;
    }
    assert_eq!(
        recordings(&comparison),
        "recorded once for each number of ranks"
    );
    comparison.trace = Some("./heat 256".into());
    comparison.notes = vec!["cut: 4 of 8 ranks".into()];
    assert_eq!(recordings(&comparison), "a trace of `./heat 256`");
    let says = remarks(&comparison).join(" ");
    assert!(says.contains("One recording shows no spread"), "{says}");
    assert!(says.contains("notes: cut: 4 of 8 ranks"), "{says}");
    for of in &mut comparison.recorded {
        of.computing = 0.0;
    }
    let says = remarks(&comparison).join(" ");
    assert!(says.contains("The recordings have no computing"), "{says}");
}
