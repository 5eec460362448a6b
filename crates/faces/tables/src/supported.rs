//! The generator of `supported.c`: a library of symbols for linkers, without the procedures that do
//! not work yet.

use crate::table::Chapter;
use std::fmt::Write;

/// The source text of `supported.c`.
pub fn generate(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "/* The names of all procedures that work, for the linker alone: `mpicc -only-supported` links with the library made of this\n   \
         file, so that the probes of a build system find no others. Programs load libmpi_abi.so.1 all the same.\n\n   \
         This file is generated from procedures.txt and removed.txt (`REGENERATE=1 cargo test -p abi generated` rewrites it). */\n\
         #define NAME(name) void name(void); void name(void) {}\n\
         #define PROCEDURE(name) NAME(MPI_##name) NAME(PMPI_##name)\n\n",
    );
    let procedures = chapters.iter().flat_map(|chapter| &chapter.procedures);
    for procedure in procedures.filter(|procedure| procedure.works()) {
        for &large in procedure.forms() {
            writeln!(text, "PROCEDURE({})", procedure.c_name("", large)).unwrap();
        }
    }
    text
}
