//! The explanation of a rank's choices, which `fishplate run --explain` shows.

use crate::common::{run_remote, run_shared};
use mpi::algorithms::Collective;
use testdevice::strict::Setup;

/// The part of an explanation for messages of `size` bytes.
fn row(text: &str, size: usize) -> &str {
    let start = format!(r#"{{"size":{size},"#);
    let from = text.find(&start);
    let row = &text[from.unwrap_or_else(|| panic!("no size {size}: {text}"))..];
    let end = row[1..].find(r#"{"size":"#);
    end.map_or(row, |end| &row[..end + 1])
}

#[test]
fn protocols_rails_and_the_choices_not_taken_are_explained() {
    let settings = [
        ("FISHPLATE_EAGER_LIMIT", "8K"),
        ("FISHPLATE_RENDEZVOUS", "read"),
    ];
    run_remote(3, &settings, &Setup::default(), |rank| {
        let text = rank.explain_choices();
        let others: Vec<String> = (0..3)
            .filter(|peer| *peer != rank.rank())
            .map(|peer| peer.to_string())
            .collect();
        // Peers that differ in nothing are one kind.
        let begin = format!(
            r#"{{"rank":{},"peers":[{{"ranks":[{}],"transport":"RDMA","rails":1,"devices":["instant{} rail 0"],"sizes":["#,
            rank.rank(),
            others.join(","),
            rank.rank()
        );
        assert!(text.starts_with(&begin), "{text}");
        let eager = row(&text, 8192);
        assert!(eager.contains(r#""protocol":"eager""#), "{eager}");
        assert!(
            eager.contains(r#"{"choice":"read rendezvous","predicted_ns":"#),
            "{eager}"
        );
        // The first size of another protocol has a row.
        let long = row(&text, 8193);
        assert!(long.contains(r#""protocol":"read rendezvous""#), "{long}");
        for other in ["eager", "write rendezvous", "rendezvous by packets"] {
            let part = format!(r#"{{"choice":"{other}","predicted_ns":"#);
            assert!(long.contains(&part), "{long}");
        }
        let rails = r#""rails":{"choice":"rail 0","shares":[{"rail":0,"bytes":8193}],"#;
        assert!(long.contains(rails), "{long}");
        // Devices: algorithms of collectives are compared by their times.
        let collectives = &text[text.find(r#""collectives":["#).unwrap()..];
        for collective in Collective::ALL {
            let start = format!(r#"{{"collective":"{}","sizes":[{{"#, collective.name());
            assert!(collectives.contains(&start), "{collectives}");
        }
        assert!(!collectives.contains("null"), "{collectives}");
        // A tree is named with its number of branches.
        assert!(collectives.contains(r#""k-ary (k = 2)""#), "{collectives}");
    });
}

#[test]
fn peers_in_shared_memory_have_no_rails() {
    run_shared(2, &[], |rank| {
        let text = rank.explain_choices();
        assert!(text.contains(r#""transport":"shared memory""#), "{text}");
        assert!(row(&text, 64).contains(r#""rails":null"#), "{text}");
        // Measured sizes decide on collectives.
        let bcast = r#"{"collective":"bcast","sizes":[{"size":8,"algorithm":"shared","predicted_ns":null,"not_taken":[]}"#;
        assert!(text.contains(bcast), "{text}");
    });
}

#[test]
fn alternatives_have_the_settings_that_force_them() {
    // Fixed costs: the ability of receivers to learn costs depends on the system.
    run_shared(2, &[("FISHPLATE_COSTS", "fixed")], |rank| {
        let text = rank.explain_choices();
        let alternatives = &text[text.find(r#""alternatives":["#).unwrap()..];
        let messages = r#"{"procedures":["MPI_Send"],"kind":"protocol","is_learned":false,"taken":[[0,"eager"],"#;
        let chain = r#"{"choice":"chain","settings":{"FISHPLATE_COLLECTIVES":"bcast=chain"}}"#;
        for part in [messages, chain, r#""FISHPLATE_PROTOCOL":"packets""#] {
            assert!(alternatives.contains(part), "{alternatives}");
        }
    });
    let settings = [("FISHPLATE_COLLECTIVES", "bcast=chain")];
    run_shared(2, &settings, |rank| {
        let bcast = r#"{"procedures":["MPI_Bcast"],"kind":"algorithm","is_learned":false,"taken":[[0,"chain"]]"#;
        assert!(rank.explain_choices().contains(bcast));
    });
}

#[test]
fn a_rank_alone_has_nothing_to_choose() {
    run_shared(1, &[], |rank| {
        assert_eq!(rank.explain_choices(), r#"{"rank":0,"peers":[]}"#);
    });
}

#[test]
fn the_branches_of_trees_are_those_of_the_setting() {
    let settings = [("FISHPLATE_TREE_ARITY", "5")];
    run_remote(3, &settings, &Setup::default(), |rank| {
        let text = rank.explain_choices();
        assert!(text.contains("k-ary (k = 5)"), "{text}");
        assert!(!text.contains("k-ary (k = 2)"), "{text}");
    });
}

#[test]
fn tables_of_other_libraries_name_algorithms_that_exist() {
    use fabric::collectives::ChoiceTable;
    use knobs::{AlgorithmChoices, KnobValue, TreeArity};
    use mpi::algorithms::AlgorithmTable;
    for table in ChoiceTable::all() {
        for ranks in [2, 64, 1000, 20_000] {
            let choices = AlgorithmChoices::parse(&table.setting(ranks)).unwrap();
            if let Err(why) = AlgorithmTable::new(&choices, TreeArity::AUTO) {
                panic!("{}: {why}", table.name);
            }
            let of = table.collectives();
            assert!(choices.0.iter().all(|one| of.contains(&&*one.collective)));
        }
    }
}

#[test]
fn a_table_of_another_library_chooses_for_the_ranks_of_a_call() {
    use fabric::collectives::ChoiceTable;
    use knobs::{AlgorithmChoices, KnobValue, TreeArity};
    use mpi::algorithms::{Algorithm, AlgorithmTable, Case};
    let tables = ChoiceTable::all().iter();
    let table = tables
        .clone()
        .find(|table| table.name == "openmpi-1.3")
        .unwrap();
    let choices = AlgorithmChoices::parse(&table.setting(32)).unwrap();
    let table = AlgorithmTable::new(&choices, TreeArity::AUTO).unwrap();
    let chosen = |of, bytes, ranks| table.algorithm(of, Case::usual(bytes, ranks));
    assert_eq!(
        chosen(Collective::Allreduce, 9_999, 32),
        Algorithm::RecursiveDoubling
    );
    assert_eq!(chosen(Collective::Allreduce, 10_000, 32), Algorithm::Ring);
    // Recursive doubling of 8 ranks, Bruck's algorithm of the next number.
    assert_eq!(
        chosen(Collective::Allgather, 8_000, 8),
        Algorithm::RecursiveDoubling
    );
    assert_eq!(chosen(Collective::Allgather, 8_001, 9), Algorithm::Bruck);
    let uncommutative = Case {
        commutative: false,
        ..Case::usual(1 << 20, 32)
    };
    let of = table.algorithm(Collective::Allreduce, uncommutative);
    assert_eq!(of, Algorithm::ReduceBcast);
}
