//! Compares the tables with facts of the standard, and checked-in files with the tables.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};
use tables::table::State;
use tables::{all_procedures, constants, procedures, removed};

/// For every chapter: the number of its C procedures, and the FNV-1a digest of their prototypes,
/// sorted, one per line, as in the machine-readable edition of the MPI 5.0 standard.
const CHAPTERS: &[(u32, usize, u64)] = &[
    (3, 86, 0x379d931303a3706a),
    (4, 6, 0x0c5b5299c39def54),
    (5, 53, 0x831e8f7c2bf941ed),
    (6, 105, 0xd50f983f5a43366a),
    (7, 56, 0x534b72dd2a969f08),
    (8, 50, 0x7e4bfdb8d41b9229),
    (9, 33, 0x575e4dcc57759a24),
    (10, 9, 0xe726c76404cbe6a2),
    (11, 26, 0xc0bb1f514dbf5683),
    (12, 48, 0xf7546d4afaf93ff4),
    (13, 8, 0xd665db6787cbec62),
    (14, 86, 0x824166128a0392c9),
    (15, 52, 0x85d58cd3547d32b3),
    (16, 7, 0xea2a1bbf9c20893c),
    (19, 4, 0xfb7eb155fa6c7e27),
    (20, 28, 0xf7021d97bfa16635),
];

/// The number of constants whose value is an integer (all except the five of Fortran that its
/// compiler decides), and the digest of their lines `NAME=VALUE`.
const CONSTANTS: (usize, u64) = (368, 0xe9c16db3cdbd6bc4);

#[test]
fn the_procedures_are_the_standards() {
    let chapters = procedures();
    let mut found = Vec::new();
    for chapter in &chapters {
        let mut prototypes: Vec<String> = Vec::new();
        for procedure in &chapter.procedures {
            let forms = procedure.forms().iter();
            prototypes
                .extend(forms.map(|&large| tables::header::prototype(procedure, "MPI_", large)));
        }
        prototypes.sort();
        found.push((chapter.number, prototypes.len(), digest(&prototypes)));
    }
    assert_eq!(found, CHAPTERS);

    let all = || chapters.iter().flat_map(|chapter| &chapter.procedures);
    let large = all().filter(|procedure| procedure.large).count();
    assert_eq!((all().count(), large), (498, 159));
}

/// A name in addition to the ABI works as soon as the corresponding procedure of the ABI works.
#[test]
fn names_beside_the_abi_are_none_of_the_abis() {
    let of_abi: BTreeMap<_, _> = procedures()
        .into_iter()
        .flat_map(|chapter| chapter.procedures)
        .map(|procedure| (procedure.name.clone(), procedure.works()))
        .collect();
    for procedure in removed().into_iter().flat_map(|chapter| chapter.procedures) {
        let name = &procedure.name;
        assert!(!of_abi.contains_key(name), "{name} is the ABI's");
        let worker = match &procedure.state {
            State::WorksAs(other) => Some(other.as_str()),
            _ => name.strip_suffix("_c"),
        };
        if let Some(worker) = worker {
            assert_eq!(of_abi.get(worker), Some(&procedure.works()), "{name}");
        }
    }
}

#[test]
fn the_constants_are_the_standards() {
    let groups = constants();
    let all = || groups.iter().flat_map(|group| &group.constants);
    assert_eq!(all().count(), 373);
    let mut values: Vec<_> = all()
        .filter_map(|constant| {
            let value = match constant.value.strip_prefix("0x") {
                Some(digits) => i64::from_str_radix(digits, 16).ok(),
                None => constant.value.parse().ok(),
            };
            Some(format!("{}={}", constant.name, value?))
        })
        .collect();
    values.sort();
    assert_eq!((values.len(), digest(&values)), CONSTANTS);
}

#[test]
fn the_header_is_what_the_tables_say() {
    check(
        "include/mpi.h",
        &tables::header::generate(&procedures(), &removed(), &constants()),
    );
}

#[test]
fn the_coverage_page_is_what_the_table_says() {
    check(
        "docs/figures/coverage.md",
        &tables::coverage::generate(&procedures()),
    );
}

#[test]
fn the_names_of_what_works_are_what_the_tables_say() {
    let text = tables::supported::generate(&all_procedures());
    assert!(text.contains("(Send_c)") && text.contains("(Attr_get)"));
    check("crates/faces/abi/supported.c", &text);
}

#[test]
fn a_wrong_line_is_named_with_its_reason() {
    for (line, reason) in [
        (
            "Send - works buf:un",
            "procedures.txt:2: unknown kind `un`: Send - works buf:un",
        ),
        (
            "Send x works",
            "procedures.txt:2: unknown mark `x`: Send x works",
        ),
        ("Send c", "procedures.txt:2: no state: Send c"),
        (
            "Waitall - works >status[count]",
            "procedures.txt:2: `count` is no value before `status`: Waitall - works >status[count]",
        ),
    ] {
        let error = tables::table::parse(&format!("chapter 3 P\n{line}")).err();
        assert_eq!(error.as_deref(), Some(reason));
    }
}

/// Compares a generated file with the expected text, or writes it if REGENERATE is set.
fn check(path: &str, wanted: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../..")
        .join(path);
    if env::var_os("REGENERATE").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, wanted).unwrap();
        return;
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    let differ = found
        .lines()
        .zip(wanted.lines())
        .position(|(found, wanted)| found != wanted);
    assert!(
        found == wanted,
        "{} is stale from line {}: run `REGENERATE=1 cargo test -p abi generated`",
        path.display(),
        differ.unwrap_or(found.lines().count().min(wanted.lines().count())) + 1
    );
}

fn digest(lines: &[String]) -> u64 {
    let mut hash = 0xcbf29ce484222325u64;
    for byte in lines.join("\n").bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x100000001b3);
    }
    hash
}
