//! The MPI names that a program imports: supported ones, those that are not supported yet, and
//! those outside the standard.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Value, json};

/// The library's support of an MPI name that a program imports.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// The name is in the standard ABI, and supported.
    Supported,
    /// The name is in the standard ABI and not supported yet. Contains the name of the missing
    /// feature.
    Missing(String),
    /// The name is outside the standard ABI, but the library that ranks would use defines it.
    Beside,
    /// The name is outside the standard ABI, and no library that ranks would use defines it.
    Absent,
}

impl State {
    /// The text about the support, for the user.
    pub(super) fn words(&self) -> String {
        match self {
            State::Supported => "supported".into(),
            State::Missing(work) => format!("not yet: {work}"),
            State::Beside => "outside the ABI, supported".into(),
            State::Absent => "outside the ABI, missing".into(),
        }
    }

    fn key(&self) -> (&'static str, Option<&str>) {
        match self {
            State::Supported => ("supported", None),
            State::Missing(work) => ("not_yet", Some(work)),
            State::Beside => ("supported_beside_the_abi", None),
            State::Absent => ("missing_beside_the_abi", None),
        }
    }
}

/// The imported names, grouped by their state.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<State, BTreeSet<String>>);

impl Names {
    /// Groups the names that the files of a program import. `exported` are the names in the
    /// libraries that ranks would use, `own` those that the program's files define.
    pub(super) fn sort(
        imports: &[(PathBuf, Vec<String>)],
        exported: &BTreeSet<String>,
        own: &BTreeSet<String>,
    ) -> Names {
        let known = known();
        let mut names = Names::default();
        let imported = imports.iter().flat_map(|(_, imported)| imported);
        for name in imported.filter(|name| !own.contains(*name)) {
            let state = state(name, &known, exported);
            names.0.entry(state).or_default().insert(name.clone());
        }
        names
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(BTreeSet::len).sum()
    }

    /// The rows of a table: the state, the number of names, and the names. Supported names are only
    /// counted.
    pub(super) fn rows(&self) -> Vec<Vec<String>> {
        let row = |(state, names): (&State, &BTreeSet<String>)| {
            let list: Vec<_> = names.iter().map(|name| readable(name)).collect();
            let list = match state {
                State::Supported => String::new(),
                _ => list.join(" "),
            };
            vec![state.words(), names.len().to_string(), list]
        };
        self.0.iter().map(row).collect()
    }

    /// The names of C++ bindings that no library that ranks would use defines.
    pub(super) fn absent_of_cxx(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let absent = self.0.get(&State::Absent).into_iter().flatten();
        absent
            .filter(|name| name.starts_with("_Z"))
            .map(|name| readable(name))
    }

    pub(super) fn list(&self) -> Vec<Value> {
        let names = self.0.iter().flat_map(|(state, names)| {
            let (key, work) = state.key();
            let of_name = move |name| json!({"name": name, "state": key, "needs": work});
            names.iter().map(of_name)
        });
        names.collect()
    }
}

/// The name as the user knows it. For a mangled C++ name these are the classes and the name of the
/// function.
fn readable(name: &str) -> Cow<'_, str> {
    let Some(mangled) = name.strip_prefix("_Z") else {
        return Cow::Borrowed(name);
    };
    let (before, nested) = mangled.split_once('N').unwrap_or_default();
    let mut rest = nested.trim_start_matches(|letter| "rVKRO".contains(letter));
    let mut parts = Vec::new();
    // The length of each part precedes it; the types of the arguments follow the last part.
    while let Some(digits) = rest.find(|letter: char| !letter.is_ascii_digit())
        && let Ok(length) = rest[..digits].parse::<usize>()
        && let Some(part) = rest.get(digits..digits.saturating_add(length))
    {
        parts.push(part);
        rest = &rest[digits + length..];
    }
    let end = match (rest.get(..2), parts.last()) {
        (Some("C1" | "C2"), Some(class)) => format!("::{class}"),
        (Some("D0" | "D1" | "D2"), Some(class)) => format!("::~{class}"),
        _ => String::new(),
    };
    let table = match before {
        "TV" | "TT" => "vtable of ",
        "TI" | "TS" => "type of ",
        _ => "",
    };
    match parts.is_empty() {
        true => Cow::Borrowed(name),
        false => Cow::Owned(format!("{table}{}{end}", parts.join("::"))),
    }
}

/// The state of a name. A `PMPI_` name has the state of its `MPI_` name, and a Fortran name that of
/// its C name.
fn state(name: &str, known: &BTreeMap<String, State>, exported: &BTreeSet<String>) -> State {
    let procedure = name.strip_prefix('P').unwrap_or(name);
    let of_c = known.get(procedure);
    let found = of_c.or_else(|| of_fortran(name, known).filter(|_| exported.contains(name)));
    match found {
        Some(state) => state.clone(),
        None if exported.contains(name) => State::Beside,
        None => State::Absent,
    }
}

/// Endings of Fortran names, in the order in which they are removed.
const ENDINGS: [&str; 4] = ["_large", "_f08ts", "_f08", "_cptr"];
const BEGINNINGS: [&str; 3] = ["pmpir_", "pmpi_", "mpi_"];

/// The state of the procedure with this Fortran name, in the mangling of any compiler.
fn of_fortran<'a>(name: &str, known: &'a BTreeMap<String, State>) -> Option<&'a State> {
    let lower = name.to_ascii_lowercase();
    let plain = ENDINGS
        .iter()
        .fold(lower.trim_end_matches('_'), |rest, ending| {
            rest.strip_suffix(ending).unwrap_or(rest)
        });
    let mut beginnings = BEGINNINGS.iter();
    let plain = beginnings.find_map(|beginning| plain.strip_prefix(beginning))?;
    let is_it = |known: &str| {
        let rest = known.strip_prefix("MPI_");
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(plain))
    };
    known
        .iter()
        .find(|(known, _)| is_it(known))
        .map(|(_, state)| state)
}

/// The states of all procedures of the standard, and of the further ones that other libraries
/// export, by name.
fn known() -> BTreeMap<String, State> {
    let mut known = BTreeMap::new();
    let chapters = tables::all_procedures();
    for procedure in chapters.iter().flat_map(|chapter| &chapter.procedures) {
        for &large in procedure.forms() {
            let state = match &procedure.state {
                tables::table::State::Waits(work) => State::Missing(work.clone()),
                _ => State::Supported,
            };
            known.insert(procedure.c_name("MPI_", large), state);
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_all_procedures() {
        let known = known();
        // 657 procedures of the standard, and 17 others.
        assert_eq!(known.len(), 674);
        assert_eq!(known["MPI_Send_c"], State::Supported);
        assert_eq!(known["MPI_Attr_get"], State::Supported);
    }

    #[test]
    fn names_of_cxx_are_readable() {
        for (name, shown) in [
            ("MPI_Send", "MPI_Send"),
            (
                "_ZN3MPI4Comm17Create_errhandlerEPFvRS0_PizE",
                "MPI::Comm::Create_errhandler",
            ),
            ("_ZNK3MPI8Datatype8Get_sizeEv", "MPI::Datatype::Get_size"),
            ("_ZN3MPI4CommC2Ev", "MPI::Comm::Comm"),
            ("_ZN3MPI4CommD1Ev", "MPI::Comm::~Comm"),
            ("_ZTVN3MPI4CommE", "vtable of MPI::Comm"),
            ("_ZN3MPI99x", "MPI"),
            ("_ZN99999999999999999999", "_ZN99999999999999999999"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(readable(name), shown);
        }
    }

    #[test]
    fn a_function_of_cxx_that_no_library_has_is_absent() {
        let imported = ["_ZN3MPI4CommC2Ev", "_ZN3MPI4Comm5CloneEv", "MPIX_Absent"];
        let imports = [("program".into(), imported.map(str::to_string).to_vec())];
        let exported = BTreeSet::from([imported[0].to_string()]);
        let names = Names::sort(&imports, &exported, &BTreeSet::new());
        assert_eq!(
            names.absent_of_cxx().collect::<Vec<_>>(),
            ["MPI::Comm::Clone"]
        );
        assert_eq!(names.count(), 3);
    }

    #[test]
    fn each_name_has_a_state() {
        let known = [
            ("MPI_Send", State::Supported),
            ("MPI_File_open", State::Missing("files".into())),
        ];
        let known = known.map(|(name, state)| (name.to_string(), state)).into();
        let in_fortran = [
            "mpi_send_",
            "PMPI_SEND",
            "mpi_send_cptr_",
            "pmpir_send_f08ts_large_",
        ];
        let others = ["MPI_UNWEIGHTED", "pmpi_file_open_f08_"];
        let exported = in_fortran.into_iter().chain(others);
        let exported = exported.map(str::to_string).collect();
        let of = |name: &str| state(name, &known, &exported);
        assert_eq!(of("PMPI_Send"), State::Supported);
        assert_eq!(of("MPI_File_open"), State::Missing("files".into()));
        assert_eq!(of("MPI_UNWEIGHTED"), State::Beside);
        for name in in_fortran {
            assert_eq!(of(name), State::Supported, "{name}");
        }
        assert_eq!(of("pmpi_file_open_f08_"), State::Missing("files".into()));
        assert_eq!(of("mpi_recv_"), State::Absent);
        assert_eq!(of("MPIX_Comm_agree"), State::Absent);
    }
}
