//! Generates the entry points of MPICH's Fortran libraries, and sets the name of the shared library
//! and the library that it needs.

use fortran_tables::commons::{Block, Symbols, Variable};
use fortran_tables::old::{
    self, write_assignment, write_comparison, write_constant, write_conversion, write_copy,
    write_handles, write_size,
};
use fortran_tables::{Entry, Form, Library, manglings};

fn main() {
    let constants = convert_tables::mpich();
    let modules = modules(&constants);
    let library = Library {
        constants,
        blocks: BLOCKS,
        symbols,
        modules,
    };
    let (out, _) = fortran_tables::write_modules(&library);
    fortran_tables::link(&out, "libmpifort.so.12", "libmpi.so.12");
}

/// The blocks of variables of `mpif.h` and of the module `mpi`, and those of `mpi_f08`.
const BLOCKS: &[Block] = &[
    Block(
        Symbols::Common,
        "MPIPRIV1",
        &[
            Variable("INTEGER", "MPI_BOTTOM", "", 4),
            Variable("INTEGER", "MPI_IN_PLACE", "", 4),
            Variable("INTEGER", "MPI_STATUS_IGNORE", "(5)", 20),
        ],
    ),
    Block(
        Symbols::Common,
        "MPIPRIV2",
        &[
            Variable("INTEGER", "MPI_STATUSES_IGNORE", "(5,1)", 20),
            Variable("INTEGER", "MPI_ERRCODES_IGNORE", "(1)", 4),
        ],
    ),
    Block(
        Symbols::Common,
        "MPIPRIVC",
        &[
            Variable("CHARACTER*1", "MPI_ARGVS_NULL", "(1,1)", 1),
            Variable("CHARACTER*1", "MPI_ARGV_NULL", "(1)", 1),
        ],
    ),
    of_common(
        "MPIFCMB5",
        &[Variable("INTEGER", "MPI_UNWEIGHTED", "(1)", 4)],
    ),
    of_common(
        "MPIFCMB9",
        &[Variable("INTEGER", "MPI_WEIGHTS_EMPTY", "(1)", 4)],
    ),
    of_common(
        "MPIFCMBA",
        &[Variable("INTEGER", "MPI_BUFFER_AUTOMATIC", "", 4)],
    ),
    of_module("MPIR_F08_MPI_BOTTOM", &[Variable("", "MPI_BOTTOM", "", 4)]),
    of_module(
        "MPIR_F08_MPI_IN_PLACE",
        &[Variable("", "MPI_IN_PLACE", "", 4)],
    ),
    of_module(
        "MPIR_F08_MPI_STATUS_IGNORE_OBJ",
        &[Variable("", "MPI_STATUS_IGNORE", "", 20)],
    ),
    of_module(
        "MPIR_F08_MPI_STATUSES_IGNORE_OBJ",
        &[Variable("", "MPI_STATUSES_IGNORE", "", 20)],
    ),
    of_module(
        "__mpi_f08_link_constants_MOD_mpi_errcodes_ignore",
        &[Variable("", "MPI_ERRCODES_IGNORE", "", 4)],
    ),
    of_module(
        "__mpi_f08_link_constants_MOD_mpi_argvs_null",
        &[Variable("", "MPI_ARGVS_NULL", "", 1)],
    ),
    of_module(
        "__mpi_f08_link_constants_MOD_mpi_argv_null",
        &[Variable("", "MPI_ARGV_NULL", "", 1)],
    ),
    of_module(
        "__mpi_f08_link_constants_MOD_mpi_unweighted",
        &[Variable("", "MPI_UNWEIGHTED", "", 4)],
    ),
    of_module(
        "__mpi_f08_link_constants_MOD_mpi_weights_empty",
        &[Variable("", "MPI_WEIGHTS_EMPTY", "", 4)],
    ),
];

const fn of_common(name: &'static str, variables: &'static [Variable]) -> Block {
    Block(Symbols::Common, name, variables)
}

const fn of_module(name: &'static str, variables: &'static [Variable]) -> Block {
    Block(Symbols::Name, name, variables)
}

/// The symbols of an entry point. MPICH exports its plain names in all manglings, and those of
/// `mpi_f08` as gfortran does.
fn symbols(entry: &Entry) -> Vec<String> {
    let Entry {
        prefix,
        name,
        large,
        form,
    } = *entry;
    let end = match form {
        Form::Plain if large => return Vec::new(),
        Form::Plain => return manglings(&format!("{prefix}{name}")).into(),
        Form::CPtr => return Vec::new(),
        Form::Callback => {
            let mut symbols = Vec::from(manglings(name));
            symbols.extend(manglings(&format!("P{name}")));
            symbols.push(format!(
                "__mpi_f08_callbacks_MOD_{}",
                name.to_ascii_lowercase()
            ));
            return symbols;
        }
        Form::F08 => "f08",
        Form::F08Ts => "f08ts",
    };
    let prefix = if prefix == "MPI_" { "mpi" } else { "pmpir" };
    let large = if large { "_large" } else { "" };
    let name = name.to_ascii_lowercase();
    let mut names = vec![name];
    if let Some(object) = names[0].strip_prefix("remove_error_") {
        names.push(format!("delete_error_{object}")); // before MPI 5
    }
    let symbol = |name| format!("{prefix}_{name}_{end}{large}_");
    names.into_iter().map(symbol).collect()
}

/// MPI_LB and MPI_UB, which the standard no longer has, with their values.
const OWN_HANDLES: [(&str, &str); 2] = [("lb", "0x4c000010"), ("ub", "0x4c000011")];

fn modules(constants: &[tables::constants::Group]) -> String {
    let mut text = String::new();
    let start = "__mpi_f08_compile_constants_MOD_";
    write_handles(&mut text, start, constants);
    for (name, value) in OWN_HANDLES {
        write_constant(&mut text, &format!("{start}mpi_{name}"), value);
    }
    for class in old::classes() {
        // Handles of files are converted by functions of C.
        for name in ["c2f", "f2c"].into_iter().filter(|_| class != "file") {
            write_conversion(
                &mut text,
                &format!("__mpi_f08_types_MOD_mpi_{class}_{name}"),
            );
        }
        for (word, is_equality) in [("eq", true), ("neq", false)] {
            let symbol = format!("__mpi_constants_MOD_{class}{word}");
            write_comparison(&mut text, &symbol, is_equality);
            for name in [
                word.to_string(),
                format!("f08_{word}_f"),
                format!("f_{word}_f08"),
            ] {
                let symbol = format!("__mpi_f08_types_MOD_mpi_{class}_{name}");
                write_comparison(&mut text, &symbol, is_equality);
            }
        }
    }
    for name in ["f2f08", "f082f"] {
        write_copy(&mut text, &format!("__mpi_f08_types_MOD_mpi_status_{name}"));
    }
    for name in ["c_assign_f08", "f08_assign_c"] {
        write_assignment(&mut text, &format!("__mpi_f08_types_MOD_mpi_status_{name}"));
    }
    for (name, bytes) in [
        ("character", 1),
        ("logical", 4),
        ("xint8", 1),
        ("xint16", 2),
        ("xint32", 4),
        ("xint64", 8),
        ("xreal32", 4),
        ("xreal64", 8),
        ("xreal128", 16),
        ("xcomplex32", 8),
        ("xcomplex64", 16),
        ("xcomplex128", 32),
    ] {
        let symbol = format!("__mpi_f08_types_MOD_mpi_sizeof_{name}");
        write_size(&mut text, &symbol, bytes);
    }
    for (name, bytes) in [
        ("ch", 1),
        ("cx", 8),
        ("d", 8),
        ("i", 4),
        ("i1", 1),
        ("i2", 2),
        ("i8", 8),
        ("l", 4),
        ("r", 4),
    ] {
        for end in ["", "v"] {
            let symbol = format!("__mpi_sizeofs_MOD_mpi_sizeof_{name}{end}");
            write_size(&mut text, &symbol, bytes);
        }
    }
    text
}
