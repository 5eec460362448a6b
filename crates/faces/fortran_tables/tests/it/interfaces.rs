//! Tests of the interfaces of the module `mpi`.

use crate::{digest, source};
use fortran_tables::Tables;
use fortran_tables::kinds::{FortranParameter, FortranProcedure};
use std::collections::BTreeMap;

/// The number of procedures that Fortran and C have, and the digest of their sorted interfaces, by
/// the machine-readable edition of the MPI 5.0 standard: name, arguments with types and shapes, and
/// the type of the result, in upper case.
const INTERFACES: (usize, u64) = (430, 0x9cff_868a_f1bd_3ea4);

/// Procedures that are not in the standard's list: those of MPI 1, and second names of others.
const BESIDE: [&str; 14] = [
    "MPI_ADDRESS",
    "MPI_ALLOC_MEM_CPTR",
    "MPI_ERRHANDLER_CREATE",
    "MPI_ERRHANDLER_GET",
    "MPI_ERRHANDLER_SET",
    "MPI_TYPE_EXTENT",
    "MPI_TYPE_HINDEXED",
    "MPI_TYPE_HVECTOR",
    "MPI_TYPE_LB",
    "MPI_TYPE_STRUCT",
    "MPI_TYPE_UB",
    "MPI_WIN_ALLOCATE_CPTR",
    "MPI_WIN_ALLOCATE_SHARED_CPTR",
    "MPI_WIN_SHARED_QUERY_CPTR",
];

/// Procedures that only Fortran has.
const OF_FORTRAN: [&str; 3] = ["MPI_F_SYNC_REG", "MPI_STATUS_F082F", "MPI_STATUS_F2F08"];

#[test]
fn the_interfaces_are_the_standards() {
    let interfaces = interfaces();
    for name in BESIDE.iter().chain(&OF_FORTRAN) {
        assert!(interfaces.contains_key(*name), "no {name}");
    }
    let is_standard = |name: &str| {
        name.starts_with("MPI_") && !BESIDE.contains(&name) && !OF_FORTRAN.contains(&name)
    };
    let lines = interfaces.iter().filter(|(name, _)| is_standard(name));
    let mut lines: Vec<_> = lines.map(|(_, interface)| interface.clone()).collect();
    lines.sort();
    assert_eq!((lines.len(), digest(&lines)), INTERFACES);
}

#[test]
fn every_interface_has_its_twin_of_the_profiling_interface() {
    let interfaces = interfaces();
    for (name, interface) in interfaces
        .iter()
        .filter(|(name, _)| name.starts_with("MPI_"))
    {
        assert_eq!(
            interfaces.get(&format!("P{name}")),
            Some(&format!("P{interface}"))
        );
    }
}

/// The number of arguments that are ASYNCHRONOUS in `mpi_f08`, and the digest of their sorted lines
/// `PROCEDURE ARGUMENT`, by the same edition.
const ASYNCHRONOUS: (usize, u64) = (200, 0xd258_b0c3_9bdd_3c44);

/// Arguments that need the attribute as much as similar ones, and do not have it in that edition.
const FORGOTTEN: [&str; 3] = [
    "MPI_Neighbor_allgatherv_init displs",
    "MPI_Precv_init buf",
    "MPI_Psend_init buf",
];

#[test]
fn what_may_be_used_after_the_return_is_asynchronous() {
    let mut lines = Vec::new();
    let tables = Tables::standard();
    for procedure in tables.procedures().filter(|procedure| !procedure.is_old()) {
        for parameter in procedure.parameters.iter() {
            if parameter.is_asynchronous(procedure) {
                lines.push(format!("MPI_{} {}", procedure.name, parameter.name));
            }
        }
    }
    assert!(
        FORGOTTEN
            .iter()
            .all(|line| lines.iter().any(|other| other == line))
    );
    lines.retain(|line| !FORGOTTEN.contains(&line.as_str()));
    lines.sort();
    assert_eq!((lines.len(), digest(&lines)), ASYNCHRONOUS, "{lines:#?}");
}

/// The interfaces of the module, by name in upper case.
fn interfaces() -> BTreeMap<String, String> {
    let text = source("mpi.f90")
        .replace("&\n        ", "")
        .to_ascii_uppercase();
    let mut found = BTreeMap::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some(head) = line
            .strip_prefix("SUBROUTINE ")
            .or(line.strip_prefix("FUNCTION "))
        else {
            continue;
        };
        let (name, arguments) = head.strip_suffix(')').unwrap().split_once('(').unwrap();
        let mut declared = BTreeMap::new();
        for line in lines.by_ref().take_while(|line| !line.starts_with("END ")) {
            let Some((ty, entity)) = line.split_once(" :: ").filter(|_| !is_other(line)) else {
                continue;
            };
            let end = entity.find('(').unwrap_or(entity.len());
            declared.insert(&entity[..end], format!("{ty}{}", &entity[end..]));
        }
        let typed = |argument: &str| format!("{argument}:{}", declared[argument]);
        let arguments: Vec<_> = arguments
            .split(", ")
            .filter(|argument| !argument.is_empty())
            .map(typed)
            .collect();
        let result = declared
            .get(name)
            .map(|ty| format!(" {ty}"))
            .unwrap_or_default();
        let interface = format!("{name}({}){result}", arguments.join(", "));
        found.insert(name.to_string(), interface);
    }
    found
}

/// True for a line that declares nothing.
fn is_other(line: &str) -> bool {
    line.starts_with('!') || line.starts_with("IMPORT") || line.starts_with("USE")
}
