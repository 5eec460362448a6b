//! The constants of both ABIs, and the pairs of values that conversions search.

use crate::generate::constants::{Constant, Group};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of the module `constants`: every constant as a number, and for each group of integers
/// and each class of handles the values in the program's ABI and in the standard's.
pub(crate) fn generate(standard: &[Group], program: &[Group]) -> String {
    let mut text = String::new();
    for (name, groups) in [("standard", standard), ("program", program)] {
        let what = match name {
            "program" => "the program's ABI, where they differ",
            _ => "the standard ABI",
        };
        writeln!(
            text,
            "/// The constants of {what}.\n#[allow(dead_code)]\npub(crate) mod {name} {{"
        )
        .unwrap();
        for constant in numbers(groups) {
            writeln!(
                text,
                "    pub(crate) const {}: i64 = {};",
                constant.name, constant.value
            )
            .unwrap();
        }
        text.push_str("}\n");
    }

    let values: BTreeMap<_, _> = numbers(standard)
        .map(|constant| (constant.name.as_str(), constant.value.as_str()))
        .collect();
    let mut pairs: BTreeMap<String, String> = BTreeMap::new();
    for group in program {
        for constant in &group.constants {
            let name = pairs_name(group, constant);
            let standard = values
                .get(constant.name.as_str())
                .unwrap_or_else(|| panic!("{} is no constant of the standard ABI", constant.name));
            let text = pairs.entry(name).or_default();
            writeln!(
                text,
                "    ({}, {standard}), // {}",
                constant.value, constant.name
            )
            .unwrap();
        }
    }
    for (name, rows) in pairs {
        writeln!(
            text,
            "/// Pairs of the program's value and the standard's.\n#[allow(dead_code)]\n\
             pub(crate) const {name}: &[(i64, i64)] = &[\n{rows}];"
        )
        .unwrap();
    }
    text
}

/// Constants whose values are numbers that C sees.
fn numbers(groups: &[Group]) -> impl Iterator<Item = &Constant> {
    let constants = groups.iter().flat_map(|group| &group.constants);
    constants.filter(|constant| constant.in_c())
}

/// Handles of one class stand in several groups; integers of one meaning in one group.
fn pairs_name(group: &Group, constant: &Constant) -> String {
    let ty = &constant.c_type;
    let is_handle = ty.starts_with("MPI_") && !ty.ends_with('*') && !ty.starts_with("MPI_T_");
    if is_handle && ty != "MPI_Offset" {
        return format!(
            "{}_HANDLES",
            ty.trim_start_matches("MPI_").to_ascii_uppercase()
        );
    }
    let words = group.title.replace([',', ':'], "");
    words.replace(' ', "_").to_ascii_uppercase()
}
