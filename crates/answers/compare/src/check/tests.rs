use profile::{Messages, ProcedureUse, RankTimes};
use trace::{Builder, Inside};

use super::*;

fn rank(outside: u64, calls: &[(&str, u64)]) -> Measured {
    let inside = calls.iter().map(|(procedure, nanos)| Inside {
        procedure: (*procedure).into(),
        calls: 1,
        nanos: *nanos,
        ..Inside::default()
    });
    Measured {
        outside,
        inside: inside.collect(),
        ..Measured::default()
    }
}

/// The summary of a run of two ranks that both compute for so long, with these calls.
fn run(compute_s: f64, calls: &[(&str, f64)]) -> Summary {
    let per_rank = [0, 1].map(|rank| RankTimes {
        rank,
        compute_s,
        ..RankTimes::default()
    });
    let procedures = calls.iter().map(|(name, seconds)| ProcedureUse {
        name: (*name).into(),
        seconds: 2.0 * seconds,
        ..ProcedureUse::default()
    });
    Summary {
        per_rank: per_rank.into(),
        procedures: procedures.collect(),
        messages: Messages::default(),
        ..Summary::default()
    }
}

fn is_about(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() < 1e-9
}

#[test]
fn times_are_compared_by_kind_of_calls() {
    let ranks = [
        rank(500_000_000, &[("MPI_Send", 300_000_000), ("MPI_Wait", 0)]),
        rank(700_000_000, &[("MPI_Send", 100_000_000)]),
    ];
    let recording: Vec<&Measured> = ranks.iter().collect();
    let ours = run(
        0.6,
        &[("MPI_Init", 9.0), ("MPI_Send", 0.3), ("MPI_Wait", 0.02)],
    );
    let free = run(0.6, &[("MPI_Init", 0.0), ("MPI_Send", 0.12)]);
    let found = Checked::of(&[recording], &ours, &free, 0.7);
    let kinds: Vec<&str> = found.kinds.iter().map(|kind| kind.name.as_str()).collect();
    assert_eq!(kinds, [WHOLE, OUTSIDE, "MPI_Send", "MPI_Wait"]);
    // The start and the end of MPI do not count.
    let whole = found.whole();
    assert!(is_about(whole.recorded, 0.8) && is_about(whole.replayed, 0.92));
    assert!(is_about(found.share(whole.error()), 0.15));
    let misfits = found.misfits();
    assert!(misfits.len() == 1 && misfits[0].name == "MPI_Send");
    // The network costs 0.2 s, and 0.12 s too many were replayed.
    assert!(is_about(found.network, 0.2) && is_about(found.factor().unwrap(), 1.6));
}

#[test]
fn a_run_without_its_cores_says_nothing_of_the_machine() {
    let mut measured = rank(1_000_000_000, &[]);
    measured.interrupted = 40_000_000;
    let of = |measured: &Measured| {
        let found = Checked::of(&[vec![measured]], &run(1.0, &[]), &run(1.0, &[]), 1.0);
        (found.is_usable(), found.factor())
    };
    // Nothing is known of a network that costs nothing.
    assert_eq!(of(&measured), (true, Some(f64::INFINITY)));
    measured.interrupted = 60_000_000;
    assert_eq!(of(&measured), (false, None));
}

#[test]
fn ranks_are_placed_as_they_were_recorded() {
    let placed = |hosts: &[u64]| {
        let mut builder = Builder::new("test".into());
        for host in hosts {
            builder.rank(&[], trace::Gaps::default(), trace::Gaps::default());
            builder.measured(Measured {
                host: *host,
                ..Measured::default()
            });
        }
        placement(&builder.finish())
    };
    assert_eq!(placed(&[0, 0, 0, 0]), Some(4));
    assert_eq!(placed(&[0, 0, 1, 1, 2]), Some(2));
    assert_eq!(placed(&[0, 1, 2]), Some(1));
    assert_eq!(placed(&[0, 1, 0, 1]), None);
    assert_eq!(placed(&[0, 1, 1]), None);
    assert_eq!(placed(&[]), None);
}
