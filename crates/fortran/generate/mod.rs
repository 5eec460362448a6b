//! The generators of the bindings, from the tables of `abi`. The build script and the tests share
//! this folder; the library contains none of it.
//!
//! Invariant: no list of procedures is written by hand. A kind of parameter has one row that says
//! what it is in each of the two Fortran modules (`kinds`), and one conversion (`conversion`).

#[allow(dead_code)] // the parsers alone are needed
#[path = "../../abi/generate/mod.rs"]
pub(crate) mod abi;

mod choice;
mod commons;
pub(crate) mod constants;
mod conversion;
mod entry;
mod f08;
mod interfaces;
pub(crate) mod kinds;
pub(crate) mod predefined;
mod sizeof;
mod standard;
mod types;

use abi::constants::Group;
use abi::table::{Chapter, Procedure};

pub(crate) struct Tables {
    pub(crate) chapters: Vec<Chapter>,
    pub(crate) constants: Vec<Group>,
}

impl Tables {
    /// Parses the tables, whose texts `read` gives.
    ///
    /// # Panics
    /// A table has an error.
    pub(crate) fn read(read: impl Fn(&str) -> String) -> Tables {
        let parse =
            |name| abi::table::parse(&read(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut chapters = parse("procedures.txt");
        chapters.extend(parse("removed.txt"));
        let constants = abi::constants::parse(&read("constants.txt"));
        Tables {
            chapters,
            constants: constants.unwrap_or_else(|error| panic!("{error}")),
        }
    }

    /// The procedures that Fortran has: all but the tools interface, and the integers of handles,
    /// which are handles in Fortran.
    pub(crate) fn procedures(&self) -> impl Iterator<Item = &Procedure> {
        let all = self.chapters.iter().flat_map(|chapter| &chapter.procedures);
        all.filter(|procedure| {
            let name = &procedure.name;
            let is_large_of_removed = procedure.chapter == 0 && name.ends_with("_c");
            let is_integer = name.ends_with("_toint") || name.ends_with("_fromint");
            !procedure.is_tools() && !is_integer && !is_large_of_removed
        })
    }
}

/// Modules in Rust: names of files, and texts.
pub(crate) fn modules(tables: &Tables) -> Vec<(&'static str, String)> {
    vec![
        ("standard.rs", standard::generate(&tables.chapters)),
        ("entry.rs", entry::generate(tables)),
        ("commons.rs", commons::generate()),
        ("predefined.rs", predefined::generate()),
        ("constants.rs", constants::rust(&tables.constants)),
        ("pool.rs", old_abi::pool()),
    ]
}

/// Sources in Fortran, and the list `sources` of those that a compiler gets, in this order. Behind a
/// name is the word of the program `probe` for whose compilers alone it is.
pub(crate) fn sources(tables: &Tables) -> Vec<(&'static str, String)> {
    let choice = |form| f08::choice(tables, form);
    let compiled = vec![
        ("mpi_constants.f90", "", constants::module(tables)),
        ("mpi_types.f90", "", types::generate()),
        ("mpi_sizeof.f90", "", sizeof::generate()),
        ("mpi.f90", "", interfaces::module(tables)),
        ("mpi_f08_types.f90", "", f08::types(tables)),
        ("mpi_f08_procedures.f90", "", f08::procedures(tables)),
        (
            "mpi_f08_descriptors.f90",
            "descriptors",
            choice(f08::Choice::Descriptors),
        ),
        ("mpi_f08_plain.f90", "plain", choice(f08::Choice::Plain)),
        ("mpi_f08.f90", "", f08::module()),
    ];
    let list = compiled
        .iter()
        .map(|(name, word, _)| format!("{name} {word}").trim_end().to_string() + "\n");
    let mut files = vec![
        ("sources", list.collect()),
        ("mpif.h", constants::header(tables)),
        ("probe.f90", include_str!("probe.f90").into()),
        ("probe.c", include_str!("probe.c").into()),
    ];
    files.extend(compiled.into_iter().map(|(name, _, text)| (name, text)));
    files
}
