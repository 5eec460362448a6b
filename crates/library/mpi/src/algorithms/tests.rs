use super::*;
use crate::shape::Spread;
use knobs::KnobValue;

const CASE: Case = Case {
    bytes: 8,
    ranks: 5,
    commutative: false,
    even: false,
    shared: false,
    direct: false,
    published: 8,
    spread: Spread {
        hosts: 1,
        least: 5,
        most: 5,
        contiguous: true,
        sharing: 1,
    },
    network: Network::MEMORY,
    arity: None,
};

#[test]
fn every_collective_has_a_row_for_the_hardest_case() {
    for &collective in Collective::ALL {
        for bytes in [0, 1, 1 << 40] {
            AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO)
                .unwrap()
                .algorithm(
                    collective,
                    Case {
                        bytes,
                        ranks: 1,
                        ..CASE
                    },
                );
        }
    }
}

#[test]
fn short_vectors_are_shared_as_the_table_says() {
    let table = AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO).unwrap();
    for &collective in Collective::ALL {
        let is_shared = |row: &Row| row.algorithm == Algorithm::Shared;
        if !rows(collective).iter().any(is_shared) {
            continue;
        }
        for ranks in [2, 3, 20] {
            for published in [0, 8, ALWAYS_SHARED - 1] {
                assert!(table.takes_buffer(published, ranks));
                let case = Case {
                    shared: true,
                    published,
                    ..Case::usual(published, ranks)
                };
                assert_eq!(table.algorithm(collective, case), Algorithm::Shared);
            }
        }
    }
}

#[test]
fn a_wish_counts_where_it_can_be_granted() {
    let wish = AlgorithmChoices::parse("allreduce=ring,bcast@1K=chain").unwrap();
    let choice = AlgorithmTable::new(&wish, TreeArity::AUTO).unwrap();
    let commutative = Case {
        commutative: true,
        ..CASE
    };
    assert_eq!(
        choice.algorithm(Collective::Allreduce, commutative),
        Algorithm::Ring
    );
    assert_eq!(
        choice.algorithm(Collective::Allreduce, CASE),
        Algorithm::RecursiveDoubling
    );
    assert_eq!(
        choice.algorithm(Collective::Bcast, CASE),
        Algorithm::Binomial
    );
    assert_eq!(
        choice.algorithm(
            Collective::Bcast,
            Case {
                bytes: 1024,
                ..CASE
            }
        ),
        Algorithm::Chain
    );
}

#[test]
fn the_next_wish_counts_where_one_cannot_be_granted() {
    let wish = "allreduce=reduce-bcast,allreduce=ring,allreduce@1K/4=auto,allreduce@2K/4=ring";
    let wish = AlgorithmChoices::parse(wish).unwrap();
    let table = AlgorithmTable::new(&wish, TreeArity::AUTO).unwrap();
    let chosen = |bytes, ranks, commutative| {
        let case = Case {
            commutative,
            ..Case::usual(bytes, ranks)
        };
        table.algorithm(Collective::Allreduce, case)
    };
    assert_eq!(chosen(8, 5, true), Algorithm::Ring);
    assert_eq!(chosen(8, 5, false), Algorithm::ReduceBcast);
    assert_eq!(chosen(4096, 3, true), Algorithm::Ring);
    let own = AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO).unwrap();
    let usual = own.algorithm(Collective::Allreduce, Case::usual(1024, 5));
    assert_eq!(chosen(1024, 5, true), usual);
    assert_eq!(chosen(4096, 5, true), Algorithm::Ring);
}

#[test]
fn a_wish_for_nothing_that_exists_is_refused_with_what_does() {
    let refused = |text| {
        let wish = AlgorithmChoices::parse(text).unwrap();
        AlgorithmTable::new(&wish, TreeArity::AUTO)
            .err()
            .unwrap()
            .to_string()
    };
    assert!(refused("allreduce=quick").contains("rabenseifner"));
    assert!(refused("allreduction=ring").contains("reduce_scatter"));
}

/// The collectives that combine operands.
fn reductions() -> impl Iterator<Item = Collective> {
    let all = Collective::ALL.iter().copied();
    all.filter(|&of| Algorithm::Shared.order(of).is_some())
}

#[test]
fn what_a_host_permits_changes_no_order_of_combination() {
    let table = AlgorithmTable::new(&AlgorithmChoices::default(), TreeArity::AUTO).unwrap();
    for of in reductions() {
        for ranks in (2..=9).chain([16, 64]) {
            for bytes in (0..=24).flat_map(|power| [(1 << power) - 1, 1 << power]) {
                for (published, commutative) in
                    [(bytes, true), (usize::MAX, true), (usize::MAX, false)]
                {
                    let order = |shared, direct| {
                        let case = Case {
                            shared,
                            direct,
                            published,
                            commutative,
                            ..Case::usual(bytes, ranks)
                        };
                        table.algorithm(of, case).order(of)
                    };
                    let place = format!("{of:?} of {bytes} bytes on {ranks} ranks");
                    assert_eq!(order(true, true), order(true, false), "{place}");
                    // Nor does it matter for long vectors whether members have a buffer.
                    if ranks > 2 && bytes >= 8 << 10 && of != Collective::Scan {
                        assert_eq!(order(false, false), Some(Order::Descending), "{place}");
                        assert_eq!(order(true, false), Some(Order::Descending), "{place}");
                    }
                }
            }
        }
    }
}

#[test]
fn measured_costs_choose_the_path_of_no_reduction() {
    for of in reductions() {
        for published in [8, 8 << 10, 1 << 20, 1 << 30] {
            assert_eq!(contest::Subject::of(of, published), None);
        }
    }
}
