//! Generator of the constants of the standard ABI and of an older one, and of the pairs of values
//! that conversions search.

use std::collections::BTreeMap;
use std::fmt::Write;
use tables::constants::{Constant, Group};

/// The constants of the program's ABI, the older one.
pub(crate) struct Program {
    groups: Vec<Group>,
    /// Symbols whose addresses are handles. The number of a symbol is its index plus one.
    symbols: Vec<Symbol>,
}

struct Symbol {
    name: String,
    class: String,
    /// The expression of the Fortran integer that stands for the handle.
    integer: String,
}

impl Program {
    /// The constants of an older ABI's table. A value that begins with a letter is a symbol, whose
    /// number replaces it in tables.
    pub(crate) fn new(mut groups: Vec<Group>) -> Result<Program, String> {
        let mut symbols: Vec<Symbol> = Vec::new();
        for constant in groups.iter_mut().flat_map(|group| &mut group.constants) {
            if !constant
                .value
                .starts_with(|c: char| c.is_ascii_alphabetic())
            {
                continue;
            }
            let (ty, integer) = constant
                .c_type
                .split_once(' ')
                .ok_or_else(|| format!("{}: no integer of Fortran", constant.name))?;
            let known = symbols
                .iter()
                .position(|symbol| symbol.name == constant.value);
            let at = known.unwrap_or(symbols.len());
            if known.is_none() {
                symbols.push(Symbol {
                    name: constant.value.clone(),
                    class: class(ty),
                    integer: integer.into(),
                });
            }
            constant.c_type = ty.into();
            constant.value = (at + 1).to_string();
        }
        Ok(Program { groups, symbols })
    }

    /// The constants by group.
    pub(crate) fn into_groups(self) -> Vec<Group> {
        self.groups
    }

    /// True if strings up to this limit are shorter than in the standard ABI.
    pub(crate) fn is_shorter(&self, standard: &[Group], limit: &str) -> bool {
        let value = |groups| {
            let found = numbers(groups).find(|constant| constant.name == limit);
            found.and_then(|constant| constant.value.parse::<u32>().ok())
        };
        match (value(&self.groups), value(standard)) {
            (Some(program), Some(standard)) => program < standard,
            _ => false,
        }
    }
}

/// The source text of the module `constants`: the constants of the standard ABI, and a trait of the
/// constants of an older ABI, whose defaults are the standard's. `groups`: the constants of all
/// older ABIs.
pub(crate) fn of_standard(standard: &[Group], groups: &[Group]) -> String {
    let (mut values, mut constants) = (String::new(), String::new());
    for Constant { name, value, .. } in numbers(standard) {
        writeln!(
            values,
            "    /// `{name}`\n    pub const {name}: i64 = {value};"
        )
        .unwrap();
        writeln!(
            constants,
            "    /// `{name}`\n    const {name}: i64 = standard::{name};"
        )
        .unwrap();
    }
    let mut pairs: Vec<String> = Vec::new();
    for group in groups {
        let names = group
            .constants
            .iter()
            .map(|constant| pairs_name(group, constant));
        pairs.extend(names);
    }
    pairs.sort();
    pairs.dedup();
    for name in pairs {
        writeln!(
            constants,
            "    /// Pairs of the program's value and the standard's.\n    const {name}: Pairs = &[];"
        )
        .unwrap();
    }
    format!(
        "/// Values in the program's ABI and in the standard's.\npub type Pairs = &'static [(i64, i64)];\n\
         /// The constants of the standard ABI.\npub mod standard {{\n{values}}}\n\
         /// The constants of an older ABI.\npub trait Constants {{\n{constants}}}\n"
    )
}

/// The source text of an older ABI's constants: the values that differ from the standard's, and for
/// each group of integers and each class of handles the values in both ABIs.
pub(crate) fn of_program(standard: &[Group], program: &Program) -> String {
    let standard: BTreeMap<_, _> = numbers(standard)
        .map(|constant| (constant.name.as_str(), constant.value.as_str()))
        .collect();
    let mut text = String::new();
    for Constant { name, value, .. } in numbers(&program.groups) {
        writeln!(text, "    const {name}: i64 = {value};").unwrap();
    }
    write_pairs(&mut text, &standard, program);
    format!("impl Constants for Program {{\n{text}}}\n")
}

fn write_pairs(text: &mut String, standard: &BTreeMap<&str, &str>, program: &Program) {
    let mut pairs: BTreeMap<String, String> = BTreeMap::new();
    for group in &program.groups {
        for constant in &group.constants {
            let name = pairs_name(group, constant);
            let standard = standard
                .get(constant.name.as_str())
                .unwrap_or_else(|| panic!("{} is no constant of the standard ABI", constant.name));
            let text = pairs.entry(name).or_default();
            writeln!(
                text,
                "    ({}, {standard}), // {}",
                constant.value, constant.name
            )
            .unwrap();
        }
    }
    for (name, rows) in pairs {
        writeln!(text, "    const {name}: Pairs = &[\n{rows}    ];").unwrap();
    }
}

/// The source text of the symbols whose addresses are handles: statics with the sizes of their
/// classes, and lists of their addresses and Fortran integers in the order of their numbers.
pub(crate) fn symbols(program: &Program) -> String {
    let (mut statics, mut addresses) = (String::new(), String::new());
    let mut integers = String::new();
    for Symbol {
        name,
        class,
        integer,
    } in &program.symbols
    {
        writeln!(
            statics,
            "/// The object of a predefined handle.\n#[unsafe(no_mangle)]\n\
             pub(crate) static {name}: Object<{class}> = Object::new();"
        )
        .unwrap();
        writeln!(integers, "    {integer}, // {name}").unwrap();
        writeln!(addresses, "        (&raw const {name}) as usize,").unwrap();
    }
    let number = program.symbols.len();
    format!(
        "{statics}/// The number of symbols.\npub(crate) const SYMBOLS: usize = {number};\n\
         /// Their addresses.\n\
         pub(crate) fn addresses() -> [usize; SYMBOLS] {{\n    [\n{addresses}    ]\n}}\n\
         /// Fortran's integers.\npub(crate) const INTEGERS: [c_int; SYMBOLS] = [\n{integers}];\n"
    )
}

/// The constants that are numbers in C.
fn numbers(groups: &[Group]) -> impl Iterator<Item = &Constant> {
    let constants = groups.iter().flat_map(|group| &group.constants);
    constants.filter(|constant| constant.in_c())
}

/// The class of a type of handles, in capitals.
fn class(ty: &str) -> String {
    ty.trim_start_matches("MPI_").to_ascii_uppercase()
}

/// The name of a list of pairs of values. Handles of one class occur in several groups, integers of
/// one meaning in one group.
fn pairs_name(group: &Group, constant: &Constant) -> String {
    let ty = &constant.c_type;
    let is_handle = ty.starts_with("MPI_") && !ty.ends_with('*') && !ty.starts_with("MPI_T_");
    if is_handle && ty != "MPI_Offset" {
        return format!("{}_HANDLES", class(ty));
    }
    let words = group.title.replace([',', ':'], "");
    words.replace(' ', "_").to_ascii_uppercase()
}
