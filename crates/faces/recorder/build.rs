//! Generates the entry points of the recorded procedures, the meanings of their parameters, and the
//! values of constants in each family of libraries.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use tables::constants::{Constant, Group};
use tables::kinds::Class;
use tables::recorded::forms;
use tables::table::{Access, Length, Parameter, Procedure};

/// The classes of handles, in the order of their numbers. A file is a pointer in each family.
fn classes() -> Vec<&'static str> {
    convert_tables::HANDLES
        .into_iter()
        .chain(["file"])
        .collect()
}

/// The meanings of integers that are constants, each with the titles of the groups of its
/// constants, in the order of their numbers. Those of the last two are sums of constants.
const MEANINGS: [(&str, &[&str]); 13] = [
    ("rank", &[RANKS]),
    ("tag", &[RANKS]),
    ("thread", &["Levels of thread support"]),
    ("split_type", &["Split types"]),
    ("order", &["Orders of arrays"]),
    ("distribution", &["Distributions of arrays"]),
    ("default_argument", &["Default argument of a distribution"]),
    ("lock_type", &["Lock types"]),
    ("whence", &["Positions in files"]),
    ("displacement", &["File displacements"]),
    ("error", &["Error classes"]),
    ("assertion", &["Assertions of windows"]),
    ("file_mode", &["Modes of files"]),
];
const RANKS: &str = "Ranks, tags and sizes with a meaning";
/// The number of meanings whose values are sums of constants.
const SUMS: usize = 2;

/// The groups of addresses that are constants.
const ADDRESSES: [&str; 2] = ["Buffer addresses", "Empty and ignored arguments"];

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let chapters = tables::all_procedures();
    let all: Vec<(&Procedure, bool)> = forms(&chapters).collect();
    convert_tables::write_recorded("entry.rs", false);
    write("names.rs", &names(&all));
    write("parameters.rs", &parameters(&all));
    let standard = tables::constants();
    let mut text = format!(
        "/// The number of the first meaning whose values are sums of constants.\n\
         const SUMS: usize = {};\n\
         /// The number of meanings.\nconst MEANINGS: usize = {};\n\
         /// The number of classes of handles.\npub(crate) const CLASSES: usize = {};\n",
        MEANINGS.len() - SUMS,
        MEANINGS.len(),
        classes().len()
    );
    let classes = classes();
    let numbered = classes.iter().enumerate();
    let asked = ["comm", "datatype", "file", "info"];
    for (number, class) in numbered.filter(|(_, class)| asked.contains(class)) {
        let name = class.to_uppercase();
        writeln!(
            text,
            "/// The class `{class}`.\npub(crate) const {name}: usize = {number};"
        )
        .unwrap();
    }
    for (name, groups) in [
        ("STANDARD", Vec::new()),
        ("MPICH", convert_tables::mpich()),
        ("OPEN_MPI", convert_tables::openmpi()),
    ] {
        text += &constants(name, &standard, &groups);
    }
    write("constants.rs", &text);
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfishplate_record.so");
}

fn write(name: &str, text: &str) {
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR for build scripts");
    fs::write(Path::new(&out).join(name), text)
        .unwrap_or_else(|error| panic!("cannot write {name}: {error}"));
}

/// The names of the entry points.
fn names(all: &[(&Procedure, bool)]) -> String {
    let mut text = String::new();
    for wanted in ["Finalize", "Abort"] {
        let number = all.iter().position(|(one, _)| one.name == wanted);
        let number = number.expect("the procedure is recorded");
        let name = wanted.to_uppercase();
        writeln!(
            text,
            "/// The number of MPI_{wanted}.\npub(crate) const {name}: usize = {number};"
        )
        .unwrap();
    }
    let both = all.iter().flat_map(|&(procedure, large)| {
        ["MPI_", "PMPI_"].map(|prefix| format!("    c\"{}\",\n", procedure.c_name(prefix, large)))
    });
    let both: String = both.collect();
    format!(
        "{text}/// The names of the entry points: that of procedure `n` and its profiled one are \
         those at `2 * n` and `2 * n + 1`.\n\
         pub(crate) static NAMES: [&CStr; {}] = [\n{both}];\n",
        2 * all.len()
    )
}

/// The parameters of each procedure.
fn parameters(all: &[(&Procedure, bool)]) -> String {
    let rows = all.iter().map(|&(procedure, large)| {
        let all = procedure.parameters(large);
        let all: Vec<String> = all.map(|one| parameter(procedure, one, large)).collect();
        format!("    &[{}],\n", all.join(", "))
    });
    let rows: String = rows.collect();
    format!(
        "/// The parameters of the recorded procedures, by their numbers.\n\
         pub(crate) static PARAMETERS: [&[Parameter]; {}] = [\n{rows}];\n",
        all.len()
    )
}

fn parameter(procedure: &Procedure, parameter: &Parameter, large: bool) -> String {
    let word = parameter.kind.word();
    let is_value = parameter.access == Access::In && parameter.length == Length::One;
    let is_address =
        parameter.rust(large).starts_with('*') || parameter.kind.class() == Class::Function;
    let meaning = convert_tables::meaning(procedure, parameter);
    let meaning = meaning.and_then(|name| MEANINGS.iter().position(|(own, _)| *own == name));
    let is_int = ["c_int", "[c_int; 3]"].contains(&parameter.kind.rust(large));
    let form = match (classes().iter().position(|class| *class == word), meaning) {
        (Some(class), _) => format!("Form::Handle({class})"),
        (None, Some(meaning)) => format!("Form::Constant({meaning}, {})", !is_int),
        (None, None) if is_int => "Form::Int".into(),
        (None, None) => "Form::Wide".into(),
    };
    format!(
        "Parameter {{ form: {form}, is_address: {} }}",
        is_address || !is_value
    )
}

/// The constants of a family of libraries, each with that of the standard.
fn constants(name: &str, standard: &[Group], groups: &[Group]) -> String {
    let values: BTreeMap<&str, &str> = standard
        .iter()
        .flat_map(|group| &group.constants)
        .filter(|constant| constant.in_c())
        .map(|constant| (constant.name.as_str(), constant.value.as_str()))
        .collect();
    let pair = |constant: &Constant| {
        let standard = values.get(constant.name.as_str())?;
        let is_symbol = constant
            .value
            .starts_with(|c: char| c.is_ascii_alphabetic());
        Some(match is_symbol {
            true => format!("(Raw::Symbol(c\"{}\"), {standard})", constant.value),
            false => format!("(Raw::Value({}), {standard})", constant.value),
        })
    };
    let of = |fits: &dyn Fn(&Group, &Constant) -> bool| {
        let all = groups.iter();
        let all = all.flat_map(|group| group.constants.iter().map(move |one| (group, one)));
        let fitting = all.filter(|(group, one)| fits(group, one));
        let pairs: Vec<String> = fitting.filter_map(|(_, one)| pair(one)).collect();
        format!("&[{}]", pairs.join(", "))
    };
    let handles = classes().into_iter().map(|class| {
        let class = format!("MPI_{class}").to_lowercase();
        of(&|_, one| {
            let word = one.c_type.split(' ').next().unwrap_or("");
            word.to_lowercase() == class
        })
    });
    let meanings = MEANINGS.map(|(meaning, titles)| {
        of(&|group, one| {
            let is_of_tags = one.name == "MPI_ANY_TAG";
            titles.contains(&group.title.as_str())
                && match meaning {
                    "rank" => {
                        ["MPI_ANY_SOURCE", "MPI_PROC_NULL", "MPI_ROOT"].contains(&one.name.as_str())
                    }
                    "tag" => is_of_tags,
                    _ => true,
                }
        })
    });
    let addresses = of(&|group, _| ADDRESSES.contains(&group.title.as_str()));
    let topologies = of(&|group, _| group.title == "Topologies");
    format!(
        "/// The constants of this family.\npub(crate) static {name}: Constants = Constants {{\n    \
         handles: [{}],\n    meanings: [{}],\n    addresses: {addresses},\n    topologies: {topologies},\n}};\n",
        handles.collect::<Vec<_>>().join(", "),
        meanings.join(", ")
    )
}
