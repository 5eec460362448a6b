//! Generates the entry points of Open MPI's Fortran libraries, and sets the name of the shared
//! library and the library that it needs.

use fortran_tables::commons::{Block, Symbols, Variable};
use fortran_tables::old::{self, write_comparison, write_constant, write_handles, write_size};
use fortran_tables::{Entry, Form, Library, manglings};

fn main() {
    let constants = convert_tables::openmpi();
    let modules = modules(&constants);
    let library = Library {
        constants,
        blocks: BLOCKS,
        symbols,
        modules,
    };
    let (out, _) = fortran_tables::write_modules(&library);
    fortran_tables::link(&out, "libmpi_mpifh.so.40", "libmpi.so.40");
}

/// The blocks of special variables. Each variable has a block of its own, one of whose symbols
/// `mpi_f08` uses.
const BLOCKS: &[Block] = &[
    of(
        "MPI_FORTRAN_BOTTOM",
        &[Variable("INTEGER", "MPI_BOTTOM", "", 4)],
    ),
    of(
        "MPI_FORTRAN_IN_PLACE",
        &[Variable("INTEGER", "MPI_IN_PLACE", "", 4)],
    ),
    of(
        "MPI_FORTRAN_BUFFER_AUTOMATIC",
        &[Variable("INTEGER", "MPI_BUFFER_AUTOMATIC", "", 4)],
    ),
    of(
        "MPI_FORTRAN_STATUS_IGNORE",
        &[Variable("INTEGER", "MPI_STATUS_IGNORE", "(6)", 24)],
    ),
    of(
        "MPI_FORTRAN_STATUSES_IGNORE",
        &[Variable("INTEGER", "MPI_STATUSES_IGNORE", "(6,1)", 24)],
    ),
    of(
        "MPI_FORTRAN_ERRCODES_IGNORE",
        &[Variable("INTEGER", "MPI_ERRCODES_IGNORE", "(1)", 4)],
    ),
    of(
        "MPI_FORTRAN_ARGVS_NULL",
        &[Variable("CHARACTER", "MPI_ARGVS_NULL", "(1,1)", 1)],
    ),
    of(
        "MPI_FORTRAN_ARGV_NULL",
        &[Variable("CHARACTER", "MPI_ARGV_NULL", "(1)", 1)],
    ),
    of(
        "MPI_FORTRAN_UNWEIGHTED",
        &[Variable("INTEGER", "MPI_UNWEIGHTED", "(1)", 4)],
    ),
    of(
        "MPI_FORTRAN_WEIGHTS_EMPTY",
        &[Variable("INTEGER", "MPI_WEIGHTS_EMPTY", "(1)", 4)],
    ),
];

const fn of(name: &'static str, variables: &'static [Variable]) -> Block {
    Block(Symbols::Common, name, variables)
}

/// The symbols of an entry point. Open MPI exports its plain names in all manglings, and those of
/// `mpi_f08` as gfortran does. The latter get the addresses of choice buffers.
fn symbols(entry: &Entry) -> Vec<String> {
    let Entry {
        prefix,
        name,
        large,
        form,
    } = *entry;
    let lower = name.to_ascii_lowercase();
    let prefixes = || {
        // In Open MPI 4, persistent collective operations are an extension.
        let is_extension = PERSISTENT.contains(&name);
        let extension = is_extension.then(|| prefix.replace("MPI_", "MPIX_"));
        std::iter::once(prefix.to_string()).chain(extension)
    };
    match form {
        _ if large => Vec::new(),
        Form::Plain => prefixes()
            .flat_map(|prefix| manglings(&format!("{prefix}{name}")))
            .collect(),
        Form::CPtr => manglings(&format!("{prefix}{name}_CPTR")).into(),
        Form::F08 => prefixes()
            .map(|prefix| format!("{}{lower}_f08_", prefix.to_ascii_lowercase()))
            .collect(),
        Form::F08Ts => Vec::new(),
        Form::Callback => {
            let mut symbols = Vec::from(manglings(name));
            symbols.push(format!("__mpi_f08_callbacks_MOD_{lower}"));
            symbols
        }
    }
}

/// The persistent collective operations.
const PERSISTENT: [&str; 22] = [
    "Allgather_init",
    "Allgatherv_init",
    "Allreduce_init",
    "Alltoall_init",
    "Alltoallv_init",
    "Alltoallw_init",
    "Barrier_init",
    "Bcast_init",
    "Exscan_init",
    "Gather_init",
    "Gatherv_init",
    "Neighbor_allgather_init",
    "Neighbor_allgatherv_init",
    "Neighbor_alltoall_init",
    "Neighbor_alltoallv_init",
    "Neighbor_alltoallw_init",
    "Reduce_init",
    "Reduce_scatter_block_init",
    "Reduce_scatter_init",
    "Scan_init",
    "Scatter_init",
    "Scatterv_init",
];

/// Handles that the standard has under other names, or not at all: MPI_LB and MPI_UB, and handles
/// that a call reports as invalid.
const OWN_HANDLES: [(&str, &str); 13] = [
    ("2complex", "26"),
    ("2double_complex", "27"),
    ("cxx_complex", "55"),
    ("lb", "4"),
    ("ub", "3"),
    ("int8", "58"),
    ("uint8", "59"),
    ("int16", "60"),
    ("uint16", "61"),
    ("int32", "62"),
    ("uint32", "63"),
    ("int64", "64"),
    ("uint64", "65"),
];

/// The types for which MPI_SIZEOF exists, with their sizes in bytes.
const SIZES: [(&str, usize); 12] = [
    ("character", 1),
    ("logical", 4),
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("real32", 4),
    ("real64", 8),
    ("real128", 16),
    ("complex32", 8),
    ("complex64", 16),
    ("complex128", 32),
];

/// The greatest rank of an array.
const MOST_DIMENSIONS: usize = 15;

fn modules(constants: &[tables::constants::Group]) -> String {
    let mut text = String::new();
    for start in ["__mpi_f08_types_MOD_", "ompi_f08_"] {
        write_handles(&mut text, start, constants);
        for (name, value) in OWN_HANDLES {
            write_constant(&mut text, &format!("{start}mpi_{name}"), value);
        }
    }
    for class in old::classes() {
        for (word, is_equality) in [("eq", true), ("ne", false)] {
            let symbol = format!("__mpi_f08_types_MOD_ompi_{class}_op_{word}");
            write_comparison(&mut text, &symbol, is_equality);
        }
    }
    for (ty, bytes) in SIZES {
        let ranks = (1..=MOST_DIMENSIONS).map(|rank| format!("r{rank}"));
        for rank in ranks.chain(["scalar".into()]) {
            for prefix in ["mpi", "pmpi"] {
                let symbol = format!("{prefix}_sizeof_{ty}_{rank}_");
                write_size(&mut text, &symbol, bytes);
            }
        }
    }
    text
}
