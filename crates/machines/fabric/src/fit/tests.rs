use std::convert::Infallible;

use proptest::prelude::*;

use super::*;
use crate::catalogue::Catalogue;
use crate::quantity::{Quantity, Raw};
use crate::units::{GbPerSec, Nanos};

fn free(name: &str) -> Vec<Movement> {
    let sheet = Catalogue::builtin().sheet("system", name).unwrap();
    movements(&sheet, GbPerSec::from_bits_per_sec(27_000_000_000))
}

fn named(all: &[Movement], path: &str) -> usize {
    let found = all.iter().position(|one| {
        let mut paths = one.values[0].paths.iter();
        paths.any(|own| own == path)
    });
    found.unwrap_or_else(|| panic!("no {path}"))
}

#[test]
fn only_values_that_no_document_states_are_free() {
    let all = free("r620-qdr");
    let values = all.iter().flat_map(|one| &one.values);
    let paths: Vec<&str> = values
        .flat_map(|one| &one.paths)
        .map(String::as_str)
        .collect();
    assert!(
        paths.contains(&"host.post") && paths.contains(&"hca.read_engine"),
        "{paths:?}"
    );
    // The rate of ConnectX-3 is published, the kernel is not used, and the MTU is a size.
    for other in ["hca.message_rate", "kernel.wake", "hca.mtu", "host.lanes"] {
        assert!(!paths.contains(&other), "{other}");
    }
    // Values that share one line of the catalogue are one value.
    let upkeep = named(&all, "host.bus.upkeep");
    assert_eq!(
        all[upkeep].values[0].paths,
        ["host.bus.upkeep", "hca.bus.upkeep", "hca.timed_bus.upkeep"]
    );
}

#[test]
fn values_stay_inside_their_bounds() {
    let all = free("qdr");
    let post = &all[named(&all, "host.post")].values[0];
    assert_eq!(post.at(0.0), Raw::Text("80 ns".into()));
    assert_eq!(
        post.bounds(),
        [Raw::Text("26.7 ns".into()), Raw::Text("240 ns".into())]
    );
    let upkeep = &all[named(&all, "hca.bus.upkeep")].values[0];
    assert_eq!(upkeep.at(0.0), Raw::Text("980/1000".into()));
    assert_eq!(
        upkeep.bounds(),
        [Raw::Text("850/1000".into()), Raw::Text("1000/1000".into())]
    );
}

/// A model of two figures: the sum of `post` and `poll`, and the sum of these two and `dma_read`.
fn predict(all: &[Movement], trials: &[Coordinates]) -> Vec<Vec<f64>> {
    let of = |trial: &Coordinates, path: &str| {
        let mut moved = trial.iter().flat_map(|(place, at)| all[*place].at(*at));
        let own = moved.find(|(own, _)| *own == path).map(|(_, raw)| raw);
        let raw = own.unwrap_or_else(|| all[named(all, path)].values[0].at(0.0));
        Nanos::read(&raw).unwrap().as_nanos()
    };
    let each = trials.iter().map(|trial| {
        let short = of(trial, "host.post") + of(trial, "host.poll");
        vec![short, short + of(trial, "host.dma_read")]
    });
    each.collect()
}

fn fitted(all: &[Movement], values: [f64; 2]) -> Fitted {
    let figures = values.map(|value| Observation {
        value,
        deviation: 0.01,
    });
    let run = |trials: &[Coordinates]| Ok::<_, Infallible>(predict(all, trials));
    let Ok(found) = fit(all, &figures, run);
    found
}

#[test]
fn figures_move_the_values_that_explain_them() {
    let all = free("qdr");
    // With the catalogue's values the figures are 160 and 860 ns.
    let found = fitted(&all, [160.0, 1200.0]);
    assert_eq!(found.before, [160.0, 860.0]);
    for (after, wanted) in found.after.iter().zip([160.0, 1200.0]) {
        assert!((after / wanted - 1.0).abs() < 0.02, "{found:?}");
    }
    let moved: Vec<usize> = found.moved.iter().map(|(place, _)| *place).collect();
    assert!(moved.contains(&named(&all, "host.dma_read")), "{found:?}");
    assert!(moved.len() <= 3);
    // Without the longer figure, nothing indicates that the catalogue is wrong.
    assert!((found.left_out[1] / 860.0 - 1.0).abs() < 0.1, "{found:?}");
}

#[test]
fn a_slower_host_moves_all_its_times() {
    let all = free("qdr");
    // 1.3 times the catalogue's 160 and 860 ns.
    let found = fitted(&all, [208.0, 1118.0]);
    let [(place, _)] = found.moved[..] else {
        panic!("{found:?}");
    };
    assert_eq!(all[place].values.len(), 5);
    for (after, wanted) in found.after.iter().zip([208.0, 1118.0]) {
        assert!((after / wanted - 1.0).abs() < 0.02, "{found:?}");
    }
}

#[test]
fn figures_that_the_catalogue_explains_move_nothing() {
    let found = fitted(&free("qdr"), [160.5, 861.0]);
    assert_eq!(found.moved, []);
    assert_eq!(found.before, found.after);
}

#[test]
fn a_figure_that_nothing_explains_leaves_the_others() {
    // The figure is ten times the catalogue's, which no bound allows: the other stays within a
    // tenth.
    let found = fitted(&free("qdr"), [160.0, 8600.0]);
    assert!((found.after[0] / 160.0 - 1.0).abs() < 0.1, "{found:?}");
}

proptest! {
    #[test]
    fn equations_are_solved(rows in prop::collection::vec(prop::collection::vec(-3.0_f64..3.0, 4), 4), wanted in prop::collection::vec(-5.0_f64..5.0, 4)) {
        // A product of a matrix with itself, and a diagonal such as a prior adds.
        let entry = |one: usize, other: usize| (0..4).map(|k| rows[k][one] * rows[k][other]).sum::<f64>() + f64::from(u8::from(one == other));
        let matrix: Vec<Vec<f64>> = (0..4).map(|one| (0..4).map(|other| entry(one, other)).collect()).collect();
        let right = matrix.iter().map(|row| row.iter().zip(&wanted).map(|(a, b)| a * b).sum()).collect();
        for (found, wanted) in solve(matrix.clone(), right).iter().zip(&wanted) {
            prop_assert!((found - wanted).abs() < 1e-6);
        }
    }
}
