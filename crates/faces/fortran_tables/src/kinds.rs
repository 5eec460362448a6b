//! A parameter in Fortran: its name, its declaration in each of the modules, and the properties
//! that follow from its kind.

use tables::table::{Access, Length, Parameter, Procedure};

/// Classes of handles: the word in the table, and the derived type in `mpi_f08`. In `mpi` and
/// `mpif.h` handles are integers.
pub(crate) const HANDLES: &[(&str, &str)] = &[
    ("comm", "MPI_Comm"),
    ("datatype", "MPI_Datatype"),
    ("errhandler", "MPI_Errhandler"),
    ("file", "MPI_File"),
    ("group", "MPI_Group"),
    ("info", "MPI_Info"),
    ("message", "MPI_Message"),
    ("op", "MPI_Op"),
    ("request", "MPI_Request"),
    ("session", "MPI_Session"),
    ("win", "MPI_Win"),
];

/// The properties of a parameter in Fortran.
pub trait FortranParameter {
    /// The name in Fortran, which is a keyword of the interface. Two of C's names differ, to avoid
    /// functions of the C library.
    fn fortran_name(&self, procedure: &Procedure) -> &str;

    /// True if the parameter is an array.
    fn is_array(&self) -> bool;

    /// True if the parameter is a buffer of any type (choice buffer).
    fn is_choice(&self) -> bool;

    /// The derived type in `mpi_f08`, if the parameter is a handle.
    fn handle(&self) -> Option<&'static str>;

    /// True if the parameter is ASYNCHRONOUS in `mpi_f08`: a buffer, or an array whose length the
    /// communicator determines, that may be used after the return.
    fn is_asynchronous(&self, procedure: &Procedure) -> bool;

    /// True if the parameter is a user's procedure.
    fn is_function(&self) -> bool;

    /// The declaration in the module `mpi` without the name, as (type, shape).
    fn declaration(&self, procedure: &Procedure, large: bool) -> (String, String);
}

impl FortranParameter for Parameter {
    fn fortran_name(&self, procedure: &Procedure) -> &str {
        match (procedure.name.as_str(), self.name.as_str()) {
            (_, "indx") => "index",
            ("Status_get_error" | "Status_set_error", "error") => "err",
            ("Precv_init", "dest") => "source",
            (_, name) => name,
        }
    }

    fn is_array(&self) -> bool {
        self.length != Length::One
    }

    fn is_choice(&self) -> bool {
        matches!(self.kind.word(), "in" | "out")
    }

    fn handle(&self) -> Option<&'static str> {
        let mut rows = HANDLES.iter();
        rows.find(|(word, _)| *word == self.kind.word())
            .map(|(_, of_f08)| *of_f08)
    }

    fn is_asynchronous(&self, procedure: &Procedure) -> bool {
        let is_kept =
            self.is_choice() || (self.length == Length::Unknown && self.kind.word() != "str");
        let is_made_later = procedure.name.starts_with("Comm_idup") && self.name == "newcomm";
        (is_kept && procedure.outlasts()) || is_made_later
    }

    fn is_function(&self) -> bool {
        self.kind.word().starts_with("fn_")
    }

    fn declaration(&self, procedure: &Procedure, large: bool) -> (String, String) {
        let word = self.kind.word();
        let array = if self.is_array() { "(*)" } else { "" };
        let plain = |ty: &str| (ty.to_string(), array.to_string());
        match word {
            _ if self.is_choice() || word == "detached" || word == "ptr" => {
                ("TYPE(*)".into(), "(*)".into())
            }
            _ if self.is_function() => ("EXTERNAL".into(), String::new()),
            _ if self.handle().is_some() => plain("INTEGER"),
            "status" if self.is_array() => ("INTEGER".into(), "(MPI_STATUS_SIZE,*)".into()),
            "status" => ("INTEGER".into(), "(MPI_STATUS_SIZE)".into()),
            "triple" => ("INTEGER".into(), "(3,*)".into()),
            "flag" => plain("LOGICAL"),
            "str" => ("CHARACTER(LEN=*)".into(), String::new()),
            "argv" | "commands" => ("CHARACTER(LEN=*)".into(), "(*)".into()),
            "argvs" => ("CHARACTER(LEN=*)".into(), "(count,*)".into()),
            "offset" => plain("INTEGER(KIND=MPI_OFFSET_KIND)"),
            "attr" | "state" | "memory" => plain(address(procedure)),
            _ => plain(match self.kind.rust(large) {
                "isize" if procedure.is_old() => "INTEGER",
                other => integer(other),
            }),
        }
    }
}

/// The properties of a procedure in Fortran.
pub trait FortranProcedure {
    /// True if the procedure belongs to MPI 1, in which addresses are integers of the default kind.
    fn is_old(&self) -> bool;

    /// The name in Fortran, without `MPI_`.
    fn fortran(&self, large: bool) -> String;

    /// Fortran's parameters of one of the forms, except IERROR.
    fn fortran_parameters(&self, large: bool) -> impl Iterator<Item = &Parameter>;

    /// True if the last parameter is IERROR.
    fn has_ierror(&self) -> bool;

    /// True if MPI runs after the procedure, so that the ABI library can get the properties of
    /// Fortran.
    fn starts(&self) -> bool;

    /// True if the procedure starts persistent requests.
    fn starts_requests(&self) -> bool;

    /// True if memory of the procedure's buffers and arrays may be used after the return, so that
    /// they are ASYNCHRONOUS in `mpi_f08`.
    fn outlasts(&self) -> bool;
}

impl FortranProcedure for Procedure {
    fn is_old(&self) -> bool {
        self.chapter == 0
    }

    fn fortran(&self, large: bool) -> String {
        self.c_name("", large).to_ascii_uppercase()
    }

    fn fortran_parameters(&self, large: bool) -> impl Iterator<Item = &Parameter> {
        self.parameters(large)
            .filter(|parameter| in_fortran(parameter, self))
    }

    fn has_ierror(&self) -> bool {
        self.returns.is_none() && self.name != "Pcontrol"
    }

    fn starts(&self) -> bool {
        matches!(self.name.as_str(), "Init" | "Init_thread" | "Session_init")
    }

    fn starts_requests(&self) -> bool {
        matches!(self.name.as_str(), "Start" | "Startall")
    }

    fn outlasts(&self) -> bool {
        let mut parameters = self.parameters.iter();
        let request = parameters.any(|p| p.kind.word() == "request" && p.access == Access::Out);
        let ends = ["_begin", "_end", "_attach", "_detach", "ttach_buffer"];
        let is_split =
            ends.iter().any(|end| self.name.ends_with(end)) && self.name != "Buffer_detach";
        let is_address = matches!(
            self.name.as_str(),
            "Free_mem" | "Get_address" | "Win_create"
        );
        request || self.chapter == 12 || is_split || is_address
    }
}

/// The Fortran type of a Rust type.
pub(crate) fn integer(rust: &str) -> &'static str {
    match rust {
        "c_int" => "INTEGER",
        "isize" => "INTEGER(KIND=MPI_ADDRESS_KIND)",
        "i64" => "INTEGER(KIND=MPI_COUNT_KIND)",
        "f64" => "DOUBLE PRECISION",
        other => panic!("no Fortran type for {other}"),
    }
}

/// True if Fortran has the parameter: it has neither the arguments of `main` nor `...`.
fn in_fortran(parameter: &Parameter, procedure: &Procedure) -> bool {
    let of_main = ["argc", "argv"].contains(&parameter.name.as_str());
    let has_main = procedure.parameters.iter().any(|p| p.name == "argc");
    parameter.kind.word() != "..." && !(of_main && has_main)
}

/// The Fortran type of addresses, extents and attribute values.
fn address(procedure: &Procedure) -> &'static str {
    if procedure.is_old() {
        "INTEGER"
    } else {
        integer("isize")
    }
}
