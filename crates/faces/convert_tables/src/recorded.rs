//! The entry points of the recorder of any MPI library.

use std::fmt::Write;

use tables::recorded::forms;

/// The entry points of the recorded procedures, with large counts or without, two for each
/// procedure. An entry point has the number of its procedure among all, doubled, and one more if
/// it has the profiled name.
pub(crate) fn entries(large: bool) -> String {
    let chapters = tables::all_procedures();
    let mut text = String::new();
    for (number, (procedure, is_large)) in forms(&chapters).enumerate() {
        if is_large != large {
            continue;
        }
        let count = procedure.parameters(large).count();
        let declared: Vec<String> = (0..count).map(|at| format!("a{at}: u64")).collect();
        let passed: Vec<String> = (0..count).map(|at| format!("a{at}")).collect();
        for (profiled, prefix) in ["MPI_", "PMPI_"].iter().enumerate() {
            writeln!(
                text,
                "#[unsafe(no_mangle)]\nunsafe extern \"C\" fn {}({}) -> c_int {{\n    \
                 // SAFETY: the program's promises about the arguments are passed on.\n    \
                 unsafe {{ call({}, [{}]) }}\n}}",
                procedure.c_name(prefix, large),
                declared.join(", "),
                2 * number + profiled,
                passed.join(", ")
            )
            .unwrap();
        }
    }
    text
}
