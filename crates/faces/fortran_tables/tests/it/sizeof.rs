//! Tests of MPI_SIZEOF in the modules and in the header.

use crate::source;
use std::collections::BTreeMap;

/// The number of types that a program may pass, times that of the ranks in the header: 0 to 7.
const FORMS: usize = 13 * 8;

#[test]
fn every_interface_of_the_header_leads_to_a_procedure_with_the_same_arguments() {
    let (header, procedures) = (subroutines("mpif.h"), subroutines("mpif_sizeof.f90"));
    assert_eq!(header.len(), 2 * FORMS);
    assert_eq!(header, procedures);
}

#[test]
fn the_profiling_name_takes_what_the_other_takes() {
    let header = subroutines("mpif.h");
    for (name, declarations) in header.iter().filter(|(name, _)| name.starts_with("MPI_")) {
        assert_eq!(header.get(&format!("P{name}")), Some(declarations));
    }
}

/// The modules have ranks up to 15, for which a compiler needs Fortran 2008.
#[test]
fn the_header_takes_the_types_that_the_modules_take() {
    let module = source("mpi_sizeof.f90").to_ascii_uppercase();
    for name in subroutines("mpif.h").keys() {
        let specific = name.trim_start_matches('P').trim_start_matches("MPI_");
        assert!(module.contains(&format!("MODULE PROCEDURE {specific}\n")));
    }
}

/// The declarations of the arguments of each procedure `..SIZEOF_..`, by its name.
fn subroutines(source_name: &str) -> BTreeMap<String, Vec<String>> {
    let text = source(source_name);
    let mut found = BTreeMap::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        let Some((name, arguments)) = line
            .strip_prefix("SUBROUTINE ")
            .and_then(|head| head.split_once('('))
        else {
            continue;
        };
        assert_eq!(arguments, "X,SIZE,IERROR)");
        let body = lines.by_ref().take_while(|line| *line != "END SUBROUTINE");
        let declarations: Vec<_> = body
            .filter(|line| line.contains("::"))
            .map(str::to_string)
            .collect();
        assert_eq!(declarations.len(), 3, "{name}");
        found.insert(name.to_string(), declarations);
    }
    found
}
