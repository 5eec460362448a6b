//! Tests of the interfaces of the module `mpi_f08`.

use crate::{digest, source};
use std::collections::BTreeMap;

/// The number of procedures, and the digest of their sorted lines `NAME(ARGUMENT:TYPE:INTENT:SHAPE
/// ...)` without IERROR, by the machine-readable edition of the MPI 5.0 standard. The type is that
/// of a handle or a status. Choice buffers and written statuses have no intent; neither has the
/// buffer of MPI_Precv_init, which that edition treats as one that is read.
const INTERFACES: (usize, u64) = (425, 0x817c_caca_e1f4_0314);

/// The number of procedures with a form for large counts, except the two below.
const LARGE: usize = 157;

/// A procedure that has more arguments in that edition than in the standard's text, and two whose
/// interfaces contain a constant.
const OTHERS: [&str; 3] = ["MPI_Pcontrol", "MPI_Status_f082f", "MPI_Status_f2f08"];

#[test]
fn the_interfaces_are_the_standards() {
    for choice in ["mpi_f08_descriptors.f90", "mpi_f08_plain.f90"] {
        let (names, interfaces) = interfaces(choice);
        let mut lines: Vec<_> = names
            .iter()
            .filter(|name| name.starts_with("MPI_") && !name.ends_with("_c"))
            .filter(|name| !OTHERS.contains(&name.as_str()))
            .map(|name| interfaces[name].clone())
            .collect();
        lines.sort();
        assert_eq!((lines.len(), digest(&lines)), INTERFACES, "{lines:#?}");
    }
}

/// A form with large counts is the other form with another type for some integers.
#[test]
fn forms_with_large_counts_have_the_arguments_of_the_others() {
    let (_, interfaces) = interfaces("mpi_f08_descriptors.f90");
    let mut number = 0;
    for (name, interface) in &interfaces {
        // Two procedures have arguments that only the large form has.
        let is_wider = name.contains("Type_get_contents") || name.contains("Type_get_envelope");
        if let Some(small) = name.strip_suffix("_c").filter(|_| !is_wider) {
            assert_eq!(&interface.replace("_c(", "("), &interfaces[small]);
            number += 1;
        }
    }
    // Each form occurs with `MPI_` and with `PMPI_`.
    assert_eq!(number, 2 * LARGE);
}

#[test]
fn every_interface_has_its_twin_of_the_profiling_interface() {
    let (_, interfaces) = interfaces("mpi_f08_descriptors.f90");
    for (name, interface) in &interfaces {
        if name.starts_with("MPI_") {
            assert_eq!(interfaces[&format!("P{name}")], format!("P{interface}"));
        }
    }
}

/// The generic names, and the interfaces by the specific names without their suffixes.
fn interfaces(choice: &str) -> (Vec<String>, BTreeMap<String, String>) {
    let text = [source("mpi_f08_procedures.f90"), source(choice)].concat();
    let text = text.replace("&\n        ", "");
    let (mut generic, mut found) = (Vec::new(), BTreeMap::new());
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        generic.extend(line.strip_prefix("interface ").map(str::to_string));
        let Some(head) = line
            .strip_prefix("subroutine ")
            .or(line.strip_prefix("function "))
        else {
            continue;
        };
        let (name, arguments) = head.split_once('(').unwrap();
        let name = name.trim_end_matches("ts").trim_end_matches("_f08");
        let arguments = arguments.split_once(')').unwrap().0;
        let mut declared = BTreeMap::new();
        for line in lines.by_ref().take_while(|line| !line.starts_with("end ")) {
            if let Some((attributes, entity)) =
                line.split_once(" :: ").filter(|_| !line.starts_with('!'))
            {
                let (argument, shape) = entity.split_at(entity.find('(').unwrap_or(entity.len()));
                declared.insert(argument, description(attributes, shape));
            }
        }
        let arguments: Vec<_> = arguments
            .split(", ")
            .filter(|argument| !["", "ierror"].contains(argument))
            .map(|argument| format!("{argument}:{}", declared[argument]))
            .collect();
        found.insert(name.to_string(), format!("{name}({})", arguments.join(" ")));
    }
    (generic, found)
}

fn description(attributes: &str, shape: &str) -> String {
    let between = |start: &str| {
        let rest = attributes.split_once(start)?.1;
        Some(rest.split_once(')')?.0)
    };
    let ty = between("TYPE(MPI_").map_or(String::new(), |ty| format!("MPI_{ty}"));
    // A choice buffer has the rank of the actual argument.
    let shape = match attributes.starts_with("TYPE(*)") {
        true => String::new(),
        false => shape.replace(' ', ""),
    };
    format!("{ty}:{}:{shape}", between("INTENT(").unwrap_or_default())
}
