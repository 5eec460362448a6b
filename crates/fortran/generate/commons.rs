//! The COMMON blocks whose variables are recognised by their addresses. The names and their contents
//! are those of MPICH and of the libraries that share its Fortran names, so their programs load too.

use super::entry::manglings;
use std::fmt::Write;

/// Name of a block, and its variables: type, name, shape, size in bytes.
pub(crate) const COMMONS: &[(&str, &[Variable])] = &[
    (
        "MPIPRIV1",
        &[
            Variable("INTEGER", "MPI_BOTTOM", "", 4),
            Variable("INTEGER", "MPI_IN_PLACE", "", 4),
            Variable("INTEGER", "MPI_STATUS_IGNORE", "(8)", 32),
        ],
    ),
    (
        "MPIPRIV2",
        &[
            Variable("INTEGER", "MPI_STATUSES_IGNORE", "(8,1)", 32),
            Variable("INTEGER", "MPI_ERRCODES_IGNORE", "(1)", 4),
        ],
    ),
    (
        "MPIPRIVC",
        &[
            Variable("CHARACTER*1", "MPI_ARGVS_NULL", "(1,1)", 1),
            Variable("CHARACTER*1", "MPI_ARGV_NULL", "(1)", 1),
        ],
    ),
    (
        "MPIFCMB5",
        &[Variable("INTEGER", "MPI_UNWEIGHTED", "(1)", 4)],
    ),
    (
        "MPIFCMB9",
        &[Variable("INTEGER", "MPI_WEIGHTS_EMPTY", "(1)", 4)],
    ),
    (
        "MPIFCMBA",
        &[Variable("INTEGER", "MPI_BUFFER_AUTOMATIC", "", 4)],
    ),
];

pub(crate) struct Variable(
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) &'static str,
    pub(crate) usize,
);

/// The text of the module `commons`: the blocks under all their names, and the names.
pub(crate) fn generate() -> String {
    let (mut blocks, mut names) = (String::new(), String::new());
    for (name, variables) in COMMONS {
        let words = variables
            .iter()
            .map(|variable| variable.3)
            .sum::<usize>()
            .div_ceil(4);
        let mangled = manglings(name);
        for symbol in &mangled {
            writeln!(blocks, "common! {{ \"{symbol}\" {words} }}").unwrap();
        }
        let quoted: Vec<_> = mangled
            .iter()
            .map(|symbol| format!("c\"{symbol}\""))
            .collect();
        writeln!(
            names,
            "/// The block {name}.\npub(crate) static {name}: Common = Common::new([{}]);",
            quoted.join(", ")
        )
        .unwrap();
        let mut offset = 0;
        for Variable(_, variable, _, size) in *variables {
            writeln!(
                names,
                "/// The place of {variable}.\npub(crate) const {variable}_AT: usize = {offset};"
            )
            .unwrap();
            offset += size;
        }
    }
    let all: Vec<_> = COMMONS.iter().map(|(name, _)| format!("&{name}")).collect();
    format!(
        "{blocks}\n{names}\n/// All blocks.\npub(crate) static ALL: [&Common; {}] = [{}];\n",
        COMMONS.len(),
        all.join(", ")
    )
}
