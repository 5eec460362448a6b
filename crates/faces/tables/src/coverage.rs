//! The generator of `docs/figures/coverage.md`, the page of procedures that work.

use crate::table::{Chapter, Procedure, State};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The text of `docs/figures/coverage.md`.
pub fn generate(chapters: &[Chapter]) -> String {
    let mut text = String::from(
        "# What works\n\n\
         Every procedure of the MPI 5.0 ABI is exported, and beside them those that programs of other\n\
         libraries load ([compiling.md](../user/compiling.md)). Those that do not work yet raise\n\
         `MPI_ERR_UNSUPPORTED_OPERATION` through the error handler of their communicator, window, file or\n\
         session. Where the handler returns, the launcher names the procedure at its first call and once more after\n\
         the job, and `MPI_Error_string` names it too. Large-count forms (`_c`) are counted: they share their code with the plain forms.\n\
         [foreign.md](foreign.md) lists the results of other projects' test suites.\n\n\
         This page is generated from `crates/faces/tables/procedures.txt` (`REGENERATE=1 cargo test -p abi generated` rewrites it).\n\n\
         | chapter | | procedures | work |\n| ---: | --- | ---: | ---: |\n",
    );
    let (mut all, mut working) = (0, 0);
    for chapter in chapters {
        let total = count(chapter.procedures.iter());
        let works = count(chapter.procedures.iter().filter(|p| p.works()));
        writeln!(
            text,
            "| {} | {} | {total} | {works} |",
            chapter.number, chapter.title
        )
        .unwrap();
        all += total;
        working += works;
    }
    writeln!(
        text,
        "| | all | {all} | {working} |\n\n## What waits for what\n"
    )
    .unwrap();

    let mut waiting: BTreeMap<&str, Vec<&Procedure>> = BTreeMap::new();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        if let State::Waits(work) = &procedure.state {
            waiting.entry(work).or_default().push(procedure);
        }
    }
    for (work, procedures) in waiting {
        let names: Vec<_> = procedures.iter().map(|p| p.name.as_str()).collect();
        writeln!(
            text,
            "- **{work}** ({}): {}",
            count(procedures.iter().copied()),
            names.join(", ")
        )
        .unwrap();
    }
    text
}

fn count<'a>(procedures: impl Iterator<Item = &'a Procedure>) -> usize {
    procedures.map(|procedure| procedure.forms().len()).sum()
}
